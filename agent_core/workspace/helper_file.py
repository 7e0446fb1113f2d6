"""A helper's file, `helpers/NAME.toml`, parsed into a helper or its problems. Nothing in it is run."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.errors import ConfigError
from agent_core.base.limits import SpendingLimits
from agent_core.base.matching import nearest
from agent_core.base.problem import Place, Problem
from agent_core.base.untrusted import one_line
from agent_core.registry.function import fits
from agent_core.registry.schema import Signature, read_signature
from agent_core.registry.source import caller_of, hash_of
from agent_core.runtime.dispatch import GIVE
from sandbox.wire.strict_json import OF_A_FILE, Malformed, lines_of_keys, read_toml

from .agent_files import MOST_PROBLEMS

if TYPE_CHECKING:
    from agent_core.registry.function import Function

FOLDER: Final = "helpers"
MOST_BYTES: Final = 64 << 10
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
DEFAULT_BUDGET: Final = SpendingLimits(steps=12, tokens=60_000, seconds=300, depth=1)
_LONGEST_PURPOSE: Final = 1_000
_MOST_ENTRIES: Final[Mapping[str, int]] = {"inputs": 50, "functions": 200, "helpers": 200, "examples": 50}
_KINDS: Final[Mapping[str, tuple[type, str]]] = {
    "purpose": (str, "a text"),
    "inputs": (dict, 'a table such as { text = "str" }'),
    "result": (str, 'a type such as "list[str]"'),
    "functions": (list, "a list of names and patterns"),
    "helpers": (list, "a list of names and patterns"),
    "model": (str, "a name"),
    "persona": (str, "a text"),
    "budget": (dict, "a table such as { steps = 8, tokens = 8000 }"),
    "grows": (bool, "true or false"),
    "examples": (list, 'tables such as { inputs = { text = "a b" }, function = "slug", result = "a-b" }'),
}
_LISTS: Final = ("functions", "helpers")
_EXAMPLE_KEYS: Final = frozenset({"inputs", "function", "result"})


@dataclass(frozen=True, slots=True)
class HelperExample:
    """An example: inputs, and the result that one function returns for those inputs that it has parameters for."""

    inputs: Mapping[str, Any]  # Any: JSON
    function: str
    result: Any


@dataclass(frozen=True, slots=True)
class Helper:
    """A helper as described by its file. `function` is its signature for callers, `answer` the call with its result."""

    name: str
    text: str
    function: "Function"
    answer: "Function"
    budget: SpendingLimits
    functions: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ()
    model: str = ""
    persona: str = ""
    grows: bool = False
    examples: tuple[HelperExample, ...] = ()

    @property
    def purpose(self) -> str:
        """The purpose, which is the description for callers."""
        return self.function.description

    def may_call(self, function: "Function") -> bool:
        """Check whether the helper may call a function of the workspace."""
        return fits(self.functions, function)


def path_of(name: str) -> str:
    """Return the path of a helper's file for messages."""
    return f"{FOLDER}/{name}.toml"


def read_helper(name: str, text: str, most: int = MOST_PROBLEMS) -> Helper | tuple[Problem, ...]:
    """Return the helper in a file's text, or the first `most` problems with it."""
    return _FileReader(name, text, most).read()


class _FileReader:
    """A parser of one file that collects its problems."""

    def __init__(self, name: str, text: str, most: int = MOST_PROBLEMS) -> None:
        self.name, self.text, self.path, self.most = name, text, path_of(name), most
        self.problems: list[Problem] = []

    def read(self) -> Helper | tuple[Problem, ...]:
        if not NAME.fullmatch(self.name) or caller_of(self.name):
            message = f"`{one_line(self.name, 80)}` cannot be a helper's name"
            self.add("helper-name", message, "use up to 40 letters, digits and `_`, beginning with a letter")
            return tuple(self.problems)
        try:
            table = read_toml(self.text, most=MOST_BYTES, values=OF_A_FILE)
        except Malformed as error:
            self.add("toml", f"the file is not valid TOML: {error}", "fix it; strings stand in quotes")
            return tuple(self.problems)
        self.check_keys(table)
        if self.problems:
            return tuple(self.problems)
        answer = self.signature(
            GIVE, "Give the result to your caller. This ends your work.", {"result": table["result"]}, "None"
        )
        function = self.signature(self.name, table["purpose"].strip(), table.get("inputs", {}), table["result"])
        budget, examples = self.budget(table.get("budget", {})), tuple(self.examples(table.get("examples", ())))
        if answer is None or function is None or self.problems:
            return tuple(dict.fromkeys(self.problems))
        return Helper(
            self.name,
            self.text,
            function,
            replace(answer, returns=table["result"]),
            budget,
            tuple(table.get("functions", ())),
            tuple(table.get("helpers", ())),
            table.get("model", "").strip(),
            table.get("persona", "").strip(),
            table.get("grows", False),
            examples,
        )

    def check_keys(self, table: Mapping[str, Any]) -> None:
        for key, value in table.items():
            if len(self.problems) == self.most:
                return
            self.check_value(key, value)
        for key in ("purpose", "result"):
            if key not in table:
                self.add("missing-key", f"`{key}` is missing", f"it is {_KINDS[key][1]}")
        purpose = table.get("purpose")
        if isinstance(purpose, str) and not 0 < len(purpose.strip()) <= _LONGEST_PURPOSE:
            fix = f"say in one or two sentences what it is for, in up to {_LONGEST_PURPOSE:,} characters"
            self.add("purpose", "`purpose` is empty, or too long to be shown with each request", fix, "purpose")

    def check_value(self, key: str, value: Any) -> None:  # Any: TOML
        if key not in _KINDS:
            meant = nearest(key, _KINDS)
            fix = f"did you mean `{meant[0]}`?" if meant else f"known are: {', '.join(_KINDS)}"
            self.add("unknown-key", f"`{one_line(key, 80)}` is no key of a helper", fix, key)
        elif not isinstance(value, _KINDS[key][0]):
            self.add("wrong-kind", f"`{key}` cannot be {one_line(repr(value), 80)}", f"it is {_KINDS[key][1]}", key)
        elif isinstance(value, list | dict) and len(value) > _MOST_ENTRIES.get(key, OF_A_FILE):
            self.add("too-many", f"`{key}` has {len(value):,} entries", f"write at most {_MOST_ENTRIES[key]}", key)
        elif isinstance(value, list) and key in _LISTS and not all(isinstance(item, str) and item for item in value):
            self.add("wrong-kind", f"`{key}` has an entry that is no name", f"it is {_KINDS[key][1]}", key)
        elif isinstance(value, dict) and key == "inputs" and not all(isinstance(item, str) for item in value.values()):
            self.add("wrong-kind", "`inputs` has a type that is no text", 'write it in quotes: text = "str"', key)

    def signature(self, name: str, about: str, inputs: Mapping[str, str], result: str) -> "Function | None":
        function = read_signature(Signature(name, about, inputs, result), FOLDER, self.path, self.place)
        if isinstance(function, tuple):
            self.problems += function[: self.most - len(self.problems)]
            return None
        # The version is that of the file, so that a recorded call can be matched to it.
        return replace(function, version=hash_of(self.text), body_hash=hash_of(self.text))

    def budget(self, table: Mapping[str, Any]) -> SpendingLimits:
        try:
            own = SpendingLimits.read(table, f"{self.path}, `budget`")
        except ConfigError as error:
            self.add("budget", error.message.partition(": ")[2].rstrip("."), error.fix.rstrip("."), "budget")
            return DEFAULT_BUDGET
        return SpendingLimits(**(DEFAULT_BUDGET.amounts() | own.amounts()), where=own.where)

    def examples(self, tables: Sequence[Any]) -> Iterator[HelperExample]:
        for table in tables:
            if not isinstance(table, dict) or table.keys() != _EXAMPLE_KEYS or not isinstance(table["inputs"], dict):
                self.add("example", "an example is not complete", f"it is one of {_KINDS['examples'][1]}", "examples")
            else:
                yield HelperExample(table["inputs"], str(table["function"]), table["result"])

    @cached_property
    def lines(self) -> Mapping[str, int]:
        return lines_of_keys(self.text)

    def place(self, key: str) -> Place:
        return Place(self.path, self.lines.get(key, 1))

    def add(self, code: str, message: str, fix: str, key: str = "") -> None:
        self.problems.append(Problem(code, message, self.place(key) if key else Place(self.path, 1), fix))


def place_of(helper: Helper, key: str) -> Place:
    """Return the place of a key in a helper's file."""
    return _FileReader(helper.name, helper.text).place(key)


def written(table: Mapping[str, Any]) -> str:  # Any: JSON
    """Return the text of a file with these keys."""
    return "".join(f"{key} = {_toml(value)}\n" for key, value in table.items())


def _toml(value: Any) -> str:  # Any: JSON
    match value:
        case Mapping():
            return f"{{ {', '.join(f'{_toml(str(key))} = {_toml(inner)}' for key, inner in value.items())} }}"
        case list() | tuple():
            return f"[{', '.join(map(_toml, value))}]"
        case _:
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
