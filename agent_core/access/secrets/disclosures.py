"""The secrets that this process has handed out, for what outlives a call: its log, and the file of a crash."""

import logging
import traceback
from collections.abc import Iterable

from .masks import Masks, Pair

LOGGERS = (
    "toolwright.broker",
    "toolwright.grants",
    "toolwright.packages",
    "agent_core.runtime.host_functions",
    "sandbox.processes.calls",
)


class Disclosures:
    """Every secret that was given to a function since the process began."""

    def __init__(self) -> None:
        self._pairs: frozenset[Pair] = frozenset()
        self._by_function: dict[str, frozenset[Pair]] = {}
        self._masks = Masks(())

    def note(self, pairs: Iterable[Pair]) -> None:
        """Mask these from now on."""
        if not self._pairs.issuperset(pairs := frozenset(pairs)):
            self._pairs |= pairs
            self._masks = Masks(self._pairs)

    def hand(self, function: str, pair: Pair) -> None:
        """Record that a function was given this secret, and may remember it."""
        self._by_function[function] = self.to(function) | {pair}

    def to(self, function: str) -> frozenset[Pair]:
        """Return what a function was given, whatever it may use now."""
        return self._by_function.get(function, frozenset())

    def of(self, names: Iterable[str]) -> frozenset[Pair]:
        """Return the pairs with these names, with every value that each has had."""
        wanted_names = frozenset(names)
        return frozenset(pair for pair in self._pairs if pair[0] in wanted_names)

    def clean(self, text: str) -> str:
        """Return the text without any of them, or long pieces of them."""
        return self._masks.clean_said(text)

    def __bool__(self) -> bool:
        return bool(self._masks)


DISCLOSED = Disclosures()


class _Shade(logging.Filter):
    """A filter that masks a record before any handler sees it; its error becomes text, since its frames hold values."""

    def filter(self, record: logging.LogRecord) -> bool:
        if DISCLOSED:
            record.msg, record.args = DISCLOSED.clean(record.getMessage()), ()
            if record.exc_info and record.exc_info[1] is not None:
                text = "".join(traceback.format_exception(record.exc_info[1])).rstrip("\n")
                record.exc_text, record.exc_info = DISCLOSED.clean(text), None
            record.stack_info = DISCLOSED.clean(record.stack_info) if record.stack_info else None
        return True


_SHADE = _Shade()


def shade_logs() -> None:
    """Mask the records of every logger of this program."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_SHADE)
