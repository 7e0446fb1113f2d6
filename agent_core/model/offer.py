"""The functions that constrained mode offers a small model, and when: the data of `constrained.toml`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from pydantic import BeforeValidator

from .quirks import Pattern, as_kind, parsed_toml


@dataclass(frozen=True, slots=True)
class ConstrainedModels:
    """The data of `constrained.toml`."""

    always: tuple[str, ...]
    finds: frozenset[str]
    gives: str
    most_of_helper: int
    after_result_of_helper: str
    most_found: int
    enough: int
    making: Pattern
    after_result: str
    remembers: Mapping[str, str]
    tells: Pattern
    recalls: Pattern
    after_change: str
    common: Annotated[frozenset[str], BeforeValidator(str.split)]
    hidden: Mapping[str, frozenset[str]]
    on_request: Mapping[str, frozenset[str]]

    @property
    def about_functions(self) -> frozenset[str]:
        """The known functions about functions; their answers say what to do next."""
        return frozenset({*self.always, *self.hidden, *self.on_request}) - self.finds

    @property
    def about_memory(self) -> frozenset[str]:
        """The functions of memory that a tiny model is shown only where a message is about it."""
        return self.finds | frozenset(self.remembers)

    def listed(self, names: Sequence[str], *, is_tiny: bool) -> tuple[str, ...]:
        """Return the functions in the fixed text, of those with these names: for a helper, all of them."""
        if self.gives in names:
            return tuple(names)[: self.most_of_helper]
        return tuple(name for name in self.always if not (is_tiny and name in self.about_memory))

    def wanted(self, message: str) -> frozenset[str]:
        """Return the functions of memory that a message of the user is about."""
        if self.making.search(message):
            return frozenset()
        edits = self.about_memory - self.finds if self.tells.search(message) else frozenset()
        return edits | (self.finds if self.recalls.search(message) else frozenset())

    def after(self, function: str, *, is_helper: bool = False) -> str:
        """Return the text to add to the answer of a function."""
        if is_helper:
            return self.after_result_of_helper
        if function in self.remembers:
            return self.remembers[function]
        return self.after_change if function in self.about_functions else self.after_result


@cache
def choice() -> ConstrainedModels:
    """Return the data on what a small model is offered, read once."""
    return as_kind(parsed_toml("constrained.toml"), ConstrainedModels)
