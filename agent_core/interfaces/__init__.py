"""The interfaces through which people and scripts reach an agent: command line, one-shot turns, and the prompt.

`commands` contains the handlers shared by the shell and the prompt, `render` turns results into lines, and `repl` is
the prompt. All text written by a model or a function passes through `visible` before it reaches a terminal.
"""

__all__: list[str] = []
