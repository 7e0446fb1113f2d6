"""The prompt: a conversation in a terminal.

What the prompt itself needs is light (`app`, `prompt`, `completion`, `debug`, `live`); `terminal` and `render`
are loaded behind it with the conversation, while the first message is typed.
"""

__all__: list[str] = []
