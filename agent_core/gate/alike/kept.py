"""What was worked out of functions before, by this or another process, and is kept beside the workspace's state.

It is found by what it was made of and by the code that made it, so that it is never out of date; what cannot be
read is made anew.
"""

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Final, Protocol

from sandbox.foreign import DEEPEST_ROW, LOOSE, read_json

from ...storage import SaveSketches, Write

Key = tuple[str, str, str]  # hashes: a function's own text, what stands around it, its whole module
_MAKERS: Final = ("alike/*.py", "tree.py", "../registry/tree.py")


class Shelf(Protocol):
    """What is needed of the store."""

    async def sketches(self, keys: Sequence[str]) -> dict[str, str]:
        """Those that are known."""

    async def apply(self, writes: Sequence[Write]) -> None:
        """Keep some."""


@dataclass(frozen=True, slots=True)
class Bones:
    """A function's form, in short: its hash, pieces of it, its length in words, whether it leans on a neighbour."""

    digest: str = ""
    body: frozenset[int] = frozenset()
    size: int = 0
    leans: bool = False


async def find(shelf: Shelf | None, keys: Mapping[str, Key]) -> dict[str, Bones]:
    """What is kept of these functions."""
    if shelf is None or not keys:
        return {}
    names = {name: _named(key) for name, key in keys.items()}
    kept = await shelf.sketches([*names.values()])
    found = {name: _read(kept[each], keys[name]) for name, each in names.items() if each in kept}
    return {name: bones for name, bones in found.items() if bones is not None}


async def keep(shelf: Shelf | None, made: Mapping[Key, Bones]) -> None:
    """Keep what was made."""
    if shelf is not None and made:
        rows = {_named(key): json.dumps([{**asdict(one), "body": [*one.body]}, key[2]]) for key, one in made.items()}
        await shelf.apply([SaveSketches(rows)])


def _read(text: str, key: Key) -> Bones | None:
    try:
        made, module = read_json(text, LOOSE, deepest=DEEPEST_ROW)
        bones = Bones(**{**made, "body": frozenset(made["body"])})
    except (ValueError, TypeError, KeyError):
        return None
    return bones if module == key[2] or not bones.leans else None


def _named(key: Key) -> str:
    return hashlib.sha256("\n".join((_maker(), *key[:2])).encode()).hexdigest()


@cache
def _maker() -> str:
    """The code that makes forms, and the Python whose trees it reads."""
    here = Path(__file__).parents[1]
    texts = [
        path.read_bytes() for pattern in _MAKERS for path in sorted((here / pattern).parent.glob(Path(pattern).name))
    ]
    return hashlib.sha256(b"\0".join([repr(sys.version_info[:2]).encode(), *texts])).hexdigest()
