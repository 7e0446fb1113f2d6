"""A terminal: what is typed at it, questions, and progress."""
