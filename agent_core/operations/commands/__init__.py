"""The commands, one module per subject: each command parses, calls one thing, and renders the result."""

__all__: list[str] = []
