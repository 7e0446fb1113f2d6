"""The helpers of a workspace: their files, the gate that checks them, and the library of those in force.

Files are loaded from `helpers/` and reloaded when they change; their text is parsed, and nothing in it is run. The gate
checks that the names in a file exist, that its name and purpose are unique, and that its examples are correct. If a
file is rejected, its last valid version stays in force, and its problems are reported. In the store's history, a
helper's module is the path of its file, and an empty text is a removal.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_core.base import events
from agent_core.base.errors import ConfigError, UnknownName, UsageError
from agent_core.base.late import LateModule
from agent_core.base.limits import SpendingLimits
from agent_core.base.matching import (
    LONGEST_PATTERN,
    did_you_mean,
    look,
    names_by_look,
    nearest,
)
from agent_core.base.offload import in_background
from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass, replace, to_json
from agent_core.base.untrusted import one_line
from agent_core.functions.answers import CallReport
from agent_core.functions.service import USER, Author, FunctionService
from agent_core.functions.service.history import Version
from agent_core.memory import words
from agent_core.registry.arguments import read as read_arguments
from agent_core.registry.folder_access import is_there
from agent_core.registry.function import fits
from agent_core.registry.module_edits import remove_text, save_text
from agent_core.registry.schema import Signature, read_signature
from agent_core.registry.source import OF_THE_PROGRAM, caller_of, hash_of
from agent_core.runtime.dispatch import GIVE
from agent_core.storage import SaveVersion, Store
from agent_core.storage.agent_store import HELPER_RUN
from sandbox.wire.lines import bare_lines
from sandbox.wire.strict_json import OF_A_FILE, Malformed, lines_of_keys, read_toml

from .agent_files import (
    MOST_BYTES,
    MOST_PROBLEMS,
    RESERVED,
    Stamp,
    ValueCount,
    first_problems,
    read_of_folder,
    stamps_of,
)

if TYPE_CHECKING:
    from agent_core.registry import watch
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot
else:
    watch = LateModule("agent_core.registry.watch")


_FOLDER: Final = "helpers"
_SUFFIX: Final = ".toml"
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
_DEFAULT_BUDGET: Final = SpendingLimits(steps=12, tokens=60_000, seconds=300, depth=1)
_LONGEST_PURPOSE: Final = 1_000
_MOST_ENTRIES: Final[Mapping[str, int]] = {
    "inputs": 50,
    "functions": 200,
    "helpers": 200,
    "examples": 50,
}
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
    "examples": (
        list,
        'tables such as { inputs = { text = "a b" }, function = "slug", result = "a-b" }',
    ),
}
_LISTS: Final = ("functions", "helpers")
_WILD: Final = frozenset("*?[")  # what makes a name a pattern
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
    return f"{_FOLDER}/{name}{_SUFFIX}"


def read_helper(name: str, text: str, most: int = MOST_PROBLEMS) -> Helper | tuple[Problem, ...]:
    """Return the helper in a file's text, or the first `most` problems with it."""
    return _FileReader(name, text, most).read()


class _FileReader:
    """A parser of one file that collects its problems."""

    def __init__(self, name: str, text: str, most: int = MOST_PROBLEMS) -> None:
        self.name, self.text, self.path, self.most = name, text, path_of(name), most
        self.problems: list[Problem] = []

    def read(self) -> Helper | tuple[Problem, ...]:
        if not _NAME.fullmatch(self.name) or caller_of(self.name):
            message = f"`{one_line(self.name, 80)}` cannot be a helper's name"
            self.add(
                "helper-name",
                message,
                "use up to 40 letters, digits and `_`, beginning with a letter",
            )
            return tuple(self.problems)
        try:
            table = read_toml(self.text, most=MOST_BYTES, values=OF_A_FILE)
        except Malformed as error:
            self.add(
                "toml", f"the file is not valid TOML: {error}", "fix it; strings stand in quotes"
            )
            return tuple(self.problems)
        self.check_keys(table)
        if self.problems:
            return tuple(self.problems)
        answer = self.signature(
            GIVE,
            "Give the result to your caller. This ends your work.",
            {"result": table["result"]},
            "None",
        )
        function = self.signature(
            self.name, table["purpose"].strip(), table.get("inputs", {}), table["result"]
        )
        budget, examples = (
            self.budget(table.get("budget", {})),
            tuple(self.examples(table.get("examples", ()))),
        )
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
            self.add(
                "purpose",
                "`purpose` is empty, or too long to be shown with each request",
                fix,
                "purpose",
            )

    def check_value(self, key: str, value: Any) -> None:  # Any: TOML
        if key not in _KINDS:
            meant = nearest(key, _KINDS)
            fix = f"did you mean `{meant[0]}`?" if meant else f"known are: {', '.join(_KINDS)}"
            self.add("unknown-key", f"`{one_line(key, 80)}` is no key of a helper", fix, key)
        elif not isinstance(value, _KINDS[key][0]):
            self.add(
                "wrong-kind",
                f"`{key}` cannot be {one_line(repr(value), 80)}",
                f"it is {_KINDS[key][1]}",
                key,
            )
        elif isinstance(value, list | dict) and len(value) > _MOST_ENTRIES.get(key, OF_A_FILE):
            self.add(
                "too-many",
                f"`{key}` has {len(value):,} entries",
                f"write at most {_MOST_ENTRIES[key]}",
                key,
            )
        elif (
            isinstance(value, list)
            and key in _LISTS
            and not all(isinstance(item, str) and item for item in value)
        ):
            self.add(
                "wrong-kind",
                f"`{key}` has an entry that is no name",
                f"it is {_KINDS[key][1]}",
                key,
            )
        elif (
            isinstance(value, dict)
            and key == "inputs"
            and not all(isinstance(item, str) for item in value.values())
        ):
            self.add(
                "wrong-kind",
                "`inputs` has a type that is no text",
                'write it in quotes: text = "str"',
                key,
            )

    def signature(
        self, name: str, about: str, inputs: Mapping[str, str], result: str
    ) -> "Function | None":
        function = read_signature(
            Signature(name, about, inputs, result), _FOLDER, self.path, self.place
        )
        if isinstance(function, tuple):
            self.problems += function[: self.most - len(self.problems)]
            return None
        # The version is that of the file, so that a recorded call can be matched to it.
        return replace(function, version=hash_of(self.text), body_hash=hash_of(self.text))

    def budget(self, table: Mapping[str, Any]) -> SpendingLimits:
        try:
            own = SpendingLimits.read(table, f"{self.path}, `budget`")
        except ConfigError as error:
            self.add(
                "budget",
                error.message.partition(": ")[2].rstrip("."),
                error.fix.rstrip("."),
                "budget",
            )
            return _DEFAULT_BUDGET
        return SpendingLimits(**(_DEFAULT_BUDGET.amounts() | own.amounts()), where=own.where)

    def examples(self, tables: Sequence[Any]) -> Iterator[HelperExample]:
        for table in tables:
            if (
                not isinstance(table, dict)
                or table.keys() != _EXAMPLE_KEYS
                or not isinstance(table["inputs"], dict)
            ):
                self.add(
                    "example",
                    "an example is not complete",
                    f"it is one of {_KINDS['examples'][1]}",
                    "examples",
                )
            else:
                yield HelperExample(table["inputs"], str(table["function"]), table["result"])

    @cached_property
    def lines(self) -> Mapping[str, int]:
        return lines_of_keys(self.text)

    def place(self, key: str) -> Place:
        return Place(self.path, self.lines.get(key, 1))

    def add(self, code: str, message: str, fix: str, key: str = "") -> None:
        self.problems.append(
            Problem(code, message, self.place(key) if key else Place(self.path, 1), fix)
        )


def _place_of(helper: Helper, key: str) -> Place:
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


_NEAR_PURPOSE: Final = 0.75
"""The share of common words among all words of two purposes from which they count as nearly the same."""


@dataclass(frozen=True)
class Surroundings:
    """The context for checking a helper's file: the functions, and other helpers."""

    snapshot: "Snapshot"
    helpers: Mapping[str, Helper]

    @cached_property
    def names_by_look(self) -> Mapping[str, Sequence[str]]:
        """All names that a helper must not resemble, sorted, by how they look: a folder may have a thousand files."""
        return names_by_look({*self.snapshot.functions, *OF_THE_PROGRAM, *self.helpers})

    @cached_property
    def function_names(self) -> frozenset[str]:
        """The names of the functions, alone and with their modules."""
        functions = self.snapshot.functions.values()
        dotted = (f"{function.module}.{function.name}" for function in functions)
        return frozenset(dotted).union(self.snapshot.functions)

    @cached_property
    def _nearest(self) -> dict[str, str]:
        """What was found by `nearest_name`: a function that is gone may be named by every file."""
        return {}

    def nearest_name(self, name: str) -> str:
        """Return the function or helper with the most similar name, or an empty text."""
        if name not in self._nearest:
            names = nearest(name, chain(self.snapshot.functions, self.helpers))
            self._nearest[name] = names[0] if names else ""
        return self._nearest[name]

    def has_function(self, pattern: str) -> bool:
        """Check whether a pattern names a function; a plain name is looked up, not compared with all of them."""
        if len(pattern) <= LONGEST_PATTERN and _WILD.isdisjoint(pattern):
            return pattern in self.function_names
        return any(fits((pattern,), function) for function in self.snapshot.functions.values())


def problems_around(helper: Helper, surroundings: Surroundings) -> tuple[Problem, ...]:
    """Return the problems of a helper in its context, such as unknown names and name clashes."""
    checks = (
        _clashes(helper, surroundings),
        _unknown(helper, surroundings),
        _depth(helper),
        _examples(helper, surroundings),
    )
    return tuple(islice(chain.from_iterable(checks), MOST_PROBLEMS))


def _clashes(helper: Helper, surroundings: Surroundings) -> Iterator[Problem]:
    where, fix = Place(path_of(helper.name), 1), "give the helper another name: rename its file"
    other = surroundings.snapshot.functions.get(helper.name)
    if helper.name in OF_THE_PROGRAM or helper.name == GIVE or helper.name.lower() in RESERVED:
        yield Problem(
            "reserved-name", f"`{helper.name}` is a name that the program itself uses", where, fix
        )
    elif other is not None:
        message = (
            f"`{helper.name}` is already the function at {other.path}:{other.line}, which stays"
        )
        yield Problem("name-clash", message, where, fix)
    else:
        for name in surroundings.names_by_look.get(look(helper.name), ()):
            if name == helper.name:
                continue
            yield Problem(
                "look-alike", f"`{helper.name}` looks like `{name}`, which is there", where, fix
            )


def _unknown(helper: Helper, surroundings: Surroundings) -> Iterator[Problem]:
    where = _place_of(helper, "functions")
    for pattern in helper.functions:
        if surroundings.has_function(pattern):
            continue
        shown = one_line(pattern, 80)
        if pattern in OF_THE_PROGRAM:
            message = f"`{shown}` is a function of the program, which no helper is given"
            yield Problem(
                "meta-function",
                message,
                where,
                "`grows = true` lets it make functions; leave the others out",
            )
        elif not _WILD.isdisjoint(pattern):
            yield Problem(
                "no-function",
                f"`{shown}` fits no function",
                where,
                "make one, or leave it out",
                "warns",
            )
        else:
            name = surroundings.nearest_name(pattern)
            fix = "list_functions and `knapper functions list` name them"
            if name:
                fix = f"did you mean `{name}`?"
            if name in surroundings.helpers:
                fix = f"{fix} A helper belongs into `helpers`"
            yield Problem("unknown-function", f"there is no function `{shown}`", where, fix)
    where = _place_of(helper, "helpers")
    for pattern in helper.helpers:
        shown = one_line(pattern, 80)
        if pattern == helper.name:
            fix = "leave it out: no helper calls itself"
            yield Problem("own-name", f"`{shown}` is the helper itself", where, fix)
        elif _WILD.isdisjoint(pattern) and pattern not in surroundings.helpers:
            names = nearest(pattern, surroundings.helpers)
            fix = f"did you mean `{names[0]}`?" if names else "`knapper helpers list` names them"
            yield Problem("unknown-helper", f"there is no helper `{shown}`", where, fix)


def _depth(helper: Helper) -> Iterator[Problem]:
    if helper.helpers and (helper.budget.depth or 0) < 2:
        message = "`helpers` names helpers that it may call, and its depth lets it call none"
        fix = "write `depth = 2` into `budget`, or leave `helpers` out"
        yield Problem("depth", message, _place_of(helper, "helpers"), fix)


def _examples(helper: Helper, surroundings: Surroundings) -> Iterator[Problem]:
    where = _place_of(helper, "examples")
    for example in helper.examples:
        for kind, value, parameters in (
            ("inputs", example.inputs, helper.function.parameters),
            ("result", {"result": example.result}, helper.answer.parameters),
        ):
            problems = read_arguments(json.dumps(value, default=str), parameters)
            if isinstance(problems, tuple):
                yield Problem(
                    "example",
                    f"the {kind} of an example do not fit: {problems[0].message}",
                    where,
                    "fix them",
                )
        function = surroundings.snapshot.functions.get(example.function)
        if function is None or not helper.may_call(function):
            message = f"an example names `{one_line(example.function, 80)}`, which is not one of its functions"
            yield Problem(
                "example",
                message,
                where,
                "name the function that gives this result for these inputs",
            )


def near_copies(helper: Helper, surroundings: Surroundings) -> Iterator[Problem]:
    """Yield a problem for each helper or function with nearly the same purpose."""
    where, fix = (
        _place_of(helper, "purpose"),
        "call that one, or say in `purpose` what only this one does",
    )
    for other in surroundings.helpers.values():
        if other.name != helper.name and _likeness(helper.purpose, other.purpose) >= _NEAR_PURPOSE:
            message = f"`{helper.name}` has nearly the purpose of the helper `{other.name}`: {other.purpose}"
            yield Problem("near-copy", one_line(message, 300), where, fix)
    for function in surroundings.snapshot.functions.values():
        first = function.description.partition("\n\n")[0]
        if _likeness(helper.purpose, first) >= _NEAR_PURPOSE and _takes(helper.function) == _takes(
            function
        ):
            message = (
                f"`{helper.name}` has the purpose and the inputs of the function `{function.name}`"
            )
            yield Problem("near-copy", message, where, "call that function: it costs no model")


def beyond(helper: Helper, limits: "SpendingLimits") -> Iterator[Problem]:
    """Yield a problem for each part of the budget that exceeds the remaining budget of the proposer."""
    for name, most in limits.amounts().items():
        wanted = getattr(helper.budget, name)
        if name not in ("hops", "messages") and wanted is not None and wanted > most:
            message = f"`{name}` of its budget is {wanted:g}, and you have {most:g} left yourself"
            yield Problem("budget", message, _place_of(helper, "budget"), f"write at most {most:g}")


async def failing_examples(
    helper: Helper,
    call: Callable[[str, dict[str, Any]], Awaitable[CallReport]],  # Any: JSON
) -> list[Problem]:
    """Return a problem for each example that the function does not reproduce.

    `call` runs a function of the workspace in a worker, without recording the call.
    """
    problems = []
    for example in helper.examples:
        report = await call(example.function, dict(example.inputs))
        result = {"result": report.value} if report.outcome == "returned" else None
        if result is None or to_json(result) != to_json({"result": example.result}):
            came = report.outcome if result is None else one_line(repr(report.value), 120)
            message = f"`{example.function}` gives {came} for an example, and not {one_line(repr(example.result), 120)}"
            fix = "write the result that the function gives, or fix the function"
            problems.append(Problem("example", message, _place_of(helper, "examples"), fix))
    return problems


def _likeness(purpose: str, other: str) -> float:
    own, others = (frozenset(words.stems(words.content(text))) for text in (purpose, other))
    return len(own & others) / len(own | others) if own and others else 0.0


def _takes(function: "Function") -> list[str]:
    return sorted(str(schema.get("type")) for schema in function.parameters["properties"].values())


@dataclass(frozen=True, slots=True)
class HelperVersion:
    """A version of a helper, with its author, time and reason. `text` is empty if the helper was deleted."""

    number: int
    version: str
    text: str
    by: str
    agent: str
    at: float
    reason: str


def _read_helpers(
    texts: Mapping[str, str | Problem],
) -> dict[str, Helper | tuple[Problem, ...]]:
    """Return what each file says, or its problems."""
    readings: dict[str, Helper | tuple[Problem, ...]] = {}
    left = MOST_PROBLEMS  # for all files together, but at least one per file
    values = ValueCount(_FOLDER)
    for name, text in texts.items():
        if isinstance(text, Problem):
            reading: Helper | tuple[Problem, ...] = (text,)
        else:
            try:
                values.add(name, text)
            except ConfigError as error:
                reading = (Problem("too-many", error.message, Place(path_of(name), 1), error.fix),)
            else:
                reading = read_helper(name, text, max(left, 1))
        left -= len(reading) if isinstance(reading, tuple) else 0
        readings[name] = reading
    return readings


def _problems_of(
    helpers: Mapping[str, Helper], surroundings: Surroundings
) -> dict[str, tuple[Problem, ...]]:
    """Return the problems of each helper that has any."""
    problems = dict[str, tuple[Problem, ...]]()
    for name, helper in helpers.items():
        if found := problems_around(helper, surroundings):
            problems[name] = found
    return problems


class HelperLibrary:
    """The helpers in force, the problems of rejected files, and the versions of all helpers."""

    def __init__(self, root: Path, store: Store, functions: "FunctionService") -> None:
        self._root = root
        self._store = store
        self._functions = functions
        self.helpers: Mapping[str, Helper] = {}
        """The helpers in force, by name."""
        self._problems: dict[str, tuple[Problem, ...]] = {}
        self._seen: object = None  # the stamps of the files, and why the folder cannot be read
        self._judged_with: object = None
        self._one_at_a_time = asyncio.Lock()
        self.since: events.FunctionsChanged | None = None
        """Changes made while no program ran, and rejected files; None if there are none."""

    @property
    def folder(self) -> Path:
        """The folder of the files."""
        return self._root / _FOLDER

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The first problems of the files, and the number of further files with problems."""
        return first_problems(_FOLDER, self._problems)

    def refusal(self, name: str) -> str:
        """Return why a helper cannot be called if its file was rejected, else ""."""
        if name in self.helpers or name not in self._problems:
            return ""
        return f"The helper `{name}` cannot be called: {self._problems[name][0]}"

    def surroundings(self, without: str = "") -> Surroundings:
        """Return the context for checking a file; `without` is a helper to leave out."""
        others = {name: helper for name, helper in self.helpers.items() if name != without}
        return Surroundings(self._functions.registry.snapshot(), others)

    def helper(self, name: str) -> Helper:
        """Return the helper with this name.

        Raises:
            UsageError: there is no such helper.
        """
        if name not in self.helpers:
            fix = did_you_mean(name, self.helpers, "Next: knapper helpers list")
            if name in self._problems:
                fix = f"Its file was rejected: {self._problems[name][0]}"
            raise UnknownName(f"There is no helper `{one_line(name, 80)}`.", fix=fix)
        return self.helpers[name]

    def text(self, name: str) -> str:
        """Return the current text of a helper's file, even if it was rejected.

        Raises:
            UsageError: there is no such helper, or its file cannot be read.
        """
        text = (
            _text(self._root, f"{name}{_SUFFIX}")
            if name in self._problems
            else self.helper(name).text
        )
        if isinstance(text, Problem):
            raise UsageError(str(text))
        return text

    async def reserve(self) -> None:
        """Reserve the names of all current and earlier helpers against new functions, without reading files."""
        names = {Path(path).stem for path in await self._store.kept_modules(_FOLDER)}
        with suppress(ConfigError):  # reported when the files are read
            names |= (await asyncio.to_thread(stamps_of, self._root / _FOLDER)).keys()
        self._functions.registry.keep_for_helpers(frozenset(names))

    async def load(self) -> None:
        """Read the files if they have not been read yet. Call this before using helpers."""
        if not self._is_read:
            await self.refresh(is_told=False)

    @property
    def _is_read(self) -> bool:
        return self._judged_with is not None

    async def refresh(self, *, is_told: bool = True) -> None:
        """Reload changed files. With `is_told`, notify listeners of the changes."""
        async with self._one_at_a_time:
            await self._refresh(USER, "", is_told=is_told)

    async def _refresh(self, author: Author, reason: str, *, is_told: bool) -> None:
        """Reload the files, and report what is new; if the folder cannot be read, keep all helpers in force."""
        functions, is_first = self._functions.registry.snapshot().functions, not self._is_read
        unreadable: Problem | None = None
        stamps: Mapping[str, Stamp] = {}
        try:
            stamps = await asyncio.to_thread(stamps_of, self._root / _FOLDER)
        except ConfigError as error:
            unreadable = Problem(error.code, error.message, Place(f"{_FOLDER}/"), error.fix)
        seen = (stamps, unreadable)
        if not is_first and seen == self._seen and (not stamps or functions is self._judged_with):
            return
        if is_first:
            self.helpers = await self._last_helpers()
        before, told = self.helpers, self._problems
        texts = await asyncio.to_thread(
            lambda: {name: _text(self._root, f"{name}{_SUFFIX}") for name in sorted(stamps)}
        )
        if unreadable is None:
            await self._load(texts, author, reason)
        else:
            self._problems = {**told, "": (unreadable,)}
            self._functions.registry.keep_for_helpers(frozenset(self.helpers))
        self._seen, self._judged_with = seen, functions
        change = self._change(before, told, texts)
        if is_first:
            is_new = not await self._store.agent_names()  # no one has seen an earlier state
            self.since = replace(change, loaded=()) if change and is_new else change
        elif is_told and change is not None:
            self._functions.tell(change)

    async def _load(self, texts: Mapping[str, str | Problem], author: Author, reason: str) -> None:
        readings = await asyncio.to_thread(_read_helpers, texts)
        helpers = {
            name: reading for name, reading in readings.items() if isinstance(reading, Helper)
        }
        problems = {
            name: reading for name, reading in readings.items() if not isinstance(reading, Helper)
        }
        around = Surroundings(self._functions.registry.snapshot(), helpers)
        problems |= await asyncio.to_thread(_problems_of, helpers, around)
        in_force: dict[str, Helper] = {}
        kept = {*await self._store.kept_modules(_FOLDER)}
        for name in texts:
            last, helper = self.helpers.get(name), helpers.get(name)
            if last is None and path_of(name) in kept:
                last = await self._last_good(name)
            if helper is not None and (last is None or last.text != helper.text):
                if any(problem.severity == "refuses" for problem in problems.get(name, ())):
                    helper = None
                else:
                    await self._keep(name, helper.text, author, reason or "saved")
            # An unchanged helper stays the same object, and stays in force even if names in it no longer exist.
            same = last is not None and (helper is None or last.text == helper.text)
            if chosen := last if same else helper:
                in_force[name] = chosen
        for name in self.helpers.keys() - texts.keys():
            await self._keep(name, "", author, reason or "its file was removed")
        self._problems = problems
        self.helpers = in_force if in_force != self.helpers else self.helpers
        self._functions.registry.keep_for_helpers(frozenset(in_force))

    async def _last_helpers(self) -> dict[str, Helper]:
        """Return the helpers that were in force when the last program ended."""
        names = [Path(path).stem for path in await self._store.kept_modules(_FOLDER)]
        return {
            name: helper for name in names if (helper := await self._last_good(name)) is not None
        }

    async def _last_good(self, name: str) -> Helper | None:
        rows = await self._store.module_history(path_of(name))
        if not rows or not rows[-1].text:
            return None
        helper = read_helper(name, rows[-1].text)
        return helper if isinstance(helper, Helper) else None

    async def _keep(self, name: str, text: str, author: Author, reason: str) -> None:
        version = SaveVersion(
            path_of(name), hash_of(text), text, author.by, author.turn, reason, author.model
        )
        await self._store.apply([version])

    def _change(
        self,
        before: Mapping[str, Helper],
        told: Mapping[str, tuple[Problem, ...]],
        texts: Mapping[str, str | Problem],
    ) -> events.FunctionsChanged | None:
        """Return the differences from the earlier helpers and problems, or None."""
        now = self.helpers
        news: dict[str, str] = {}
        for name, problems in self._problems.items():
            lines = bare_lines(text) if isinstance(text := texts.get(name), str) else []
            for problem in problems:
                if problem not in told.get(name, ()):
                    at = problem.where.line
                    news[str(problem)] = (
                        lines[at - 1].rstrip()[:400] if 0 < at <= len(lines) else ""
                    )
        change = events.FunctionsChanged(
            turn="",
            loaded=tuple(sorted(now.keys() - before.keys())),
            changed=tuple(
                sorted(
                    name
                    for name in now.keys() & before.keys()
                    if now[name].text != before[name].text
                )
            ),
            removed=tuple(sorted(before.keys() - now.keys())),
            rejected=tuple(news),
            fixed=tuple(
                sorted(
                    path_of(name) for name in told.keys() - self._problems.keys() if name in texts
                )
            ),
            lines={problem: text for problem, text in news.items() if text},
        )
        is_news = (
            change.loaded or change.changed or change.removed or change.rejected or change.fixed
        )
        return change if is_news else None

    async def write(self, name: str, text: str, author: Author, reason: str) -> None:
        """Write a helper's file and load it. Only the version that was read before may be replaced."""
        async with (
            self._one_at_a_time
        ):  # otherwise a refresh could attribute the file to someone else
            old = self.helpers.get(name)
            expected = (
                hash_of(old.text)
                if old is not None and is_there(self._root / path_of(name))
                else None
            )
            await asyncio.to_thread(save_text, self._root, path_of(name), text, expected)
            await self._refresh(author, reason, is_told=False)

    async def remove(self, name: str, author: Author, reason: str) -> None:
        """Delete a helper's file; its history stays."""
        async with self._one_at_a_time:
            await asyncio.to_thread(
                remove_text, self._root, path_of(name), hash_of(self.helper(name).text)
            )
            await self._refresh(author, reason, is_told=False)

    async def versions(self, name: str) -> list[Version]:
        """Return the versions of a current or deleted helper, oldest first.

        Raises:
            UsageError: there was never a helper with that name.
        """
        rows = await self._store.module_history(path_of(name)) if _NAME.fullmatch(name) else []
        if not rows:
            self.helper(name)
        return [
            Version(number, row.version if row.text else "", row.text, row)
            for number, row in enumerate(rows, 1)
        ]

    async def history(self, name: str) -> list[HelperVersion]:
        """Return the versions of a helper in their published form, oldest first.

        Raises:
            UsageError: there was never a helper with that name.
        """
        rows = [(version.number, version.row) for version in await self.versions(name)]
        return [
            HelperVersion(n, row.version, row.text, row.by, row.agent, row.at, row.reason)
            for n, row in rows
        ]

    async def runs(self) -> dict[str, list[str]]:
        """Return the agents of helper runs by helper name, oldest first."""
        runs: dict[str, list[str]] = {}
        rows = {row.name: row.last_at for row in await self._store.agents()}
        for name in sorted(rows, key=lambda name: rows[name]):
            if name.startswith(HELPER_RUN):
                runs.setdefault(name.removeprefix(HELPER_RUN).rpartition("-")[0], []).append(name)
        return runs

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        """Reload helpers when files or functions change, while the block runs."""
        news = asyncio.Event()
        async with watch.Watcher(self._root / _FOLDER, suffix=_SUFFIX) as watcher:
            quiet = self._functions.registry.subscribe(lambda _: news.set())
            try:
                async with in_background(self._follow(watcher, news), self._renew(news)):
                    yield
            finally:
                quiet()

    @staticmethod
    async def _follow(watcher: "watch.Watcher", news: asyncio.Event) -> None:
        async for _ in watcher:
            news.set()

    async def _renew(self, news: asyncio.Event) -> None:
        while await news.wait():
            news.clear()
            if self._is_read:
                await self.refresh()


def _text(root: Path, name: str) -> str | Problem:
    where = Place(f"{_FOLDER}/{one_line(name, 80)}", 1)
    try:
        return read_of_folder(root / _FOLDER, name).decode("utf-8")
    except ConfigError as error:
        return Problem("unreadable", error.message, where, error.fix)
    except UnicodeDecodeError:
        return Problem("unreadable", "the file is not UTF-8", where, "save it as UTF-8")
    except OSError as error:
        return Problem(
            "unreadable",
            f"the file cannot be read: {error}",
            where,
            "put a plain file in its place",
        )
