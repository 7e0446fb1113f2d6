"""The attempts as data: each function of `families/` is one row, and its docstring describes it:

    seen[: remark] | layers that contain it | core leaks: why | ahead: why not

`seen` is what shows outside if the attempt works (`KINDS`). The row's control run removes exactly its `layers`, and
there it must work. `apart` has no control run, for the given reason; `inherent` works everywhere, by design. Each row
runs a second time while a package is imported (`ahead.py`), unless `ahead` says why it does not; `ahead leaks` says why
it works there, `ahead core leaks` why it works there at `core`.
"""

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from sandbox import Code

FAMILIES: Final = Path(__file__).with_name("families")
APART: Final = ("apart", "inherent")
KINDS: Final = {
    "secret": "a secret came back",
    "changed": "files, processes or names outside have changed",
    "heard": "a listener or a terminal of the host was spoken to",
    "dead": "the victim, the host or the warm process was hit by a signal",
    "process": "a process of its own stands beside the worker",
    "worker": "the worker, looked at from outside, has what it must not have",
    "stays": "it goes on when its time is over",
    "amount": "more came than may come",
    "misled": "the host took what is no answer",
    "claims": "the host took a claim that cannot be",
    "next": "the next call is not as a first one",
    "said": "its own word, where nobody outside can see it",
}
SANDBOX: Final = ("namespaces", "landlock", "seccomp", "limits", "privileges")
HOST: Final = ("clock", "output", "result", "requests", "reader", "worker")
MISTAKES: Final = (
    "NameError",
    "AttributeError",
    "TypeError",
    "KeyError",
    "IndexError",
    "SyntaxError",
    "UnboundLocalError",
)
_NO_FAMILY: Final = "hand"
_NOT_AHEAD: Final = {
    "channel": "there is no call yet whose answer could be forged",
    "values": "there is no call yet that returns or raises",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One attempt."""

    family: str
    about: str
    name: str
    seen: str
    remark: str
    layers: tuple[str, ...]
    leaks_at_core: str
    not_ahead: str = ""
    leaks_ahead: str = ""
    leaks_ahead_at_core: str = ""

    @property
    def label(self) -> str:
        """The name of the row in tests and tables."""
        return f"{self.family}.{self.name}"

    @property
    def is_apart(self) -> bool:
        """Whether it has no control run."""
        return self.seen in APART

    def leaks(self, level: str, *, ahead: bool = False) -> bool:
        """Check whether it is known to work at this level, or there while a package is imported."""
        return bool(self.reason(level, ahead=ahead))

    def reason(self, level: str, *, ahead: bool = False) -> str:
        """Return why it works at this level; empty if it must not."""
        at_core = (self.leaks_ahead_at_core if ahead else "") or self.leaks_at_core
        return (self.leaks_ahead if ahead else "") or (at_core if level == "core" else "")


@cache
def rows() -> tuple[Row, ...]:
    """Return every row."""
    return tuple(
        row
        for path in sorted(FAMILIES.glob("*.py"))
        if path.stem != _NO_FAMILY
        for row in _of(path)
    )


def _of(path: Path) -> Iterator[Row]:
    tree = ast.parse(path.read_text())
    about = ast.get_docstring(tree) or ""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield _row(path.stem, about, node.name, ast.get_docstring(node) or "")


def _row(family: str, about: str, name: str, text: str) -> Row:
    seen, layers, *reasons = [part.strip() for part in f"{text}|".split("|")]
    seen, _colon, remark = (part.strip() for part in seen.partition(":"))
    given = {
        kind: why.strip() for kind, _colon, why in (part.partition(":") for part in reasons) if kind
    }
    return Row(
        family,
        about,
        name,
        seen,
        remark,
        tuple(layers.split()),
        leaks_at_core=given.pop("core leaks", ""),
        not_ahead=given.pop("ahead", _NOT_AHEAD.get(family, "")),
        leaks_ahead=given.pop("ahead leaks", ""),
        leaks_ahead_at_core=given.pop("ahead core leaks", ""),
    )


@cache
def modules() -> dict[str, Code]:
    """Return the families as modules of a workspace."""
    return {path.stem: code(path.stem, path.read_text()) for path in FAMILIES.glob("*.py")}


def code(module: str, text: str) -> Code:
    """Return one module."""
    return Code(module, text, f"functions/{module}.py", hashlib.sha256(text.encode()).hexdigest())
