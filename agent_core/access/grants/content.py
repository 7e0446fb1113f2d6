"""The exact code that an approval is for: the function and what it calls and imports within the workspace.

A function that may reach something runs with these statements only (`registry/approved.py`): no other code exists in
its worker, however it is looked up. What it calls by `self.call`, by a name in its text, runs in a worker of its own,
and belongs to the same approval.
"""

import ast
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from agent_core.base.matching import diff_lines
from agent_core.base.problem import Place
from agent_core.base.records import dataclass, replace
from agent_core.base.syntax import Flaw, flaw_of, name_flaw_of
from agent_core.registry import examples
from agent_core.registry.approved import (
    ApprovedModule,
    ApprovedParts,
    ApprovedStatement,
    approved_parts,
    without_unused_imports,
)
from agent_core.registry.depends import ModuleParts, Part, modules_of, packages_around
from agent_core.registry.source import ModuleSource, parse_accepted
from agent_core.registry.tree import Definition
from sandbox.code import ApprovedCode, SourceText
from sandbox.wire.lines import bare_lines
from sandbox.wire.statements import StatementPart

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot
    from sandbox import Failure
    from sandbox.code import Modules

_LONGEST_DIFF: Final = 300_000
_IMPORTS: Final = ("Import ", "ImportFrom ")
_NOT_THERE: Final = frozenset(
    {"KeyError", "LookupError", "IndexError", "AttributeError", "NameError"}
)
_NOT_IMPORTED: Final = frozenset({"ImportError", "ModuleNotFoundError"})
_QUOTED: Final = re.compile(r"'(\w{1,100})'")
_Covered: TypeAlias = Mapping[str, ApprovedParts]
"""What an approval covers: the function, and those that it calls by name."""
_Merged: TypeAlias = Mapping[Part, list[ApprovedStatement]]


@dataclass(frozen=True, slots=True)
class FunctionContent:
    """The modules by name, each with its version, and one digest of a function and all code that it covers."""

    digest: str
    versions: tuple[tuple[str, str], ...]

    def to_text(self) -> str:
        """Return the versions as JSON."""
        return json.dumps(self.versions)


def content_of(function: "Function", snapshot: "Snapshot") -> FunctionContent:
    """Return the content to which an approval of this function, in the version in this snapshot, is bound."""
    covered = _covered_in(function, snapshot)
    modules = {module for parts in covered.values() for module in parts.statements}
    versions = tuple((module, snapshot.modules[module].version) for module in sorted(modules))
    digests = sorted((name, parts.digest) for name, parts in covered.items())
    text = json.dumps([function.name, function.module, digests])
    return FunctionContent(hashlib.sha256(text.encode()).hexdigest(), versions)


@dataclass(frozen=True, slots=True)
class CoveredCode:
    """The functions that an approval covers: the one itself, and those that it calls by name; and all of their code.

    `codes` are the hashes of the statements as they are written, without docstrings, comments and layout.
    """

    names: frozenset[str]
    codes: frozenset[str]


def covered_code(function: "Function", snapshot: "Snapshot") -> CoveredCode:
    """Return what an approval of this function, in the version in this snapshot, covers."""
    covered = _covered_in(function, snapshot)
    statements = (
        each for parts in covered.values() for found in parts.parts.values() for each in found
    )
    return CoveredCode(frozenset(covered), frozenset(code_hash(each.whole) for each in statements))


def codes_then(part: Part, texts: Mapping[str, str]) -> frozenset[str]:
    """Return the hashes of the statements that an approval of a function covered, by the texts of its modules."""
    covered = _covered_then(part, texts).values()
    statements = (each for parts in covered for found in parts.parts.values() for each in found)
    return frozenset(code_hash(each.whole) for each in statements)


def covered_in_modules(function: "Function", snapshot: "Snapshot") -> Mapping[str, frozenset[str]]:
    """Return the hashes of the statements that an approval of a function covers, by the module that has them."""
    found: dict[str, set[str]] = {}
    for parts in _covered_in(function, snapshot).values():
        for (module, _), statements in parts.parts.items():
            found.setdefault(module, set()).update(code_hash(each.whole) for each in statements)
    return {module: frozenset(codes) for module, codes in found.items()}


def called_names(function: "Function", snapshot: "Snapshot") -> frozenset[str]:
    """Return the texts that may be names of functions that a function calls by `self.call`."""
    return _parts_in(function, snapshot).strings


@lru_cache(maxsize=8192)
def code_hash(code: str) -> str:
    """Return the hash of a statement's meaning."""
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()


def functions_within(function: "Function", snapshot: "Snapshot") -> list[str]:
    """Return the other functions whose code runs in a function's process, because it calls them by their names."""
    functions = (snapshot.whole or snapshot).functions
    parts = _parts_in(function, snapshot).parts
    names = (
        name for module, name in parts if name in functions and functions[name].module == module
    )
    return sorted(name for name in names if name != function.name)


def served(function: "Function", snapshot: "Snapshot") -> Mapping[str, ApprovedCode]:
    """Return the modules of a function's worker: only the statements that an approval of it covers."""
    statements = _parts_in(function, snapshot).statements
    return {
        module: _approved_code(snapshot.modules[module], positions)
        for module, positions in statements.items()
    }


def runnable(function: "Function", modules: "Modules", *others: "Function") -> "Modules":
    """Return the modules of a worker that is given nothing: whole, without the imports that the function does not use.

    What its examples use is there, too. So it runs as with an approval, whatever its neighbors need. With `others` of
    its module, they have the imports that any of them uses.
    """
    sources = _sources_around(function.module, modules)
    if not any(_module_of(source).is_reducible for source in sources.values()):
        return modules
    imported = _imported_for((function, *others), sources)
    changed = {
        module: source for module, source in imported.items() if source is not modules[module]
    }
    return {**modules, **changed} if changed else modules


def imported_with(function: "Function", modules: "Modules") -> "Modules":
    """Return the modules that are imported with a function, each without the imports that it does not use."""
    return _imported_for((function,), _sources_around(function.module, modules))


def runs_among(function: "Function", there: "Modules", modules: "Modules") -> bool:
    """Check whether a worker that has the modules that are `there` has all imports that a function uses."""
    imported = imported_with(function, modules)
    return all(
        there.get(module) in (source, modules[module]) for module, source in imported.items()
    )


def _imported_for(functions: "Sequence[Function]", sources: "Modules") -> "Modules":
    texts = tuple(sorted((module, source.text) for module, source in sources.items()))
    needed = dict[str, set[StatementPart]]()
    for function in functions:
        parts = approved_parts((function.module, function.name), texts, with_examples=True)
        for module, statements in parts.statements.items():
            needed.setdefault(module, set()).update(statements)
    own = dict[str, SourceText]()
    for module, used in needed.items():
        source = sources[module]
        text = without_unused_imports(source.text, _module_of(source), used)
        own[module] = source if text == source.text else ModuleSource.of(module, text, source.path)
    return own


def _sources_around(module: str, modules: "Modules") -> dict[str, "SourceText"]:
    """Return a module with its enclosing packages and all their imports, recursively, as far as they are there."""
    found, waiting = dict[str, SourceText](), [module]
    while waiting:
        name = waiting.pop()
        for around in (*packages_around(name), name):
            source = modules.get(around)
            if source is not None and around not in found:
                found[around] = source
                for base, imported in _module_of(source).imports:
                    waiting += [base, f"{base}.{imported}".strip(".")]
    return found


def _module_of(source: "SourceText") -> ApprovedModule:
    return ApprovedModule.of(
        source.text, source.module, is_package=source.path.endswith("/__init__.py")
    )


def withheld(modules: "Modules", whole: "Modules", failure: "Failure") -> str:
    """Return what a call that had only these modules of the whole ones did not have, and may have failed for.

    Either its error quotes a name that the files bind and the worker does not have; or something is not there, and an
    import was left out that runs code. "" if there is no such reason.
    """
    is_of_name = failure.type in _NOT_THERE | _NOT_IMPORTED
    quoted = dict.fromkeys(_QUOTED.findall(failure.message) if is_of_name else ())
    for source in (source for source in modules.values() if isinstance(source, ApprovedCode)):
        binding = ApprovedModule.of(source.text, source.module).binding
        for name in (name for name in quoted if name in binding):
            if not any(statement.at in source.statements for statement in binding[name]):
                return (
                    f"`{name}` is in {source.path}, and does not exist for this call, which has only the code that its"
                    f" text names. Name it there: `from functions.{source.module} import {name}`, or in a table."
                )
    reduced = [
        source
        for name, source in modules.items()
        if source is not whole.get(name) and name in whole
    ]
    notes = (_left_out(source, whole) for source in reduced if failure.type in _NOT_THERE)
    return next(filter(None, notes), "")


def _left_out(source: "SourceText", whole: "Modules") -> str:
    """Return which import of a module was left out of a worker although it runs code, or an empty text."""
    there = _module_of(source).binding
    for each in _module_of(whole[source.module]).statements:
        is_there = (
            each.at in source.statements
            if isinstance(source, ApprovedCode)
            else each.binds <= there.keys()
        )
        for base, imported in () if is_there or not each.is_loose else each.imports:
            target = next(
                (name for name in (f"{base}.{imported}".strip("."), base) if name in whole), ""
            )
            if target and any(
                not one.code.startswith(_IMPORTS) for one in _module_of(whole[target]).running
            ):
                name = min(each.binds)
                return (
                    f"{whole[target].path} runs code when it is imported. {source.path} imports `{name}` from it, but"
                    f" not for this call, which does not use that name. If it needs what runs there, use `{name}`."
                )
    return ""


@lru_cache(maxsize=1024)
def _approved_code(source: ModuleSource, statements: tuple[StatementPart, ...]) -> ApprovedCode:
    version = hashlib.sha256(f"{source.version} {statements}".encode()).hexdigest()
    return ApprovedCode(source.module, source.text, source.path, version, statements)


def _parts_in(function: "Function", snapshot: "Snapshot") -> ApprovedParts:
    modules = modules_of(function.module, snapshot)
    texts = tuple(sorted((module, source.text) for module, source in modules.items()))
    return approved_parts((function.module, function.name), texts)


def _covered_in(function: "Function", snapshot: "Snapshot") -> _Covered:
    functions = {**(snapshot.whole or snapshot).functions, function.name: function}

    def parts_of(name: str) -> ApprovedParts | None:
        return _parts_in(functions[name], snapshot) if name in functions else None

    return _with_callees(function.name, parts_of)


def _covered_then(part: Part, texts: Mapping[str, str]) -> _Covered:
    """Return what an approval of a function covered, by the texts of its modules."""
    pairs = tuple(sorted(texts.items()))
    owners = {part[1]: part[0]}
    for module, text in pairs:
        parts = ModuleParts.of(text, module=module)
        owners = (
            dict.fromkeys(parts.public if isinstance(parts, ModuleParts) else (), module) | owners
        )

    def parts_of(name: str) -> ApprovedParts | None:
        return approved_parts((owners[name], name), pairs) if name in owners else None

    return _with_callees(part[1], parts_of)


def _with_callees(name: str, parts_of: Callable[[str], ApprovedParts | None]) -> _Covered:
    """Return a function's parts, and those of the functions that it calls by name, directly or not."""
    covered = dict[str, ApprovedParts]()
    waiting = [name]
    while waiting:
        name = waiting.pop()
        if name not in covered and (parts := parts_of(name)) is not None:
            covered[name] = parts
            waiting += parts.strings
    return covered


def examples_covered(function: "Function", snapshot: "Snapshot", text: str) -> bool:
    """Check whether a function's examples are those of its module's approved text, and use approved code alone.

    A docstring is no part of an approval, so what it shows may only run with the function's grants if this is true.
    """
    now, then = (
        ModuleParts.of(source, module=function.module)
        for source in (snapshot.modules[function.module].text, text)
    )
    if (
        not isinstance(now, ModuleParts)
        or not isinstance(then, ModuleParts)
        or function.name not in then.public
    ):
        return False
    if _examples_in(now.definition(function.name)) != _examples_in(then.definition(function.name)):
        return False
    bound = frozenset().union(*now.binds)
    shown = (
        frozenset().union(*(each.shows for each in now.statements if function.name in each.binds))
        & bound
    )
    parts = _parts_in(function, snapshot).parts
    return shown <= frozenset().union(*(each.binds for part in parts.values() for each in part)) | {
        function.name
    }


def _examples_in(definition: Definition) -> list[tuple[str, str]]:
    return [
        (entry.source, entry.want) for entry in examples.find(ast.get_docstring(definition) or "")
    ]


def since(function: "Function", snapshot: "Snapshot", texts: Mapping[str, str]) -> tuple[str, str]:
    """Return the changes since a function was approved with these modules: as a sentence, and as a diff.

    The sentence is empty if only docstrings, comments or the layout changed, or nothing.
    """
    own, former = (
        (function.module, function.name),
        function.module,
    )  # another one, if its own is not among these texts
    if former not in texts:
        modules = {module: ApprovedModule.of(text, module) for module, text in texts.items()}
        former = next(
            (module for module, read in modules.items() if function.name in read.binding), former
        )
    before = {
        (function.module if module == former else module, name): statements
        for (module, name), statements in _merged(
            _covered_then((former, function.name), texts)
        ).items()
    }
    now = _merged(_covered_in(function, snapshot))
    codes, new_codes = (
        {part: [each.code for each in found] for part, found in parts.items()}
        for parts in (before, now)
    )
    differing = {
        part[0]
        for part in codes.keys() | new_codes.keys()
        if codes.get(part) != new_codes.get(part)
    }
    old, new = _by_module(before), _by_module(now)
    reordered = {
        module
        for module in old.keys() & new.keys()
        if _in_order(old[module]) != _in_order(new[module])
    }
    shown, agreed = (
        differing | reordered,
        {each.code: each.text for found in old.values() for each in found},
    )
    facts = [f"it moved from {former} to {function.module}"] if former != function.module else []
    facts += [
        f"the order of what runs in {module} changed" for module in sorted(reordered - differing)
    ]
    return changes(own, codes, new_codes, "; ".join(facts)), differences(
        {module: _joined(old[module], agreed) for module in shown & old.keys()},
        [
            replace(snapshot.modules[module], text=_joined(new[module], agreed))
            for module in sorted(shown & new.keys())
        ],
    )


def covered_source(function: "Function", snapshot: "Snapshot") -> str:
    """Return all that an approval of a function covers, as the diff of a new text."""
    parts = _merged(_covered_in(function, snapshot))
    own_first = sorted(
        {module for module, _ in parts}, key=lambda module: (module != function.module, module)
    )
    shown = list[str]()
    for module in own_first:
        statements = {
            each.at: each.text
            for part, found in parts.items()
            if part[0] == module
            for each in found
        }
        text = "\n\n".join(dict.fromkeys(statements[at] for at in sorted(statements)))
        shown.append(differences({}, [replace(snapshot.modules[module], text=text)]))
    return "\n".join(shown)


def _merged(covered: _Covered) -> _Merged:
    """Return the statements of all covered functions, by part."""
    parts = dict[Part, dict[StatementPart, ApprovedStatement]]()
    for each in covered.values():
        for part, statements in each.parts.items():
            parts.setdefault(part, {}).update((statement.at, statement) for statement in statements)
    return {part: [found[at] for at in sorted(found)] for part, found in parts.items()}


def _by_module(parts: _Merged) -> Mapping[str, list[ApprovedStatement]]:
    """Return the covered statements of each module, in the order of its text."""
    modules = dict[str, dict[StatementPart, ApprovedStatement]]()
    for (module, _), found in parts.items():
        modules.setdefault(module, {}).update((statement.at, statement) for statement in found)
    return {module: [found[at] for at in sorted(found)] for module, found in modules.items()}


def _in_order(statements: Sequence[ApprovedStatement]) -> list[str]:
    """Return the codes of a module's statements: in their order, or sorted if none of them can tell it.

    One that runs code, or binds a name again, can.
    """
    times = Counter(name for statement in statements for name in statement.binds)
    codes = [statement.code for statement in statements]
    runs = any(not statement.is_inert or statement.is_loose for statement in statements)
    return codes if runs or any(count > 1 for count in times.values()) else sorted(codes)


def _joined(statements: Iterable[ApprovedStatement], agreed: Mapping[str, str]) -> str:
    """Return the text of a module's statements; one whose code was agreed to reads as it did then."""
    return "\n\n".join(agreed.get(statement.code, statement.text) for statement in statements)


def misleading(function: "Function", snapshot: "Snapshot") -> str:
    """Return why nothing can be granted: the code that does not read as it runs, and its place; "" if there is none.

    An older release may have accepted such a text, and an approval for it.
    """
    for source in modules_of(function.module, snapshot).values():
        if flaw := _flaw_of(source.text):
            where = Place(source.path, flaw.line, flaw.column)
            message = f"{where} does not read as it runs: {flaw.description}"
            return f"{message}. Nothing is granted to it until that is fixed: {flaw.fix}."
    return ""


@lru_cache(maxsize=1024)
def _flaw_of(text: str) -> Flaw | None:
    tree = None if text.isascii() else parse_accepted(ModuleSource.of("", text))
    return flaw_of(text) or (name_flaw_of(text, tree) if isinstance(tree, ast.Module) else None)


def differences(before: Mapping[str, str], after: Iterable[ModuleSource]) -> str:
    """Return the differences from the earlier texts, by module, as one diff."""
    now = {source.module: source for source in after}
    lines: list[str] = []
    for name in sorted(before.keys() | now.keys()):
        path = now[name].path if name in now else name
        old, new = before.get(name, ""), now[name].text if name in now else ""
        lines += diff_lines(bare_lines(old), bare_lines(new), (f"{path} (agreed)", f"{path} (now)"))
    return "\n".join(lines)


def unshowable(diff: str) -> str:
    """Return why the user cannot be asked about a diff: it is too long to read; "" if it is not."""
    if len(diff) <= _LONGEST_DIFF:
        return ""
    message = (
        f"What is different since the last yes is {len(diff):,} characters long, and at "
        f"most {_LONGEST_DIFF:,} are"
    )
    return f"{message} shown in a question, so nothing is granted. Split the module, or change it in smaller steps."


def changes(
    function_part: Part,
    before: Mapping[Part, list[str]],
    now: Mapping[Part, list[str]],
    moved: str = "",
) -> str:
    """Return the changes since the parts were approved, as a sentence without its final period."""
    differing = sorted(
        part for part in before.keys() | now.keys() if before.get(part) != now.get(part)
    )
    if not differing and not moved:
        return ""
    own = "changed" if function_part in differing else "unchanged"
    changed = [f"`{function_part[1]}` itself is {own}"]
    if moved:
        changed.append(moved)
    for part in differing:
        if part == function_part:
            continue
        module, name = part
        what = f"`{name}` of {module}" if name else f"what {module} does when it is imported"
        if part not in before:
            changed.append(f"{what} is new")
        elif part not in now:
            changed.append(f"{what} is gone")
        else:
            changed.append(f"{what} changed")
    return "; ".join(changed)
