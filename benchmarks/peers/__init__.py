"""Other agent frameworks compared with ours, each in a separate environment: `make bench-peers`."""
