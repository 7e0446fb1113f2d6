"""The functions that constrained mode offers a small model, and when: the data of `constrained.toml`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


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
    making: re.Pattern[str]
    after_result: str
    remembers: Mapping[str, str]
    tells: re.Pattern[str]
    recalls: re.Pattern[str]
    after_change: str
    common: frozenset[str]
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


def read_offer(data: Mapping[str, Any]) -> ConstrainedModels:  # Any: TOML
    """Return the parsed data on what is always listed, what is found, and what is left out."""
    return ConstrainedModels(
        always=tuple(data["always"]),
        finds=frozenset(data["finds"]),
        gives=data["gives"],
        most_of_helper=data["most_of_helper"],
        after_result_of_helper=data["after_result_of_helper"],
        most_found=data["most_found"],
        enough=data["enough"],
        making=_pattern(data["making"]),
        after_result=data["after_result"],
        remembers=data["remembers"],
        tells=_pattern(data["tells"]),
        recalls=_pattern(data["recalls"]),
        after_change=data["after_change"],
        common=frozenset(data["common"].split()),
        hidden={name: frozenset(names) for name, names in data["hidden"].items()},
        on_request={name: frozenset(words) for name, words in data["asked"].items()},
    )


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile("".join(text.split("\n")), re.IGNORECASE | re.DOTALL)
