"""The history of a function: its versions, who changed what and why, and rollback.

An earlier version passes the gate like any change, unfixed, as a candidate with the imports and private helpers of
that time. A helper that has changed since is restored if nothing else uses it; otherwise the gate reports the
conflict.
"""

import ast
import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from agent_core.base.offload import aside
from agent_core.base.problem import Place, Problem
from agent_core.base.untrusted import fence, one_line
from agent_core.registry.depends import ModuleParts
from agent_core.registry.module_edits import is_import
from agent_core.registry.schema import read_module
from agent_core.registry.source import LineEdit, ModuleSource, applied, bound_names, with_newline
from sandbox.wire.lines import lines_of

from ..gate import Candidate, Policy
from ..gate.examples import with_example
from . import change_texts, example_regression, file_sync, history
from .file_sync import FileSync, own_text
from .function_facts import known_function, unknown_function
from .history import FunctionHistory, HistoryEntry, Version, VersionDiff
from .judgment import Judgment, judgment_on
from .plan import Author, ChangeSummary, Deed, PlannedChange, refusal, with_once_more

if TYPE_CHECKING:
    from agent_core.registry.examples import Example
    from agent_core.registry.function import Function
    from agent_core.storage import FunctionStore

    from .changes import CandidateReview


def candidate_of(module_text: str, name: str, source: str) -> str:
    """Return a function of an earlier module with the imports and helpers that it needs. `source` is the fallback."""
    module = ModuleParts.of(module_text)
    at = None if isinstance(module, Problem) else module.holder({name})
    if isinstance(module, Problem) or at is None:
        return source  # it was defined conditionally, so only its own lines can be used
    needed = sorted({at, *module.referred(at)})
    return "\n\n\n".join(module.text.segment(module.text.body[each]) for each in needed) + "\n"


def with_own_helpers(module_text: str, past_text: str, name: str) -> str:
    """Return the current module with the earlier helpers that have changed since and that only this function uses."""
    module, past = ModuleParts.of(module_text), ModuleParts.of(past_text)
    if (
        isinstance(module, Problem)
        or isinstance(past, Problem)
        or (own := past.holder({name})) is None
    ):
        return module_text
    mine = module.holder({name})
    group = set[int]() if mine is None else {mine, *module.referred(mine)}
    others = [
        at for at, node in enumerate(module.text.body) if at not in group and not is_import(node)
    ]
    used = {helper for at in others for helper in module.referred(at)}
    edits = []
    for at in past.referred(own):
        helper = past.text.body[at]
        place = None if is_import(helper) else module.holder(bound_names(helper))
        old = None if place is None else module.text.body[place]
        if place is None or old is None or ast.dump(old) == ast.dump(helper) or place in used:
            continue
        start, end = module.text.span(old)
        text = with_newline(f"{past.text.segment(helper)}\n", module.text.newline)
        edits.append(LineEdit(start - 1, end, tuple(lines_of(text))))
    return applied(module.text.lines, edits)


class VersionHistory:
    """Queries about the versions of functions, and plans for rollback and for new examples."""

    def __init__(
        self, store: "FunctionStore", files: FileSync, review: Callable[[], "CandidateReview"]
    ) -> None:
        self._store = store
        self._files = files
        self._review = review

    async def versions(self, name: str) -> tuple[Version, ...]:
        """Return every version of a function, oldest first.

        Raises:
            UsageError: there never was such a function.
        """
        versions = await asyncio.to_thread(
            history.versions, await self._store.function_history(name), name
        )
        if not versions:
            raise unknown_function(name, self._files.registry.snapshot().functions)
        return versions

    async def of(self, name: str) -> FunctionHistory:
        """Return the versions of a function with the gate's verdict on each."""
        versions = await self.versions(name)
        now = history.current(versions)
        pairs = zip((None, *versions), versions, strict=False)
        entries: list[HistoryEntry] = []
        for before, version in pairs:
            verdict = await judgment_on(self._store, version.hash, name)
            dropped = await asyncio.to_thread(_dropped_examples, name, before, version)
            standing, confirmed = (verdict.standing, verdict.confirmed) if verdict else ("", ())
            entries.append(HistoryEntry(version, standing, confirmed, dropped, version is now))
        module = versions[-1].row.module
        return FunctionHistory(
            name, module, now is None, history.has_earlier(versions), tuple(entries)
        )

    async def diff(self, name: str, reference: str = "") -> VersionDiff:
        """Return the diff from a version (by default the one before the current) to the current function."""
        versions = await self.versions(name)
        old, now = history.pick(name, versions, reference), versions[-1]
        names = (
            f"{name} {old.number} ({old.short})",
            f"{name} {now.number} ({now.short or now.change_kind})",
        )
        return VersionDiff(
            name, old, now, await asyncio.to_thread(history.diff, old.source, now.source, names)
        )

    async def rollback(
        self, name: str, reference: str, author: Author, policy: Policy | None = None
    ) -> PlannedChange:
        """Plan to restore an earlier version, even of a deleted function; `policy` replaces that of the author."""
        versions = await self.versions(name)
        target = history.pick(name, versions, reference, goes_back=True)
        before = self._files.registry.snapshot()
        function = before.functions.get(name)
        file_sync.require_read(name, author, own_text(name, before) or "")
        module = (
            function.module if function else versions[-1].row.module
        )  # of a deleted function, the last one
        snapshot = await self._files.settled(module, name, before)
        if function is not None and function.body_hash == target.hash:
            return refusal(
                name, f"`{name}` is at version {target.number} already, so nothing was changed."
            )
        wrote = next(version.row.by for version in versions if version.hash == target.hash)
        is_there = name in snapshot.functions
        back = history.went_back(target, is_there=is_there)
        code = candidate_of(target.row.text, name, target.source)
        existing = snapshot.modules.get(module)
        around = with_own_helpers(existing.text, target.row.text, name) if existing else None
        candidate = Candidate(
            name, code, module, back, replaces=is_there, exact=True, around=around
        )
        deed: Deed = "changed" if is_there else "created"
        done = f"was {back} of {target.when}"
        work = ChangeSummary(deed, name, author, back, done, goes_back=True, wrote=wrote)
        plan = await self._review().judged(
            candidate, snapshot, work, policy or _policy(author.by, wrote)
        )
        assert isinstance(plan.detail, Judgment)
        plan = replace(
            plan, detail=replace(plan.detail, back=f"version {target.number} of {target.when}")
        )
        replan = partial(self.rollback, name, str(target.number), author, policy)
        plan = with_once_more(
            plan, code, author, snapshot, lambda by: self.rollback(name, reference, by, policy)
        )
        return self._files.repeatable(plan, replan, name, snapshot)

    async def add_example(
        self, name: str, call: str, expected: str, author: Author
    ) -> PlannedChange:
        """Plan to add an example to a function's docstring if it passes. Otherwise the function is not changed."""
        before = self._files.registry.snapshot()
        snapshot = await self._files.settled(known_function(name, before).module, name, before)
        function = snapshot.functions[name]
        size = len(call) + len(expected)
        existing = await aside(
            size, example_regression.holds, function, call.strip().removeprefix(">>>")
        )
        if existing is not None:
            return refusal(name, change_texts.known_example(name, existing, expected))
        code = await aside(size, with_example, own_text(name, snapshot) or "", name, call, expected)
        if isinstance(code, Problem):
            return refusal(
                name, f"`{name}` was not changed: {code.message}. Fix: {code.fix}.", code
            )
        (fresh,) = await aside(len(code), _fresh, function, code) or (None,)
        if fresh is None:
            return refusal(name, f"`{name}` was not changed: the example cannot be read as one.")
        (result,) = await self._review().gate.run_examples(
            replace(function, examples=(fresh,)), snapshot
        )
        if not result.agreed:
            return refusal(name, change_texts.failed_example(name, result))
        why = f"example added: {one_line(fresh.call, 120)}"
        candidate = Candidate(name, code, function.module, why, replaces=True, exact=True)
        work = ChangeSummary(
            "changed", name, author, why, f"keeps the example {fence(fresh.call, 120)} now,"
        )
        verdict = await judgment_on(self._store, function.body_hash, name)
        policy = _policy(author.by, (verdict and verdict.by) or "human")
        plan = await self._review().judged(candidate, snapshot, work, policy)
        replan = partial(
            self.add_example, name, fresh.call, example_regression.written(fresh), author
        )
        return self._files.repeatable(plan, replan, name, snapshot)


def _policy(by: str, wrote: str) -> Policy:
    """Return the policy: users are only warned; agents are rejected, but a user's text is checked as an import."""
    if by == "human":
        return "human"
    return "import" if wrote == "human" else "agent"


def _fresh(function: "Function", code: str) -> tuple["Example"] | None:
    """Return the single new example in the text of a function, or None."""
    reading = read_module(ModuleSource.of(function.module, code, function.path))
    now = reading.function(function.name)
    examples = now.examples if now else ()
    fresh = [
        example for example in examples if example_regression.holds(function, example.call) is None
    ]
    return (fresh[0],) if len(fresh) == 1 and len(examples) == len(function.examples) + 1 else None


def _dropped_examples(name: str, before: Version | None, version: Version) -> tuple[str, ...]:
    """Return the examples that one version has and the next does not."""
    old, new = _own(name, before), _own(name, version)
    problem = example_regression.problem(old, new, "warns", Place("history"))
    return (problem.message,) if problem else ()


def _own(name: str, version: Version | None) -> "Function | None":
    return (
        read_module(ModuleSource.of("history", version.source)).function(name) if version else None
    )
