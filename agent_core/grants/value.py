"""What one function may reach: a plain value that can be compared, joined, cut, said and kept."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Final

from .items import KINDS, UNSAID, covered, sign_of, signs_over, spelled

_SAID: Mapping[str, str] = MappingProxyType(
    {
        "network": "fetch from {}",
        "read": "read {}",
        "write": "read and write {}",
        "secrets": "use the secret {}",
        "packages": "import the package {}",
        "memory": "read and change the memory block {}",
        "functions": "call the function {}, which has grants of its own",
    }
)
_UNSAID_AS: Mapping[str, str] = MappingProxyType(
    {
        "network": "hosts that its text does not name (each is asked for when it comes)",
        "read": "files that its text does not name (none but in folders that you grant by name)",
        "write": "files that its text does not name (none but in folders that you grant by name)",
        "secrets": "that its text does not name",
        "memory": "that its text does not name",
        "functions": "that its text does not name",
    }
)


def _widest(kind: str, items: set[str]) -> Iterator[str]:
    """The items that no other of them gives; a folder with its slash stands for the one without."""
    by_sign: defaultdict[str, list[str]] = defaultdict(list)
    for one in items - {UNSAID}:
        by_sign[sign_of(kind, one)].append(one)
    for one in items:
        near = {other for sign in signs_over(kind, one) for other in by_sign.get(sign, ())}
        others = [other for other in near if other != one and covered(kind, one, (other,))]
        if one == UNSAID or all(covered(kind, other, (one,)) and one > other for other in others):
            yield one


@dataclass(frozen=True, slots=True)
class Grants:
    """What one function may reach. Every tuple is sorted; the empty value is nothing.

    An item `?` is what its text does not name. A path ends in `/` for a folder, and is absolute only outside the
    workspace. To write includes to read.
    """

    network: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    seconds: float | None = None
    memory_mib: int | None = None
    stateful: bool = False

    def __post_init__(self) -> None:
        for kind in KINDS:
            object.__setattr__(self, kind, tuple(sorted(_widest(kind, set(getattr(self, kind))))))

    def __bool__(self) -> bool:
        return self != NOTHING

    def __or__(self, other: "Grants") -> "Grants":
        """Both together."""
        return joined((self, other))

    def __and__(self, other: "Grants") -> "Grants":
        """What each of the two gives."""
        return replace(
            _of({kind: _both(kind, self, other) for kind in KINDS}),
            seconds=min(self.seconds or 0, other.seconds or 0) or None,
            memory_mib=min(self.memory_mib or 0, other.memory_mib or 0) or None,
            stateful=self.stateful and other.stateful,
        )

    @property
    def is_outward(self) -> bool:
        """Whether some of it lies outside the worker, where examples never reach."""
        return bool(self.network or self.read or self.write or self.secrets or self.memory or self.functions)

    def items(self, kind: str) -> tuple[str, ...]:
        """The items of one kind."""
        found: tuple[str, ...] = getattr(self, kind)
        return found

    def gives(self, kind: str, item: str) -> bool:
        """Whether it gives one item of a kind."""
        held = self.items(kind) + (self.write if kind == "read" else ())
        return covered(kind, item, held)

    def covers(self, other: "Grants") -> bool:
        """Whether it gives all that the other does."""
        return not other.without(self)

    def without(self, other: "Grants") -> "Grants":
        """What it has and the other does not give: what is missing there."""
        left = {kind: tuple(one for one in self.items(kind) if not other.gives(kind, one)) for kind in KINDS}
        return replace(
            _of(left),
            seconds=self.seconds if (self.seconds or 0) > (other.seconds or 0) else None,
            memory_mib=self.memory_mib if (self.memory_mib or 0) > (other.memory_mib or 0) else None,
            stateful=self.stateful and not other.stateful,
        )

    def serving(self, needs: "Grants") -> "Grants":
        """As much of it as these needs, read from a text, have a use for; what no text shows stays."""
        kept = {kind: tuple(one for one in self.items(kind) if _serves(kind, one, needs)) for kind in KINDS}
        return replace(_of(kept), seconds=self.seconds, memory_mib=self.memory_mib, stateful=self.stateful)

    def sentences(self) -> list[str]:
        """What a human reads of it, a line each."""
        lines = [_sentence(kind, one) for kind in KINDS for one in self.items(kind)]
        lines += [f"run for up to {self.seconds:g} s"] if self.seconds else []
        lines += [f"use up to {self.memory_mib} MiB of memory"] if self.memory_mib else []
        return [*lines, *(["keep a worker of its own between calls"] if self.stateful else [])]

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Only what there is of it, in the order of the fields."""
        held = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: list(value) if isinstance(value, tuple) else value for name, value in held if value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Grants":  # Any: what `to_json` gave
        """The value again."""
        held = {kind: tuple(data.get(kind, ())) for kind in KINDS}
        rest = {name: data[name] for name in ("seconds", "memory_mib", "stateful") if name in data}
        return replace(_of(held), **rest)


NOTHING: Final = Grants()


def joined(found: Iterable[Grants]) -> Grants:
    """All of them together."""
    every = [*found]
    items = {kind: tuple(item for one in every for item in one.items(kind)) for kind in KINDS}
    return replace(
        _of(items),
        seconds=max((one.seconds or 0 for one in every), default=0) or None,
        memory_mib=max((one.memory_mib or 0 for one in every), default=0) or None,
        stateful=any(one.stateful for one in every),
    )


def _both(kind: str, one: Grants, other: Grants) -> tuple[str, ...]:
    ours, theirs = one.items(kind), other.items(kind)
    return tuple(item for item in ours if other.gives(kind, item)) + tuple(
        item for item in theirs if one.gives(kind, item)
    )


def _of(items: dict[str, tuple[str, ...]]) -> Grants:
    return Grants(
        network=items["network"],
        read=items["read"],
        write=items["write"],
        secrets=items["secrets"],
        packages=items["packages"],
        memory=items["memory"],
        functions=items["functions"],
    )


def _serves(kind: str, item: str, needs: Grants) -> bool:
    wanted = needs.items(kind) + (needs.read if kind == "write" else needs.write if kind == "read" else ())
    return UNSAID in wanted or any(covered(kind, one, (item,)) or covered(kind, item, (one,)) for one in wanted)


def _sentence(kind: str, item: str) -> str:
    if item == UNSAID:
        return _SAID[kind].format(_UNSAID_AS[kind])
    outside = " (outside the workspace)" if kind in ("read", "write") and item.startswith("/") else ""
    return _SAID[kind].format(spelled(item)) + outside
