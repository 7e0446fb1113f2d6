"""The program's modules as syntax trees, for rules that are asked of all of them.

They are parsed one by one and let go: a million nodes that are kept slow each collection of garbage down.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TOP: Final = Path(__file__).parents[2]
ROOMS: Final = ("agent_core", "knapper", "knapper_ext", "sandbox", "meta_functions")


def module_trees(*words: str, rooms: tuple[str, ...] = ROOMS) -> Iterator[tuple[Path, ast.Module]]:
    """Yield each module with its tree; with words, only those whose text has one of them."""
    for room in rooms:
        for path in sorted((TOP / room).rglob("*.py")):
            text = path.read_text("utf-8")
            if not words or any(word in text for word in words):
                yield path, ast.parse(text)
