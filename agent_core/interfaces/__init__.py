"""The ways in which people and scripts reach an agent: the command line, one-shot turns, and the prompt.

`commands` has the handlers that the shell and the prompt share, `render` turns results into lines, `repl` is the
prompt. Everything that a model or a function wrote passes `visible` before a terminal sees it.
"""

__all__: list[str] = []
