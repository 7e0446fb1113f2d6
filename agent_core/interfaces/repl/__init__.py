"""The prompt: a conversation in a terminal.

What the prompt itself needs is light (`app`, `prompt`, `keys`, `completion`, `safe_display`, `bar`, `live`,
`catalogue`); `conversation`, `slash` and `render` are loaded behind it, while the first message is typed.
"""

__all__: list[str] = []
