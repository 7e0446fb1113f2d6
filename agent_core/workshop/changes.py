"""Plan what a verb would change: every candidate goes through the gate, and a refused one is kept.

Nothing is written here: a plan holds the new text of the file and the rows that go with it.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import UsageError, WorkspaceError
from ..gate import Candidate, Gate, GivenExample, Verdict
from ..problem import Place, Problem
from ..registry.function import Reading
from ..registry.registry import Registry
from ..registry.schema import read_module
from ..registry.snapshot import Snapshot
from ..registry.source import Source, read_file
from ..registry.spans import Text, split
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
from .callers import callers
from .plan import Author, Deed, FileChange, Plan
from .view import unknown_function

_NO_STAMP = (0, 0, 0)
_DONE: dict[Deed, str] = {"created": "joined", "changed": "was changed"}


class Changes:
    """The planning half of the workshop."""

    def __init__(self, root: Path, store: Store, registry: Registry, gate: Gate, limit_bytes: int) -> None:
        self._folder = root / "functions"
        self._store = store
        self._registry = registry
        self._gate = gate
        self._limit = limit_bytes

    async def create(self, candidate: Candidate, author: Author) -> Plan:
        """A new function, or a pending one sent again."""
        snapshot = self._registry.snapshot()
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
        return await self._judged(candidate, snapshot, author, "created")

    async def replace(self, name: str, code: str, reason: str, author: Author) -> Plan:
        """New source for a function that exists, or for a candidate that stands refused."""
        snapshot = self._registry.snapshot()
        module = await self._module_of(name, snapshot)
        candidate = Candidate(name, code, module, reason, replaces=name in snapshot.functions)
        return await self._judged(candidate, snapshot, author, "changed" if candidate.replaces else "created")

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
        snapshot = self._registry.snapshot()
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
        return await self._verdict_plan(
            candidate, verdict, snapshot, author, "changed" if candidate.replaces else "created"
        )

    async def delete(self, name: str, author: Author) -> Plan:
        """A function's text taken out of its module; the module's file goes with its last function."""
        snapshot = self._registry.snapshot()
        function = snapshot.functions.get(name)
        if function is None:
            raise unknown_function(name)
        users = callers(name, snapshot)
        if users:
            text = f"`{name}` was not deleted, because these use it: {', '.join(users)}. Change or delete them first."
            return Plan(text, "refused", {"deleted": None, "name": name, "callers": users})
        source = snapshot.modules[function.module]
        self._check_file(source)
        left = remove_function(source.text, name)
        if isinstance(left, Problem):
            raise WorkspaceError(f"`{name}` cannot be taken out of {source.path}: {left.what}.", mend=left.mend or "")
        reading = _reading(function.module, source.path, left) if left.strip() else None
        detail = {"deleted": name, "name": name, "module": function.module, "version": source.version}
        text = f"`{name}` was deleted from {source.path}. Its versions are kept in the history."
        return _plan(text, detail, source, reading, _Deed("deleted", name, author))

    def source(self, name: str) -> str:
        """The exact text of a function as it is now, with the comments above it, which are replaced with it."""
        snapshot = self._registry.snapshot()
        function = snapshot.functions.get(name)
        if function is None:
            raise unknown_function(name)
        text = Text(tuple(split(snapshot.modules[function.module].text)), ())
        return "".join(text.lines[text.with_comments(function.line) - 1 : function.end_line])

    async def _module_of(self, name: str, snapshot: Snapshot) -> str:
        if name in snapshot.functions:
            return snapshot.functions[name].module
        pending = await self._store.pending(name)
        if pending is None:
            raise UsageError(f"There is no function `{name}`.", mend="create_function makes one.")
        return str(pending["module"])

    async def _judged(self, candidate: Candidate, snapshot: Snapshot, author: Author, deed: Deed) -> Plan:
        held = snapshot.modules.get(candidate.module)
        if held is not None:
            self._check_file(held)
        verdict = await self._gate.judge(candidate, snapshot)
        return await self._verdict_plan(candidate, verdict, snapshot, author, deed)

    async def _verdict_plan(
        self, candidate: Candidate, verdict: Verdict, snapshot: Snapshot, author: Author, deed: Deed
    ) -> Plan:
        if not verdict.admitted or verdict.module_text is None:
            return await self._refused(candidate, verdict)
        held = snapshot.modules.get(verdict.module)
        path = held.path if held else f"functions/{verdict.module.replace('.', '/')}.py"
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

    def _check_file(self, source: Source) -> None:
        """A file that holds something else than what is running is a human's, and is not written over."""
        found = read_file(self._folder, Path(source.path).relative_to("functions"), self._limit)
        if isinstance(found, Source) and found.version != source.version:
            raise WorkspaceError(
                f"{source.path} holds an edit that is not in use (it was rejected, or just saved).",
                mend="Mend or revert that edit first: reload_functions says what is wrong with it.",
            )


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


def _candidate(pending: dict[str, Any], replaces: bool) -> Candidate:  # noqa: FBT001 - a fact, not a mode
    verdict = pending["verdict"]
    examples = tuple(GivenExample(call, expected, approx) for call, expected, approx in pending["examples"])
    code = verdict["source"] or pending["code"]
    return Candidate(verdict["name"], code, pending["module"], pending["reason"], examples, replaces)


def _refusal(candidate: Candidate, code: str, what: str, path: str) -> dict[str, Any]:
    problem = Problem(code, what, Place(path), "change the one that is there, or choose another name")
    return {"name": candidate.name, "module": candidate.module, "admitted": False, "problems": [problem.to_json()]}
