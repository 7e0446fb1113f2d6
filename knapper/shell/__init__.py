"""The shell: `knapper NOUN VERB`, and the same over `--server`."""
