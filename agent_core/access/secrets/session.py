"""The secrets of one call: given by name to the function with the grant, masked in everything that leaves it.

What is masked is each secret that the function may have, whether or not it asked, so that what an earlier call of it
kept is masked too; and those of the functions that it called. Of an outcome, every field that comes from a worker is
masked, including future fields.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, Final, TypeAlias, TypeVar

from agent_core.base.errors import ToolwrightError
from sandbox import Outcome, RequestRefused

from .disclosures import DISCLOSED
from .masks import Masks, Pair
from .source import Secrets, is_name

Want: TypeAlias = Callable[[str], Awaitable[bool]]  # asks a human for one more secret by its name
T = TypeVar("T")
_MOST_ASKED = 8


async def never(_name: str) -> bool:
    """Refuse, without asking anyone."""
    return False


class CallSecrets:
    """The secrets of one call; `around` is the session of the function that made the call, if one did."""

    def __init__(
        self,
        secrets: Secrets,
        function: str,
        granted: tuple[str, ...] = (),
        want: Want = never,
        around: "CallSecrets | None" = None,
    ) -> None:
        self._secrets = secrets
        self._function = function
        self._granted = set(granted)
        self._want = want
        self._around = around
        self._asked: set[str] = set()
        self._known: frozenset[Pair] = frozenset()
        if pairs := (secrets.pairs(granted) | DISCLOSED.of(granted) if granted else frozenset()) | DISCLOSED.to(
            function
        ):
            self._know(pairs)

    async def answer(self, name: object) -> str:
        """Return a secret's value.

        Raises:
            RequestRefused: it is not granted, or it is granted and not set.
        """
        if not isinstance(name, str) or not is_name(name):
            raise RequestRefused("a secret's name is made of letters, digits and _, and begins with no digit")
        if name not in self._granted and not await self._wanted(name):
            how = f"toolwright functions grant {self._function} --secret {name}"
            raise RequestRefused(f"`{self._function}` may not use the secret `{name}`. A human grants it with: {how}")
        try:
            value = self._secrets.value(name)
        except ToolwrightError as error:
            raise RequestRefused(str(error)) from error
        self._know({(name, value)})
        DISCLOSED.hand(self._function, (name, value))
        return value

    def over(self, outcome: Outcome) -> Outcome:
        """Return the outcome of the call, masked."""
        return masked(outcome, _masks(self._known))

    def value(self, value: T) -> T:
        """Return a value for another function, masked for this call and all calls around it."""
        return self._outermost.clean_value(value)  # type: ignore[no-any-return]  # of the same shape

    def words(self, value: T) -> T:
        """Return what is shown, kept or asked about, masked as text that may have been cut or said in pieces."""
        return self._outermost.clean_words(value)  # type: ignore[no-any-return]  # of the same shape

    @property
    def _outermost(self) -> Masks:
        return self._around._outermost if self._around else _masks(self._known)

    def settled(self, text: str) -> int:
        """Return how much of a growing text can be reported alone."""
        return _masks(self._known).settled(text)

    def _know(self, pairs: Iterable[Pair]) -> None:
        DISCLOSED.note(pairs)
        self._known |= frozenset(pairs)
        if self._around:
            self._around._know(pairs)

    async def _wanted(self, name: str) -> bool:
        """Ask the user, once per name, whether a secret may be used."""
        if name in self._asked or len(self._asked) >= _MOST_ASKED:
            return False
        self._asked.add(name)
        if await self._want(name):
            self._granted.add(name)
        return name in self._granted


@lru_cache(maxsize=16)
def _masks(pairs: frozenset[Pair]) -> Masks:
    return Masks(pairs)


MEASURED: Final = frozenset({"seconds", "memory", "cpu_s", "limit_s"})  # by the host
VALUE: Final = "value"


def masked(outcome: Outcome, masks: Masks) -> Outcome:
    """Return the outcome without any of the secrets."""
    return _masked_part(outcome, masks) if masks else outcome


def _masked_part(part: T, masks: Masks) -> T:
    names = [field.name for field in fields(part) if field.name not in MEASURED]  # type: ignore[arg-type]  # a dataclass
    return replace(part, **{name: _masked_field(name, getattr(part, name), masks) for name in names})  # type: ignore[type-var]


def _masked_field(name: str, value: Any, masks: Masks) -> Any:  # Any: what a field of an outcome holds
    if name == VALUE:
        return masks.clean_value(value)
    if is_dataclass(value):
        return _masked_part(value, masks)
    match value:
        case tuple():
            return tuple(_masked_field("", item, masks) for item in value)
        case int() | float() if masks.hides(value):
            return 0
        case _:
            return masks.clean_words(value)
