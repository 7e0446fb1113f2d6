"""The prompt: a conversation in a terminal.

The modules of the prompt itself are light (`app`, `prompt`, `completion`, `live`); `terminal` and `render`
are loaded in the background with the conversation, while the user types the first message.
"""

__all__: list[str] = []
