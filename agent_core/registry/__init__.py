"""The registry: turns source text into callable functions.

May touch: the files of `functions/` (reading, watching, saving) and nothing else. It never imports or runs a module of
`functions/`: everything is read as text and as a syntax tree.
"""

__all__: list[str] = []
