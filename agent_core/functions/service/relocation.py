"""Another name, another module or another function for a function, with all that refers to it.

The new texts are one change of several files: judged together, as they will stand, and written in one step, which a
rollback takes back as one. A place that only may mean the function, such as a text with its name, stays and is told.
"""

import ast
import asyncio
import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_core.base import syntax
from agent_core.base.clock import Clock
from agent_core.base.errors import UsageError
from agent_core.base.offload import aside
from agent_core.base.problem import Problem
from agent_core.base.receipt import Receipt
from agent_core.base.records import dataclass, replace
from agent_core.base.syntax import name_shown
from agent_core.registry.approved import without_stale_imports
from agent_core.registry.depends import ModuleParts, offered_sources, statements_of
from agent_core.registry.function import fits
from agent_core.registry.module_edits import (
    Brought,
    import_edits,
    is_import,
    place_function,
    remove_function,
)
from agent_core.registry.references import (
    Reference,
    References,
    redirected,
    redirected_call,
    references_in,
    renamed,
    retargeted,
)
from agent_core.registry.registry import Registry, Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import (
    FOLDER,
    LineEdit,
    ModuleSource,
    ParsedText,
    applied,
    check_module_name,
    is_blank,
    path_of,
)
from agent_core.registry.tree import Definition, imported_module
from agent_core.storage import (
    DropReading,
    FunctionStore,
    RenameFunction,
    SaveVerdict,
    SetManifest,
    VersionRow,
    Write,
)

from ..gate import Gate
from . import file_sync
from .file_sync import FileSync, own_text
from .function_facts import known_function
from .judgment import Judgment, judgment_on
from .loader import SharedVerdict
from .plan import Author, FileChange, PlannedChange, Relocated, entered

if TYPE_CHECKING:
    from agent_core.access.grants import GrantStore

    from ..debug import Breakpoints
    from ..gate import ModuleVerdict
    from .grant_service import PackageGrants

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_STEP: Final = re.compile(r" \(step [0-9a-f]{8}\)\Z")
_LASTING: Final = ("by", "thumb", "note", "apart", "reader", "imported")
"""What a verdict says that stays true of a function with another name: who made it, and what people said of it."""
_NO_NAMES: Final[Mapping[str, str]] = {}
_BACK: Final = "taken back: "
_CALLS: Final = ("confirmed", "predicted")


class RelocationPlanner:
    """The planner of changes that give a function another name or another module."""

    def __init__(
        self,
        store: FunctionStore,
        files: FileSync,
        gate: Gate,
        packages: "PackageGrants",
        grants: "GrantStore",
        file_patterns: Callable[[], Mapping[str, str]],
        breakpoints: "Callable[[], Breakpoints]",
    ) -> None:
        """Create the planner; `file_patterns` are what files of agents, groups and helpers name, with their paths."""
        self._store = store
        self._files = files
        self._registry: Registry = files.registry
        self._gate = gate
        self._packages = packages
        self._grants = grants
        self._file_patterns = file_patterns
        self._breakpoints = breakpoints

    async def rename(self, name: str, new: str, author: Author) -> PlannedChange:
        """Plan another name for a function, with its callers, its state and its places in agents' own sets.

        Raises:
            UsageError: the name cannot be had, or a place cannot be rewritten; the message says which.
        """
        snapshot = await self._settled(name, author)
        function = known_function(name, snapshot)
        _check_name(new, snapshot)
        found = await self._references(name, snapshot, follows=True)
        texts = {each.source.module: renamed(each, new) for each in found if each.found}
        new_snapshot = composed(texts, snapshot)
        unread = [
            f"{each.source.path}:{line} {what}"
            for each in found
            for line, what in each.unread.items()
        ]
        known = {source.path for source in snapshot.modules.values()}
        unread += [f"{path} is rejected" for path in sorted(snapshot.rejections.keys() - known)]
        relocated = Relocated(new, name, function.module, "", (), (), (), tuple(unread))
        why = f"renamed {name} to {new}"
        plan = await self.plan(why, relocated, snapshot, new_snapshot, author, {name: new})
        return self._files.repeatable(plan, partial(self.rename, name, new, author))

    async def move(self, name: str, module: str, author: Author) -> PlannedChange:
        """Plan another module for a function, with the imports, helpers and constants that it needs.

        Raises:
            UsageError: it cannot be taken out of its module or put into the other one; the message says why.
        """
        module = module.removeprefix(f"{FOLDER}.").removesuffix(".py")
        snapshot = await self._settled(name, author, module)
        function = known_function(name, snapshot)
        if problem := check_module_name(module):
            raise UsageError(f"{problem.message}.", fix=problem.fix or "")
        if function.module == module:
            raise UsageError(f"`{name}` is in `{module}` already.", fix="Nothing was changed.")
        found = await self._references(name, snapshot, follows=False)
        size = sum(len(each.source.text) for each in found)
        texts = await aside(size, _moved, name, module, found, snapshot)
        new_snapshot = composed(texts, snapshot)
        _check_circles(texts, snapshot, new_snapshot)
        relocated = Relocated(name, name, module, function.module, (), ())
        why = f"moved {name} from {function.module} to {module}"
        plan = await self.plan(why, relocated, snapshot, new_snapshot, author)
        return self._files.repeatable(plan, partial(self.move, name, module, author))

    async def last_step(self, name: str) -> "VersionRow | None":
        """Return a function's last change if it was a step of several files by a person."""
        function = self._registry.snapshot().functions.get(name)
        if function is not None:
            module = function.module
        else:
            rows = await self._store.function_history(name)
            module = rows[-1].module if rows else ""
        history = await self._store.module_history(module) if module else []
        if not history or history[-1].by != "human" or not _STEP.search(history[-1].reason):
            return None
        texts = [row.text for row in history[-2:]]
        own = [offered_sources(text).get(name, "") for text in ["", *texts][-2:]]
        return history[-1] if own[0] != own[1] else None

    async def take_back(self, name: str, step: str, author: Author) -> PlannedChange:
        """Plan the texts that all files of a step had before it.

        Raises:
            UsageError: one of them was changed since.
        """
        snapshot = self._registry.snapshot()
        texts = dict[str, str | None]()
        for row in await self._store.made_for(step):
            snapshot = await self._files.settled(row.module, "", snapshot)
            source = snapshot.modules.get(row.module)
            history = await self._store.module_history(row.module)
            if (source.version if source else "") != row.version or history[-1] != row:
                fix = f"Nothing was changed. Give a version: knapper functions history {name}"
                path = path_in(snapshot, row.module)
                raise UsageError(f"{path} was changed after this.", fix=fix)
            before = history[-2] if len(history) > 1 else None
            texts[row.module] = before.text if before and before.version else None
        new_snapshot = composed(texts, snapshot)
        gone = snapshot.functions.keys() - new_snapshot.functions.keys()
        there = new_snapshot.functions.keys() - snapshot.functions.keys()
        names = dict(zip(gone, there, strict=False)) if len(gone) == len(there) == 1 else {}
        shown = next(iter(there), name)
        undone = _STEP.sub("", step)
        why = undone.removeprefix(_BACK) if undone.startswith(_BACK) else f"{_BACK}{undone}"
        function = new_snapshot.functions[shown]
        relocated = Relocated(shown, name, function.module, "", (), ())
        plan = await self.plan(why, relocated, snapshot, new_snapshot, author, names)
        judged = await judgment_on(self._store, function.body_hash, shown)
        standing = judged.standing if judged else "draft"
        back = f"what was there before “{undone}”"
        told = {"name": shown, "module": function.module, "path": function.path, "back": back}
        document = {**told, "standing": standing, "admitted": True}
        plan = replace(plan, detail=Judgment.from_json(document))
        return self._files.repeatable(plan, partial(self.take_back, name, step, author))

    async def _settled(self, name: str, author: Author, *more: str) -> Snapshot:
        """Return a snapshot with the current files of all modules that may refer to a function."""
        snapshot = self._registry.snapshot()
        known_function(name, snapshot)
        file_sync.require_read(name, author, own_text(name, snapshot) or "")
        near = [module for module, source in snapshot.modules.items() if name in source.text]
        for module in dict.fromkeys((*near, *more)):
            snapshot = await self._files.settled(module, "", snapshot)
        return snapshot

    async def _references(
        self, name: str, snapshot: Snapshot, *, follows: bool
    ) -> list[References]:
        sources = [*snapshot.modules.values()]
        module = snapshot.functions[name].module
        size = sum(len(source.text) for source in sources)
        return await aside(size, partial(references_in, follows=follows), sources, module, name)

    async def plan(
        self,
        why: str,
        relocated: Relocated,
        snapshot: Snapshot,
        new_snapshot: Snapshot,
        author: Author,
        names: Mapping[str, str] = _NO_NAMES,
    ) -> PlannedChange:
        """Return the plan for texts that the gate admits together; `names` are the new ones of functions.

        Raises:
            UsageError: it refuses one of them.
        """
        reason = f"{why} (step {Clock().new_id()[-8:]})"
        modules = _differing(snapshot, new_snapshot)
        verdicts = await self._judged(why, modules, names, snapshot, new_snapshot)
        changes = list[FileChange]()
        writes = list[Sequence[Write]]()
        for module in modules:
            source = snapshot.modules.get(module)
            expected = source.version if source else None
            if module in verdicts:
                reading = verdicts[module].reading
                now = reading.source
                changes.append(
                    FileChange(now.path, module, expected, now.text, now.version, reading)
                )
                rows = await self._verdicts(verdicts[module], names, snapshot)
                writes.append((*entered(reading, expected, author, reason), *rows))
            elif source is not None:
                changes.append(FileChange(source.path, module, expected, None, None, None))
                removed = SetManifest(module, expected, None, author.by, author.turn, reason)
                writes.append((removed, DropReading(source.path)))
        before = snapshot.functions
        now_there = new_snapshot.functions
        did = Receipt()
        for name in sorted(now_there.keys() - before.keys()):
            did.note("created", name)
        changed = [
            name
            for name in sorted(before.keys() & now_there.keys())
            if before[name].body_hash != now_there[name].body_hash
        ]
        for name in changed:
            did.note("changed", name)
        for name in sorted(before.keys() - now_there.keys()):
            did.note("deleted", name)
        relocated = replace(
            relocated,
            files=tuple(change.path for change in changes),
            changed=tuple(changed),
            asks_again=await self._asking_again(names, snapshot, new_snapshot),
            unread=(*relocated.unread, *await self._patterns(relocated, snapshot, new_snapshot)),
        )
        # In the history, a module that takes a function comes before the one that gives it up: it was never gone.
        rows_of_all = tuple(write for group in reversed(writes) for write in group)
        renames = tuple(RenameFunction(old, new) for old, new in names.items())
        return PlannedChange(
            _told(why, relocated),
            "returned",
            relocated,
            (*rows_of_all, *renames),
            did=did,
            change=changes[0],
            also=tuple(changes[1:]),
            revoked=next(iter(names), ""),
            done=partial(self._follow, names),
        )

    def _follow(self, names: Mapping[str, str]) -> None:
        for old, new in names.items():
            self._breakpoints().follow(old, new)

    async def _judged(
        self,
        why: str,
        modules: Sequence[str],
        names: Mapping[str, str],
        snapshot: Snapshot,
        new_snapshot: Snapshot,
    ) -> "dict[str, ModuleVerdict]":
        """Return the verdict on each new text, in which all others stand already.

        Raises:
            UsageError: one is refused, an example no longer holds, or a function that uses one breaks.
        """
        verdicts = dict[str, "ModuleVerdict"]()
        gone = {module for module in modules if module not in new_snapshot.modules}
        users = {
            module
            for module, each in new_snapshot.readings.items()
            if not gone.isdisjoint(each.imports)
        }
        for module in dict.fromkeys([*modules, *sorted(users)]):
            source = new_snapshot.modules.get(module)
            if source is None:
                continue
            granted = replace(await self._packages.of_text(source.text), approval_mode="calling")
            before = snapshot.readings.get(module)
            verdict = await self._gate.judge_module(
                source, new_snapshot, previous_reading=before, granted=granted
            )
            problem = next(iter(verdict.refusals), None)
            if not verdict.admitted and problem is not None:
                fix = problem.fix or "Change that first."
                raise UsageError(f"Not {why}: {problem.where}: {problem.message}.", fix=fix)
            broken = [*await self._failing(verdict, names, snapshot)]
            broken += [breakage.description for breakage in verdict.breakages]
            if broken:
                raise UsageError(f"Not {why}: {broken[0]}.", fix="Nothing was changed.")
            if module in modules:
                verdicts[module] = verdict
        return verdicts

    async def _failing(
        self, verdict: "ModuleVerdict", names: Mapping[str, str], snapshot: Snapshot
    ) -> list[str]:
        """Return the examples that would fail and that did not fail before, as sentences."""
        failing = list[str]()
        for name, row in verdict.disagreements:
            judged = await self._judgment_before(name, names, snapshot)
            if judged is None or not judged.fails_examples:
                failing.append(
                    f"{row.call} of `{name}` would return {row.returned}, not {row.expected}"
                )
        return failing

    async def _judgment_before(
        self, name: str, names: Mapping[str, str], snapshot: Snapshot
    ) -> Judgment | None:
        old = _name_before(name, names)
        function = snapshot.functions.get(old)
        return await judgment_on(self._store, function.body_hash, old) if function else None

    async def _verdicts(
        self, verdict: "ModuleVerdict", names: Mapping[str, str], snapshot: Snapshot
    ) -> list[Write]:
        """Return the writes of the verdicts on functions that are not known; what people said of them stays."""
        rows = list[Write]()
        shared = SharedVerdict(verdict)
        standings = dict(verdict.standings)
        for function in verdict.reading.functions:
            name = function.name
            version = function.body_hash
            if await judgment_on(self._store, version, name) is not None:
                continue
            before = await self._judgment_before(name, names, snapshot)
            standing = standings.get(name, "draft")
            document: dict[str, Any] = {**shared.on(function), "confirmed": []}
            if before is not None:
                kept = before.to_json()
                document |= {key: kept[key] for key in _LASTING if kept.get(key)}
                old = snapshot.functions[_name_before(name, names)]
                for key in _CALLS:
                    document[key] = [
                        redirected_call(call, old.module, old.name, name) or call
                        for call in kept.get(key) or ()
                    ]
                standing = "draft" if before.standing == "draft" else standing
            rows.append(SaveVerdict(version, name, {**document, "standing": standing}))
        return rows

    async def _asking_again(
        self, names: Mapping[str, str], snapshot: Snapshot, new_snapshot: Snapshot
    ) -> tuple[str, ...]:
        """Return the functions that lose what a person allowed them, because what was approved is another text now."""
        asking = list[str]()
        for owner in await self._grants.entries():
            before = snapshot.functions.get(owner)
            now = new_snapshot.functions.get(names.get(owner, owner))
            if before is None or now is None:
                continue
            had = await self._grants.allowed(before, snapshot)
            if had and not (await self._grants.allowed(now, new_snapshot)).covers(had):
                asking.append(now.name)
        return tuple(asking)

    async def _patterns(
        self, relocated: Relocated, snapshot: Snapshot, new_snapshot: Snapshot
    ) -> tuple[str, ...]:
        """Return the files of agents, groups and helpers that name the function as it was."""
        before = snapshot.functions.get(relocated.was)
        now = new_snapshot.functions.get(relocated.name)
        if before is None or now is None:
            return ()
        named = (await asyncio.to_thread(self._file_patterns)).items()
        return tuple(
            f"{path} names `{pattern}`"
            for pattern, path in named
            if fits([pattern], before) and not fits([pattern], now)
        )


def _told(why: str, relocated: Relocated) -> str:
    """Return the answer to a model."""
    lines = [f"{why[0].upper()}{why[1:]}. Files: {', '.join(relocated.files)}."]
    if relocated.asks_again:
        lines.append(f"Asked about again at the next call: {', '.join(relocated.asks_again)}.")
    return "\n".join([*lines, *(f"Not looked at: {each}" for each in relocated.unread)])


def _check_name(name: str, snapshot: Snapshot) -> None:
    """Check that a function can have a name.

    Raises:
        UsageError: it cannot.
    """
    shown = name_shown(name)
    taken = snapshot.functions.get(name)
    why = ""
    if keyword.iskeyword(name):
        why = "is a Python keyword"
    elif not _NAME.fullmatch(name):
        why = "is no name of a function: up to 64 letters, digits and underscores, with a letter first"
    elif taken is not None:
        why = f"is already the function at {taken.path}:{taken.line}"
    elif name in snapshot.reserved:
        why = "is the name of a function that is built in"
    elif name in snapshot.helpers:
        why = "is the name of a helper"
    if why:
        raise UsageError(f"`{shown}` {why}.", fix="Choose another name.")


def _name_before(name: str, names: Mapping[str, str]) -> str:
    return next((old for old, new in names.items() if new == name), name)


def path_in(snapshot: Snapshot, module: str) -> str:
    """Return the path of a module that a snapshot has or may get."""
    if module in snapshot.modules:
        return snapshot.modules[module].path
    is_package = any(each.startswith(f"{module}.") for each in snapshot.modules)
    return path_of(f"{module}.__init__" if is_package else module)


def _differing(snapshot: Snapshot, new_snapshot: Snapshot) -> list[str]:
    """Return the modules that differ, those first that give a function up."""
    modules = [
        module
        for module in sorted(snapshot.modules.keys() | new_snapshot.modules.keys())
        if snapshot.modules.get(module) != new_snapshot.modules.get(module)
    ]
    now = {(each.module, name) for name, each in new_snapshot.functions.items()}
    giving = {
        each.module for name, each in snapshot.functions.items() if (each.module, name) not in now
    }
    return sorted(modules, key=lambda module: module not in giving)


def composed(texts: Mapping[str, str | None], snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with new texts of modules; None is a deletion.

    Raises:
        UsageError: one of them cannot be read, or defines a name that is taken.
    """
    new_snapshot = snapshot.draft()
    for module in texts:  # first all names are free
        new_snapshot = new_snapshot.without_module(module).draft()
    for module, text in texts.items():
        if text is None:
            continue
        reading = read_module(ModuleSource.of(module, text, path_in(snapshot, module)))
        clashes = new_snapshot.clashes(reading)
        problem = next(iter((*clashes, *(() if reading.parsed else reading.problems))), None)
        if problem is not None:
            fix = problem.fix or "Nothing was changed."
            raise UsageError(f"{problem.where}: {problem.message}.", fix=fix)
        new_snapshot = new_snapshot.with_module(reading)
    return new_snapshot.finished()


def without(name: str, text: str, module: str, snapshot: Snapshot) -> str | None:
    """Return the text of a module without a function and the imports that only it used, or None if nothing is left.

    Raises:
        UsageError: it cannot be taken out.
    """
    left = remove_function(text, name)
    if isinstance(left, Problem):
        what = f"`{name}` cannot be taken out of {path_in(snapshot, module)}: {left.message}"
        raise UsageError(f"{what}.", fix=left.fix or "Edit the file.")
    before = snapshot.modules[module].text
    left = without_stale_imports(before, left, module, snapshot.modules.values())
    return left if left.strip() else None


def placed(name: str, code: str, text: str, module: str, snapshot: Snapshot) -> str:
    """Return the text of a module with a function and what it brings.

    Raises:
        UsageError: it cannot be put there.
    """
    path = path_in(snapshot, module)
    new = place_function(text, code, name, path=path)
    if isinstance(new, Problem):
        fix = new.fix or "Nothing was changed."
        raise UsageError(f"`{name}` cannot be put into {path}: {new.message}.", fix=fix)
    return new


# A function in the place of another one.


def replaced(name: str, other: str, snapshot: Snapshot, more: str = "") -> Snapshot:
    """Return the snapshot in which what calls a function calls another, with `more` arguments, and the first is gone.

    Raises:
        UsageError: a place cannot be rewritten; the message says which.
    """
    home = snapshot.functions[name].module
    is_near = snapshot.functions[other].module == home
    texts = dict[str, str | None]({home: snapshot.modules[home].text})
    for each in references_in([*snapshot.modules.values()], home, name, follows=False):
        module = each.source.module
        for line, what in each.unread.items():
            raise each.error(line, what, "Keep both, or change that first.")
        found = list[Reference]()
        for place in each.found:
            holder = next(
                (
                    function.name
                    for function in snapshot.readings[module].functions
                    if function.line <= place.line <= function.end_line
                ),
                "",
            )
            if holder == name or place.kind == "listed":  # it goes with the function
                continue
            by_name = is_near and (module == home or place.kind == "attribute")
            if holder in ("", other) or not (by_name or place.kind == "call"):
                raise each.not_rewritten(place.line)
            found.append(place)
        texts[module] = redirected(each, found, other, more)
    texts[home] = without(name, texts[home] or "", home, snapshot)
    return composed(texts, snapshot)


# A function in another module.


def _moved(
    name: str, module: str, found: Sequence[References], snapshot: Snapshot
) -> dict[str, str | None]:
    """Return the texts of all modules once a function is in another one.

    Raises:
        UsageError: it cannot be moved; the message says why.
    """
    home = snapshot.modules[snapshot.functions[name].module]
    cut = _Cut.of(name, home, module, snapshot)
    texts = dict[str, str | None]()
    target = snapshot.modules.get(module)
    for each in found:
        if each.source == home or not each.found:
            continue
        is_home = each.source == target
        text, lacks = retargeted(each, module, is_home=is_home)
        texts[each.source.module] = _importing(text, module, name) if lacks else text
    own = next(each for each in found if each.source == home)
    texts[home.module] = cut.rest(own, module, snapshot)
    base = texts.get(module, target.text if target else "") or ""
    return {**texts, module: placed(name, cut.candidate(module), base, module, snapshot)}


def _importing(text: str, module: str, name: str) -> str:
    """Return a text that imports a function."""
    parsed = ParsedText.of(text, syntax.parse(text))
    added = Brought((), (f"from {FOLDER}.{module} import {name}",))
    return applied(parsed.lines, import_edits(parsed, added))


@dataclass(frozen=True, slots=True)
class _Cut:
    """A function in its module, with the statements that go with it and the names that stay and are imported."""

    name: str
    source: ModuleSource
    parts: ModuleParts
    at: int
    carried: Set[int]
    imports: Sequence[str]
    left: Set[str]

    @classmethod
    def of(cls, name: str, source: ModuleSource, module: str, snapshot: Snapshot) -> "_Cut":
        """Return what belongs to a function of a module that goes to another one.

        Raises:
            UsageError: it cannot be taken out.
        """
        parts = ModuleParts.of(source.text, source.path)
        if isinstance(parts, Problem):
            raise UsageError(f"{parts.where}: {parts.message}.", fix=parts.fix or "")
        at = parts.holder({name})
        body = parts.text.body
        if at is None or not isinstance(body[at], Definition):
            what = f"`{name}` is not one plain function at the top level of {source.path}"
            raise UsageError(f"{what}, so it is not moved.", fix="Edit the file.")
        group = parts.needed({name}, {*parts.public} - {name}) - {at}
        imported = {each for each in range(len(body)) if is_import(body[each])}
        carried = _only_for(name, group - imported, parts, source, snapshot)
        moving = {at, *carried}
        read = {word for each in moving for word in _words(parts, each)}
        stays = {*range(len(body))} - imported - moving
        left = read & {word for each in stays for word in parts.binds[each]}
        shared = {word for facts in parts.statements for word in facts.shared}
        if changing := sorted(left & shared):
            what = (
                f"`{changing[0]}` of {source.path} is assigned by functions, and `{name}` uses it"
            )
            raise UsageError(f"{what}, so it is not moved.", fix="Keep it there.")
        imports = [
            line
            for each in sorted(group & imported)
            for line in _import_lines(parts, each, read, source, module)
        ]
        return cls(name, source, parts, at, carried, imports, left)

    def candidate(self, module: str) -> str:
        """Return the function with all that it brings to its new module."""
        imports = [*self.imports]
        if self.left:
            names = ", ".join(sorted(self.left))
            imports.append(f"from {FOLDER}.{self.source.module} import {names}")
        text = self.parts.text
        segments = [text.segment(text.body[each]) for each in sorted({self.at, *self.carried})]
        return "\n\n\n".join(filter(None, ["\n".join(imports), *segments])) + "\n"

    def rest(self, own_references: References, module: str, snapshot: Snapshot) -> str | None:
        """Return the text of its module without it."""
        text = self.parts.text
        edits = list[LineEdit]()
        for each in self.carried:
            start, end = text.span(text.body[each])
            while end < len(text.lines) and is_blank(text.lines[end]):
                end += 1
            edits.append(LineEdit(start - 1, end, ()))
        module_text = applied(text.lines, edits)
        left = without(self.name, module_text, self.source.module, snapshot)
        spans = [text.span(text.body[each]) for each in {self.at, *self.carried}]
        is_used = any(
            each.kind == "name" and not any(first <= each.line <= last for first, last in spans)
            for each in own_references.found
        )
        return _importing(left or "", module, self.name) if is_used else left


def _words(parts: ModuleParts, at: int) -> Set[str]:
    facts = parts.statements[at]
    return facts.reads | facts.takes


def _only_for(
    name: str, own: Set[int], parts: ModuleParts, source: ModuleSource, snapshot: Snapshot
) -> Set[int]:
    """Return the statements of `own` that only this function needs, in its module and in others."""
    others = {*range(len(parts.binds))} - own - {parts.holder({name})}
    wanted = {word for each in others for word in parts.binds[each] or _words(parts, each)}
    elsewhere = "\n".join(
        snapshot.modules[module].text
        for module, reading in snapshot.readings.items()
        if source.module in reading.imports and module != source.module
    )
    return {
        each
        for each in own - parts.needed(wanted, {name})
        if not parts.text.shares_a_line(parts.text.body[each])
        and not any(re.search(rf"\b{re.escape(word)}\b", elsewhere) for word in parts.binds[each])
    }


def _import_lines(
    parts: ModuleParts, at: int, read: Set[str], source: ModuleSource, module: str
) -> Iterator[str]:
    """Yield the lines of an import that a function needs in its new module."""
    node = parts.text.body[at]
    if not isinstance(node, ast.Import | ast.ImportFrom):
        yield parts.text.segment(node)
        return
    head = ""
    if isinstance(node, ast.ImportFrom):
        is_package = source.path.endswith("/__init__.py")
        own = f"{FOLDER}.{source.module}"
        base = imported_module(node.module or "", node.level, own, is_package=is_package)
        head = f"from {base} "
    used = [
        alias
        for alias in node.names
        if {(alias.asname or alias.name).partition(".")[0], alias.name} & {*read, "*"}
        or "*" in parts.binds[at]
    ]
    if head == f"from {FOLDER}.{module} ":
        if any(alias.asname for alias in used):
            what = f"{source.path}:{node.lineno} imports from `{module}` under another name"
            raise UsageError(f"{what}, so nothing was moved there.", fix="Use the name itself.")
    elif used:
        yield f"{head}import {', '.join(map(ast.unparse, used))}"


def _check_circles(modules: Iterable[str], snapshot: Snapshot, new_snapshot: Snapshot) -> None:
    """Check that no modules import each other that did not before.

    Raises:
        UsageError: some would; the message says which.
    """
    for module in modules:
        circle = _circle(module, new_snapshot)
        if circle and not _circle(module, snapshot):
            paths = [new_snapshot.modules[each].path for each in circle]
            told = f"{paths[0]} would import {paths[1]}"
            told += "".join(f", which imports {path}" for path in [*paths[2:], paths[0]])
            fix = "Move what they share into a third module first."
            raise UsageError(f"The imports would be a circle: {told}.", fix=fix)


def _circle(start: str, snapshot: Snapshot) -> list[str]:
    """Return the modules that lead from a module back to itself by what they import as they load, or none."""
    waiting = [[start]]
    seen = set[str]()
    while waiting:
        way = waiting.pop()
        for module in _loaded_by(way[-1], snapshot):
            if module == start:
                return way
            if module not in seen:
                seen.add(module)
                waiting.append([*way, module])
    return []


def _loaded_by(module: str, snapshot: Snapshot) -> list[str]:
    """Return the modules of the workspace that a module imports when it is loaded."""
    source = snapshot.modules.get(module)
    found = list[str]()
    for node, facts, _ in statements_of(source.text) if source else ():
        is_late = isinstance(node, Definition | ast.ClassDef)
        if is_late or (isinstance(node, ast.If) and is_import(node)):
            continue
        for level, base, imported in facts.imports:
            is_package = source is not None and source.path.endswith("/__init__.py")
            own = f"{FOLDER}.{module}"
            full = imported_module(base, max(level, 0), own, is_package=is_package)
            found += [full, f"{full}.{imported}"]
    names = [each.removeprefix(f"{FOLDER}.") for each in found if each.startswith(f"{FOLDER}.")]
    return [each for each in dict.fromkeys(names) if each in snapshot.modules and each != module]
