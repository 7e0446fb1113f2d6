"""The ways in which people and scripts reach an agent: the command line, one-shot turns, and the prompt.

May import every room below. Everything that a model or a function wrote passes `visible` before a terminal sees it.
"""

__all__: list[str] = []
