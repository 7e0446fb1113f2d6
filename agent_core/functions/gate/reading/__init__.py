"""Removes wrapping, tryouts, odd characters and public helpers in the read stage, or rejects the text at once."""
