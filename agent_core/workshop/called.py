"""Calls outside of a turn: for a human, for a test, traced line by line, or to see which lines the examples reach."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from sandbox import Evaluation, Outcome, Refused, Returned

from ..answers import bad_arguments, outcome_json, size_of
from ..aside import aside
from ..cage import Cage
from ..debugging import Watch, said
from ..errors import UsageError
from ..grants import Denied
from ..registry.arguments import read as read_arguments
from ..registry.examples import Example
from ..registry.function import Function
from ..registry.snapshot import Snapshot
from ..requests import OnProgress, Requests
from ..secrets import Curtain, Session
from ..storage import Write
from .calls import noted, recorded
from .granting import Granting


class Calls:
    """Makes them, each with a watch of the debugger over it."""

    def __init__(self, cage: Cage, granting: Granting) -> None:
        self._cage = cage
        self._granting = granting
        self._covered: dict[tuple[str, str, str], dict[str, Any]] = {}  # what is known of a text does not change
        self.debugging = cage.debugging

    async def made(
        self,
        function: Function,
        snapshot: Snapshot,
        arguments: str | Mapping[str, Any],
        on_progress: OnProgress | None = None,
        watch: Watch | None = None,
    ) -> tuple[Outcome, dict[str, Any], tuple[Write, ...]]:
        """One call: how it ended, the same as it is published with `lacks` and `debugged`, and what is kept of it.

        Raises:
            UsageError: the arguments do not fit.
        """
        given = _text(arguments)
        checked = await aside(len(given), read_arguments, given, function.parameters)
        if not isinstance(checked, dict):
            raise UsageError(bad_arguments(function.name, checked))
        permit = await self._granting.permit(function, snapshot)
        if isinstance(permit, Denied):
            refused = Refused(permit.text)
            return refused, outcome_json(refused), (recorded(function, snapshot, refused, 0.0),)
        watch, tell = watch or self.debugging.watch(), on_progress or (lambda done, total, note: None)
        requests = Requests(self._cage, snapshot, tell, self._granting, broker=self._cage.broker, watch=watch)
        try:
            outcome = await requests.run(function, checked, permit)
        finally:
            watch.close()
        size = max(size_of(outcome), len(given))
        found = await aside(size, outcome_json, outcome)
        kept = await aside(size, noted, watch, function, snapshot, outcome, seconds=found["seconds"], arguments=checked)
        lacks = "" if isinstance(outcome, Returned) and permit.grants else permit.note
        more = {"lacks": lacks, "debugged": watch.note(snapshot)}
        return outcome, found | {key: text for key, text in more.items() if text}, kept

    async def traced(
        self, function: Function, snapshot: Snapshot, arguments: str | Mapping[str, Any]
    ) -> dict[str, Any]:
        """The `trace` shape: the `outcome`, each line that ran with what it changed, and all of it as `text`.

        Raises:
            UsageError: the arguments do not fit.
        """
        watch = self.debugging.watch(trace="lines")
        _, found, _ = await self.made(function, snapshot, arguments, watch=watch)
        lines = [
            {
                "path": one.at.path,
                "line": one.at.line,
                "function": one.at.function,
                "count": one.count,
                "first": dict(one.first),
                "last": dict(one.last),
            }
            for one in watch.lines
        ]
        is_whole = found["outcome"] not in ("killed", "timed_out")
        text = said.trace(watch.lines, snapshot, is_cut=watch.is_cut, is_whole=is_whole)
        return {"name": function.name, "outcome": found, "lines": lines, "cut": watch.is_cut, "text": text}

    async def coverage(self, function: Function, snapshot: Snapshot) -> dict[str, Any]:
        """The lines of a function that its examples reach, of those that can run; kept for each text of its module."""
        key = function.module, function.name, function.version
        if key not in self._covered:
            runs = [self._reached(function, snapshot, one) for one in function.examples]
            reached: set[int] = set()
            can_run: set[int] = set()
            for ran, all_lines in await asyncio.gather(*runs):
                reached |= ran
                can_run |= all_lines
            missed = sorted(can_run - reached)
            self._covered = dict([*self._covered.items()][-200:])
            self._covered[key] = {"lines": len(can_run), "reached": len(can_run & reached), "missed": missed}
        return self._covered[key]

    async def _reached(self, function: Function, snapshot: Snapshot, example: Example) -> tuple[set[int], set[int]]:
        permit = await self._granting.having(function, snapshot)
        watch = self.debugging.watch(trace="cover", covers=(function.module, function.name))

        async def answer(name: str, arguments: dict[str, Any]) -> Any:  # Any: values that cross
            return await watch.answer(arguments, snapshot) if name == "debug" else None

        with watch.over(function.name, snapshot) as around:
            await self._cage.evaluate(
                snapshot.modules,
                function.module,
                Evaluation(example.setup, example.call),
                Curtain(Session(self._cage.secrets, function.name, permit.grants.secrets), answer),
                access=permit.access,
                around=around,
            )
        own = range(function.line, function.end_line + 1)
        ran = {one.at.line for one in watch.lines if one.at.path == function.path and one.at.line in own}
        return ran, {line for line in watch.can_run if line in own}


def _text(arguments: str | Mapping[str, Any]) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
