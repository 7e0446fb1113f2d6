"""Plan what a verb would change: every candidate goes through the gate, and a refused one is kept.

Nothing is written here: a plan holds the new text of the file and the rows that go with it.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import StaleFile, UsageError, WorkspaceError
from ..gate import Candidate, Gate, GivenExample, Verdict
from ..problem import Place, Problem
from ..registry.function import Reading
from ..registry.registry import Registry
from ..registry.schema import read_module
from ..registry.snapshot import Snapshot
from ..registry.source import Source, path_of, read_file
from ..registry.spans import Text, split
from ..registry.uses import callers
from ..registry.writing import remove_function
from ..storage import (
    DropPending,
    DropReading,
    SavePending,
    SaveReading,
    SaveVerdict,
    SaveVersion,
    SetManifest,
    Store,
    Write,
)
from ..untrusted import block
from . import telling
from .plan import Author, Deed, FileChange, Plan
from .view import unknown_function

_NO_STAMP = (0, 0, 0)
CatchUp = Callable[[str], Awaitable[None]]
"""Take what a file, named by its path, is now, whoever wrote it."""
Replan = Callable[[], Awaitable[Plan]]
_DONE: dict[Deed, str] = {"created": "joined", "changed": "was changed"}


class Changes:
    """The planning half of the workshop."""

    def __init__(  # noqa: PLR0913 - the rooms that it joins
        self, root: Path, store: Store, registry: Registry, gate: Gate, *, module_bytes: int, catch_up: CatchUp
    ) -> None:
        self._folder = root / "functions"
        self._store = store
        self._registry = registry
        self._gate = gate
        self._limit = module_bytes
        self._catch_up = catch_up

    async def create(self, candidate: Candidate, author: Author) -> Plan:
        """A new function, or a pending one sent again."""
        snapshot = await self._settled(candidate.module, "", self._registry.snapshot())
        holder = snapshot.functions.get(candidate.name)
        if holder is not None:
            text = (
                f"`{candidate.name}` exists already, in {holder.path}: {telling.signature(holder)}\n"
                f"{holder.description}\n"
                f"Call it if it does what is needed. To change it use edit_function or replace_function; "
                f"for something else choose another name."
            )
            return Plan(
                text, "refused", _refusal(candidate, "name-taken", f"`{candidate.name}` exists already", holder.path)
            )
        plan = await self._judged(candidate, snapshot, author, "created")
        return self._repeatable(plan, partial(self.create, candidate, author))

    async def replace(self, name: str, code: str, reason: str, author: Author) -> Plan:
        """New source for a function that exists, or for a candidate that stands refused."""
        before = self._registry.snapshot()
        module = await self._module_of(name, before)
        snapshot = await self._settled(module, name, before)
        candidate = Candidate(name, code, module, reason, replaces=name in snapshot.functions)
        plan = await self._judged(candidate, snapshot, author, "changed" if candidate.replaces else "created")
        return self._repeatable(plan, partial(self.replace, name, code, reason, author), name, snapshot)

    async def edit(self, name: str, old_text: str, new_text: str, author: Author) -> Plan:
        """The same source with one place changed: of the pending candidate if there is one, else of the function."""
        pending = await self._store.pending(name)
        code = pending["verdict"]["source"] or pending["code"] if pending else self.source(name)
        count = code.count(old_text) if old_text else 0
        if count != 1:
            which = "the candidate that stands refused" if pending else "the function"
            how = "is not in it" if count == 0 else f"is in it {count} times: give more of the lines around it"
            text = f"Nothing was changed: `old_text` {how}. {which.capitalize()} reads:\n{block(code, 6_000)}"
            return Plan(text, "refused", {"name": name, "admitted": False})
        return await self.replace(name, code.replace(old_text, new_text), f"edit of {name}", author)

    async def confirm(self, name: str, author: Author) -> Plan:
        """A pending candidate with the values that really came back, where only written results disagreed."""
        pending = await self._store.pending(name)
        if pending is None:
            text = f"No candidate named `{name}` is waiting: confirm_function is for one that create_function refused."
            return Plan(text, "refused", {"name": name, "admitted": False})
        snapshot = await self._settled(pending["module"], name, self._registry.snapshot())
        candidate = _candidate(pending, name in snapshot.functions)
        verdict = await self._gate.judge(candidate, snapshot)
        if not verdict.admitted and not verdict.can_be_confirmed:
            text = f"`{name}` cannot be confirmed: more than its examples' results is in the way.\n"
            return Plan(
                text + telling.refused(verdict, again=False, replaces=candidate.replaces),
                "refused",
                verdict.to_json(),
                refused=name,
            )
        if not verdict.admitted:
            verdict = await self._gate.confirm(candidate, verdict, snapshot)
        deed: Deed = "changed" if candidate.replaces else "created"
        plan = await self._verdict_plan(candidate, verdict, snapshot, author, deed)
        return self._repeatable(plan, partial(self.confirm, name, author), name, snapshot)

    async def delete(self, name: str, author: Author) -> Plan:
        """A function's text taken out of its module; the module's file goes with its last function."""
        before = self._registry.snapshot()
        if name not in before.functions:
            raise unknown_function(name)
        snapshot = await self._settled(before.functions[name].module, name, before)
        function = snapshot.functions[name]
        users = callers(name, snapshot)
        if users:
            text = f"`{name}` was not deleted, because these use it: {', '.join(users)}. Change or delete them first."
            return Plan(text, "refused", {"deleted": None, "name": name, "callers": users})
        source = snapshot.modules[function.module]
        left = remove_function(source.text, name)
        if isinstance(left, Problem):
            raise WorkspaceError(f"`{name}` cannot be taken out of {source.path}: {left.what}.", mend=left.mend or "")
        reading = _reading(function.module, source.path, left) if left.strip() else None
        detail = {"deleted": name, "name": name, "module": function.module, "version": source.version}
        text = f"`{name}` was deleted from {source.path}. Its versions are kept in the history."
        plan = _plan(text, detail, source, reading, _Deed("deleted", name, author))
        return self._repeatable(plan, partial(self.delete, name, author), name, snapshot)

    def source(self, name: str) -> str:
        """The exact text of a function as it is now, with the comments above it, which are replaced with it."""
        text = _own(name, self._registry.snapshot())
        if text is None:
            raise unknown_function(name)
        return text

    async def _module_of(self, name: str, snapshot: Snapshot) -> str:
        if name in snapshot.functions:
            return snapshot.functions[name].module
        pending = await self._store.pending(name)
        if pending is None:
            raise UsageError(f"There is no function `{name}`.", mend="create_function makes one.")
        return str(pending["module"])

    async def _judged(self, candidate: Candidate, snapshot: Snapshot, author: Author, deed: Deed) -> Plan:
        verdict = await self._gate.judge(candidate, snapshot)
        return await self._verdict_plan(candidate, verdict, snapshot, author, deed)

    async def _verdict_plan(
        self, candidate: Candidate, verdict: Verdict, snapshot: Snapshot, author: Author, deed: Deed
    ) -> Plan:
        if not verdict.admitted or verdict.module_text is None:
            return await self._refused(candidate, verdict)
        held = snapshot.modules.get(verdict.module)
        path = held.path if held else path_of(verdict.module)
        reading = verdict.reading or _reading(verdict.module, path, verdict.module_text)
        function = next(each for each in reading.functions if each.name == verdict.name)
        said = {**verdict.to_json(), "by": author.by}
        writes = (SaveVerdict(function.body_hash, verdict.name, said), DropPending(verdict.name))
        text = telling.admitted(verdict, function, _DONE[deed])
        source = held or Source(verdict.module, path, "", "")
        plan = _plan(text, verdict.to_json(), source, reading, _Deed(deed, verdict.name, author, candidate.reason))
        return replace(plan, writes=(*plan.writes, *writes))

    async def _refused(self, candidate: Candidate, verdict: Verdict) -> Plan:
        before = await self._store.pending(candidate.name)
        again = before is not None and (before["code"], before["module"]) == (candidate.code, candidate.module)
        kept = {
            "code": candidate.code,
            "module": candidate.module,
            "reason": candidate.reason,
            "examples": [[each.call, each.expected, each.approx] for each in candidate.examples],
            "verdict": verdict.to_json(),
        }
        said = telling.refused(verdict, again=again, replaces=candidate.replaces)
        return Plan(
            "\n".join(filter(None, [said, telling.source_of_pending(verdict)])),
            "refused",
            verdict.to_json(),
            writes=(SavePending(candidate.name, kept),),
            refused=candidate.name,
            excluded=telling.excluded(verdict, again=again),
        )

    async def _settled(self, module: str, name: str, before: Snapshot) -> Snapshot:
        """The snapshot that has what the module's file is now: a save that nobody has seen yet is taken first.

        Raises:
            WorkspaceError: the save was rejected, or it changed the function itself: it is not written over.
        """
        held = before.modules.get(module)
        path = held.path if held else path_of(module)
        if not self._is_other(path, held):
            return before
        snapshot = await self._caught_up(path, name, before)
        if self._is_other(path, snapshot.modules.get(module)):
            raise WorkspaceError(
                f"{path} holds an edit that is not in use, because it was rejected.",
                mend="Mend or revert that edit first: reload_functions says what is wrong with it.",
            )
        return snapshot

    def _is_other(self, path: str, held: Source | None) -> bool:
        found = read_file(self._folder, Path(path).relative_to("functions"), self._limit)
        return isinstance(found, Source) and found.version != (held.version if held else None)

    async def _caught_up(self, path: str, name: str, before: Snapshot) -> Snapshot:
        await self._catch_up(path)
        snapshot = self._registry.snapshot()
        if name and _own(name, snapshot) != _own(name, before):
            what = f"`{name}` itself was changed by somebody meanwhile, so it was not overwritten."
            raise StaleFile(what, mend="Look at what it is now, then make the change.")
        return snapshot

    def _repeatable(self, plan: Plan, verb: Replan, name: str = "", snapshot: Snapshot | None = None) -> Plan:
        """The plan, with the way to make it anew when its file is another by then; `name` must be as in `snapshot`."""
        change = plan.change
        if change is None:
            return plan

        async def again() -> Plan:
            await self._caught_up(change.path, name, snapshot or self._registry.snapshot())
            return await verb()

        return replace(plan, again=again)


@dataclass(frozen=True, slots=True)
class _Deed:
    """What a change is: created, changed or deleted, of which function, by whom and why."""

    what: Deed
    name: str
    author: Author
    reason: str = ""


def _plan(text: str, detail: dict[str, Any], source: Source, reading: Reading | None, deed: _Deed) -> Plan:
    """The file's change from `source` (an empty version: no file yet) to `reading` (None: no file any more)."""
    expected = source.version or None
    version = reading.source.version if reading else None
    author, why = deed.author, deed.reason or f"{deed.what} {deed.name}"
    entered: tuple[Write, ...] = (SetManifest(source.module, expected, version, author.by, author.turn, why),)
    if reading is None:
        entered = (*entered, DropReading(source.path))
    else:
        now = reading.source
        saved = SaveVersion(source.module, now.version, now.text, author.by, author.turn, why, author.model)
        entered = (saved, *entered, SaveReading(source.path, _NO_STAMP, now.version, json.dumps(reading.to_json())))
    change = FileChange(
        source.path, source.module, expected, reading.source.text if reading else None, version, reading
    )
    return Plan(text, "returned", detail, change, entered, (deed.what, deed.name))


def _reading(module: str, path: str, text: str) -> Reading:
    return read_module(Source.of(module, text, path))


def _own(name: str, snapshot: Snapshot) -> str | None:
    """A function's own text with the comments above it; None if there is no such function."""
    function = snapshot.functions.get(name)
    if function is None:
        return None
    text = Text(tuple(split(snapshot.modules[function.module].text)), ())
    return "".join(text.lines[text.with_comments(function.line) - 1 : function.end_line])


def _candidate(pending: dict[str, Any], replaces: bool) -> Candidate:  # noqa: FBT001 - a fact, not a mode
    verdict = pending["verdict"]
    examples = tuple(GivenExample(call, expected, approx) for call, expected, approx in pending["examples"])
    code = verdict["source"] or pending["code"]
    return Candidate(verdict["name"], code, pending["module"], pending["reason"], examples, replaces)


def _refusal(candidate: Candidate, code: str, what: str, path: str) -> dict[str, Any]:
    problem = Problem(code, what, Place(path), "change the one that is there, or choose another name")
    return {"name": candidate.name, "module": candidate.module, "admitted": False, "problems": [problem.to_json()]}
