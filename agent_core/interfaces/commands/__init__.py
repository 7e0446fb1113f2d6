"""One module per noun: each command parses, calls one thing, and renders what came back."""

__all__: list[str] = []
