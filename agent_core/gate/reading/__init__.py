"""What the read stage takes off a text or refuses at once: wrapping, tryouts, escapes, public helpers."""
