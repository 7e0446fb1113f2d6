"""Forms computed earlier, by this or another process, and stored with the workspace's state.

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

from agent_core.storage import SaveSketches, Write
from sandbox.wire.foreign import DEEPEST_ROW, LOOSE, read_json

Key = tuple[str, str, str]  # hashes: a function's own text, what stands around it, its whole module
PROGRAM: Final = Path(__file__).parents[3]
MAKERS: Final = ("functions/gate/clones/*.py", "functions/gate/tree.py", "registry/tree.py")
"""The code that makes forms, as patterns below `PROGRAM`: what is stored is of another name once any of it changes."""


class IndexStore(Protocol):
    """The part of the store that is needed here."""

    async def sketches(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored sketches for these keys."""

    async def apply(self, writes: Sequence[Write]) -> None:
        """Store some sketches."""


@dataclass(frozen=True, slots=True)
class Bones:
    """A function's form, in short: its hash, pieces of it, its length in words, whether it depends on a neighbor."""

    digest: str = ""
    body: frozenset[int] = frozenset()
    size: int = 0
    leans: bool = False


async def find(shelf: IndexStore | None, keys: Mapping[str, Key]) -> dict[str, Bones]:
    """Return the stored forms of these functions."""
    if shelf is None or not keys:
        return {}
    names = {name: _named(key) for name, key in keys.items()}
    rows = await shelf.sketches([*names.values()])
    bones_by_name = {name: _read(rows[digest], keys[name]) for name, digest in names.items() if digest in rows}
    return {name: bones for name, bones in bones_by_name.items() if bones is not None}


async def keep(shelf: IndexStore | None, bones_by_key: Mapping[Key, Bones]) -> None:
    """Store these forms."""
    if shelf is not None and bones_by_key:
        rows = {
            _named(key): json.dumps([{**asdict(bones), "body": [*bones.body]}, key[2]])
            for key, bones in bones_by_key.items()
        }
        await shelf.apply([SaveSketches(rows)])


def _read(text: str, key: Key) -> Bones | None:
    try:
        fields, module = read_json(text, LOOSE, deepest=DEEPEST_ROW)
        bones = Bones(**{**fields, "body": frozenset(fields["body"])})
    except (ValueError, TypeError, KeyError):
        return None
    return bones if module == key[2] or not bones.leans else None


def _named(key: Key) -> str:
    return hashlib.sha256("\n".join((_maker(), *key[:2])).encode()).hexdigest()


@cache
def _maker() -> str:
    """Return a hash of the code that makes forms, and of the Python that parses them."""
    return hashlib.sha256(repr(sys.version_info[:2]).encode() + code_hash(PROGRAM, MAKERS)).hexdigest()


def code_hash(root: Path, patterns: Sequence[str]) -> bytes:
    """Return a hash of every file that the patterns match.

    Raises:
        LookupError: one of them matches nothing, so that a change of the code that it named would go unnoticed.
    """
    digest = hashlib.sha256()
    for pattern in patterns:
        paths = sorted(root.glob(pattern))
        if not paths:
            raise LookupError(f"`{pattern}` matches no file below `{root}`. Name the file as it is called now.")
        for path in paths:
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()
