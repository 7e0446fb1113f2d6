"""One state machine over the promises of ARCHITECTURE.md, "What always holds": each step is followed by all of them.

People and models make, change, break and delete functions, talk, remember and forget, grant and revoke, in two
processes with a conversation each; some are killed: `deeds.py`. Here, each invariant is named after the promise that it
checks and quotes it. Most look at the workspace as it is; some tell what the deeds collected (`self.broken`). The suite
plays chapters in which each deed has its place; `make soak` plays any deeds in any order, too.
"""

import ast
import asyncio
import builtins
import json
import re
import shutil
import sys
import tempfile
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    invariant,
    run_state_machine_as_test,
)

from agent_core.storage.turn_store import SAID
from tests.kit.drawing import is_searching, sampled
from tests.kit.levels import lend, start
from tests.promises.deeds import AGENT, DISGUISES, HIDDEN, PERSON, STRIKERS, Deeds
from tests.promises.world import (
    KEY,
    SECRET,
    Counter,
    Watch,
    comments_in,
    counters_in,
    files_with,
    leaks,
)

Value = TypeVar("Value")

ARCHITECTURE: Final = Path(__file__).resolve().parents[2] / "ARCHITECTURE.md"


class World(Deeds):
    """What always holds, whatever is done."""

    def _holds(self, promise: int) -> None:
        assert not self.broken[promise], f"Promise {promise}: {self.broken[promise]}"

    @invariant()
    def no_line_of_functions_runs_in_the_host(self) -> None:
        """No line of `functions/` runs in the host: it is read with `ast`, and imported, tested and called in
        workers.
        """
        report = self.run(self.functions(self.alternate("strike")).call("strike", {}))
        assert (report.outcome, report.value) == ("returned", 0)
        assert not hasattr(builtins, "struck")
        assert "struck" not in sys.modules
        files = [str(getattr(module, "__file__", "")) for module in [*sys.modules.values()]]
        assert not [file for file in files if file.startswith(str(self.root))]

    @invariant()
    def a_verdict_is_computed_in_the_host(self) -> None:
        """A verdict is computed in the host, from data: a worker's reply is a claim."""
        self._holds(2)
        for process in self.processes:
            assert not [name for name in process.workspace.functions.names() if "lies" in name]

    @invariant()
    def one_snapshot_per_step_decides(self) -> None:
        """One registry snapshot per step decides what can be called, until a call of the host in that step changes it:
        the calls after it see the change. The index of functions is sent once per conversation and changes are appended
        at its end, which keeps a server's prompt cache valid. A call of a function that was shown and is gone is
        answered with the reason.
        """
        self._holds(3)

    @invariant()
    def an_entry_is_on_disk_before_anyone_sees_it(self) -> None:
        """An entry is on disk before anyone sees it. Effects inside the store are in the same transaction."""
        self._holds(4)
        store = self.processes[0].workspace.store
        added = [
            json.loads(call["arguments"])["content"]
            for agent in ("main", "other")
            for entry in self.run(store.history(agent, kinds=SAID, with_removed=True))
            for call in entry.payload.get("calls", ())
            if call["name"] == "core_memory_append"
            and call["id"] in self.run(self._returned(agent))
        ]
        assert not [
            line for line in added if line not in self.run(self.block()) and "[" not in line
        ]

    async def _returned(self, agent: str) -> set[str]:
        store = self.processes[0].workspace.store
        entries = await store.history(agent, kinds=("result",), with_removed=True)
        return {
            entry.payload["call_id"] for entry in entries if entry.payload["outcome"] == "returned"
        }

    @invariant()
    def every_call_gets_exactly_one_answer(self) -> None:
        """Every `tool_call_id` gets exactly one answer; no request with an unanswered call is sent."""
        self._holds(5)
        assert self.talk.model.refusals == []
        assert self.talk.model.errors == []
        report = self.run(self.processes[0].workspace.store.check_journal())
        assert (report.faults, report.missing if not self.forgotten else 0) == ((), 0)

    @invariant()
    def a_file_that_changed_is_not_overwritten(self) -> None:
        """A file that changed since the writer read it is not overwritten. A rejected save leaves the last good version
        active.
        """
        self.run(self._reload())
        for path in {*self.comments, *self.rejected, *self.own_texts}:
            text = self.path(path).read_bytes().decode() if self.path(path).exists() else ""
            if path in self.rejected:
                assert text == self.rejected[path]
            elif path in self.own_texts:
                assert text == self.own_texts[path]
            else:
                there = {name: each for name, each in self.counters.items() if each.path == path}
                assert counters_in(path, text) == there
                assert comments_in(text) == self.comments[path]
        fixed = [path.removesuffix(".py") for path in self.own_texts]
        for process in self.processes:
            service = process.workspace.functions
            assert service.names() == sorted([*self.counters, *fixed])
            rejected = {
                problem.where.path.removeprefix("functions/") for problem in service.rejected()
            }
            assert rejected == self.rejected.keys()
            assert self.run(process.workspace.store.open_writes()) == []
            for name, counter in self.counters.items():
                source = service.registry.snapshot().functions[name]
                assert source.module == counter.path.removesuffix(".py")
        if self.counters:
            name = sorted(self.counters)[self.number() % len(self.counters)]
            for process in self.processes:
                report = self.run(process.workspace.functions.call(name, {"text": "fox"}))
                assert (report.outcome, report.value) == (
                    "returned",
                    self.counters[name].value("fox"),
                )

    @invariant()
    def without_a_sandbox_every_call_is_refused(self) -> None:
        """Where the sandbox cannot be enforced, every call is answered with `Refused`, which names the missing
        layers.
        """
        self._holds(7)

    @invariant()
    def lost_leases_and_cancellation_pass(self) -> None:
        """`LostLease` and cancellation pass through everything."""
        self._holds(8)

    @invariant()
    def a_grant_is_in_force_only_where_all_agree(self) -> None:
        """A grant is in force only where the file's entry, this user's sealed approval and the content of the code
        agree at each call (or the user set `grants.unattended = file`).
        """
        report = self.run(self.functions(self.alternate("total")).call("total", {}))
        self._compare_total(report.outcome, str(report))
        self._holds(9)

    @invariant()
    def output_is_masked_first(self) -> None:
        """The output of a worker is shown, stored or sent only after its function's secrets are masked."""
        self._holds(10)
        name = ("tell", "fail")[self.alternate("secret")]
        assert not leaks(self.run(self.functions(0).call(name, {})))
        assert not files_with(SECRET, self.root / ".knapper")

    @invariant()
    def only_forget_removes_from_recall(self) -> None:
        """Only a user's `forget` removes anything from recall: a summary replaces messages in the context, never in the
        record.
        """
        for process in self.processes:
            store = process.workspace.store
            entries = self.run(store.history(process.name, kinds=SAID, with_removed=True))
            record = json.dumps([entry.payload for entry in entries])
            assert not [word for word in self.said[process.name] if word not in record]
            words = sorted(self.said[process.name])
            for word in {words[self.number() % len(words)], words[-1]} if words else ():
                found = str(self.run(process.agent.memory.recall.search(word)))
                assert f"Please: {word}." in found
        for word in self.forgotten:
            assert not files_with(word, self.root)

    @invariant()
    def a_block_changes_by_compare_and_set(self) -> None:
        """A block changes by compare-and-set, with an entry in its history, in one transaction."""
        self._holds(12)
        store = self.processes[0].workspace.store
        team = self.run(self.team())
        history = self.run(store.block_history(team.id))
        assert [change.version for change in history] == [*range(1, team.version + 1)]
        assert history[-1].value == team.value
        lines = [line for line in self.run(self.block()) if line.startswith("Fact")]
        assert Tally(lines) == Tally(self.lines)

    @invariant()
    def the_system_message_stays_the_same_within_a_turn(self) -> None:
        """The system message stays the same within a turn, unless the turn makes a summary or the mode of the model's
        calls changes.
        """
        self._holds(13)

    @invariant()
    def a_line_is_what_python_takes_for_a_line(self) -> None:
        """A line is what Python takes for a line (`sandbox/wire/lines.py`), wherever it is shown. A source contains no
        characters that make it read differently than it runs.
        """
        self._holds(14)
        for process in self.processes:
            service = process.workspace.functions
            for name in service.names():
                path, line = service.path_of(name)
                relative = path.relative_to(self.root / "functions").as_posix()
                assert not [mark for mark in HIDDEN if mark in service.source(name)]
                if relative not in self.rejected:
                    text = path.read_bytes().decode()
                    (node,) = [
                        node for node in ast.parse(text).body if getattr(node, "name", "") == name
                    ]
                    assert line == node.lineno
                    assert ast.dump(ast.parse(service.source(name)).body[0]) == ast.dump(node)

    @invariant()
    def one_place_starts_programs(self) -> None:
        """Outside the sandbox, only `base/programs.py` starts programs; in it, `sandbox/processes/launch.py` starts the
        zygote, and `knapper_ext/portable/` its children and the build of the component. None inherits a key.
        """
        self._holds(15)
        assert not self.watch.faults

    @invariant()
    def nothing_is_sent_to_an_address_that_nobody_confirmed(self) -> None:
        """Nothing is sent to an address that only the workspace's file names, or to a server on this machine that may
        be another user's, before this user confirmed it.
        """
        self._holds(16)


@pytest.fixture(scope="module")
def world() -> Iterator[type[World]]:
    """The machine with a sandbox for all its runs, and a home, a key and a secret of its own."""
    home = Path(tempfile.mkdtemp(prefix="home-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(home))
        patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
        patch.setenv("KNAPPER_SECRET_KEY", SECRET)
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setattr(builtins, "is_host", True, raising=False)
        lend(home)
        World.loop = asyncio.new_event_loop()
        World.watch = Watch()
        World.watch.is_on = True
        World.sandbox = World.loop.run_until_complete(start())
        yield World
        World.loop.run_until_complete(World.sandbox.aclose())
        World.loop.run_until_complete(World.loop.shutdown_default_executor())
        World.loop.close()
    shutil.rmtree(home)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_promises_hold_whatever_is_done(world: type[World]) -> None:
    searching = settings(
        max_examples=250 if is_searching() else 2,
        stateful_step_count=40 if is_searching() else 6,
        deadline=None,
        suppress_health_check=[*HealthCheck],
        report_multiple_bugs=False,
    )
    run_state_machine_as_test(world, settings=searching)


INVARIANTS: Final = [
    name for name, each in vars(World).items() if hasattr(each, "hypothesis_stateful_invariant")
]


@pytest.fixture
def one(world: type[World]) -> Iterator[World]:
    """One machine, for a trace."""
    made = world()
    yield made
    made.teardown()


def check(one: World) -> None:
    """Check all promises."""
    for name in INVARIANTS:
        getattr(one, name)()


Deed: TypeAlias = Callable[[World], object]


def saved(one: World) -> None:
    """Save a file with two functions."""
    one.save("letters.py", {"alpha", "beta"}, 0, "\n")


def overtaken(deed: str, touch: str) -> Deed:
    """Return a save that overtakes a change of the agent."""

    def act(one: World) -> None:
        saved(one)
        one.overtake(0, deed, touch, 1)

    return act


OVERTAKEN: Final = [
    overtaken(deed, touch)
    for deed in ("replace", "reword", "delete")
    for touch in ("beside", "same", "late", "broken", "gone")
]
CHAPTERS: Final[dict[str, list[Deed]]] = {
    "functions": [
        lambda one: one.create("alpha", "letters.py", 0),
        lambda one: one.create("beta", "letters.py", 1),
        lambda one: one.create("alpha", "words.py", 1),
        lambda one: one.create_a_liar("gamma", 0, "", AGENT),
        *(lambda one, base=base: one.create_a_liar("gamma", 0, base, PERSON) for base in DISGUISES),
        *(
            lambda one, where=where: one.strike_from(where, 0, where in ("default", "constant"))
            for where in STRIKERS
        ),
        lambda one: one.replace(0, 1),
        lambda one: one.reword(1, 0),
        lambda one: one.roll_back("alpha", 1),
        lambda one: one.rename_or_move(0, 0, True),
        lambda one: one.rename_or_move(1, 1, False),
        lambda one: one.save("words.py", {"gamma", "delta"}, 0, "\r\n"),
        lambda one: one.reword(2, 1),
        lambda one: one.save_a_name_twice(0, 0),
        lambda one: one.delete(3, 1, AGENT),
        lambda one: one.roll_back("gamma", 0),
        lambda one: one.import_a_library(0),
        lambda one: one.remove_a_file("letters.py", 0),
    ],
    "broken files": [
        saved,
        *(
            lambda one, hidden=hidden: one.save_a_broken_file("letters.py", 0, hidden)
            for hidden in sampled(("", *HIDDEN), 3)
        ),
        lambda one: one.reword(0, 0),
        lambda one: one.replace(0, 0),
        lambda one: one.create("gamma", "letters.py", 1),
        lambda one: one.delete(0, 0, AGENT),
        lambda one: one.rename_or_move(0, 0, True),
        lambda one: one.rename_or_move(0, 1, False),
        lambda one: one.restart(0),
        saved,
    ],
    "two hands": [
        *sampled(OVERTAKEN, 2),
        lambda one: one.remove_a_file("letters.py", 0),
        lambda one: one.create("alpha", "letters.py", 0),
        lambda one: one.overtake(0, "delete", "late", 0),
        lambda one: one.remove_a_file("letters.py", 0),
        lambda one: one.create_two_at_once(["alpha", "beta"]),
    ],
    "conversations": [
        lambda one: one.say(0, ["remember", "call", "gone", "create", "delete", "call"], "alpha"),
        lambda one: one.say(1, ["create", "call", "tell", "fail", "total", "list"], "alpha"),
        lambda one: one.save_while_the_model_thinks(0, "gamma"),
        lambda one: one.save_while_the_model_thinks(1, "gamma"),
        lambda one: one.remember_at_once(),
        lambda one: one.say_in_between(0),
        lambda one: one.ask_for_too_much(1),
        lambda one: one.describe_a_block(0, False),
        lambda one: one.describe_a_block(1, True),
        lambda one: one.leave_behind(0, "pop"),
        lambda one: one.say(0, ["remember"], "alpha"),
        lambda one: one.talk_aside(0, False),
        lambda one: one.leave_behind(0, "summarize"),
        lambda one: one.talk_aside(0, True),
        lambda one: one.leave_behind(1, "pop"),
        lambda one: one.forget(0),
        lambda one: one.move_an_agent(),
        lambda one: one.restart(1),
    ],
    "cut off": [
        *(
            lambda one, after=after: one.interrupt(0, after, "remember", "alpha")
            for after in sampled(range(9), 9, 4)
        ),
        lambda one: one.interrupt(1, 4, "create", "delta"),
        lambda one: one.interrupt_a_call(0, False),
        lambda one: one.interrupt_a_call(1, True),
        lambda one: one.take_a_turn_over(0, False),
        lambda one: one.take_a_turn_over(1, True),
        lambda one: one.create("alpha", "letters.py", 0),
        *(
            lambda one, deed=deed, instant=instant: one.kill_while_functions_change(
                deed, "alpha", instant
            )
            for deed, instant in sampled([("replace", 8), ("replace", 99), ("delete", 99)], 3)
        ),
        *(
            lambda one, instant=instant: one.kill_in_a_turn(instant, "remember", "beta")
            for instant in sampled(range(6, 20), 14, 6)
        ),
        lambda one: one.call_without_a_sandbox(),
    ],
    "grants": [
        lambda one: one.propose_an_entry(),
        lambda one: one.grant(0),
        lambda one: one.change_what_was_granted(1, 0),
        lambda one: one.change_what_was_granted(0, 1),
        lambda one: one.strike_the_entry_out(),
        lambda one: one.grant(1),
        lambda one: one.clone(True),
        lambda one: one.clone(False),
        lambda one: one.bring_an_old_state_back(False),
        lambda one: one.grant(0),
        lambda one: one.bring_an_old_state_back(True),
        lambda one: one.grant(0),
        lambda one: one.revoke(1),
        lambda one: one.kill_while_grants_change(5, True),
        lambda one: one.show_odd_lines(0),
        lambda one: one.start_a_program(),
        lambda one: one.begin_a_workspace(),
        lambda one: one.ask_at_an_address_of_the_file(False),
        lambda one: one.ask_at_an_address_of_the_file(True),
    ],
}
"""Each rule at least once, in an order that brings about what it is for."""


@pytest.mark.sampled
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_promises_hold_in_each_chapter(one: World, chapter: str) -> None:
    for deed in CHAPTERS[chapter]:
        deed(one)
        check(one)


def test_a_deletion_that_another_process_saw_first_is_seen_by_reloading(one: World) -> None:
    """Found by the machine: the other process kept the function until it was restarted."""
    one.save("letters.py", {"alpha"}, 0, "\n")
    one.remove_a_file("letters.py", 0)
    check(one)


def test_a_file_with_hidden_characters_is_a_save_that_stands_rejected(one: World) -> None:
    """Found by the machine: a change of such a file was judged twenty times, and what an agent wrote was lost."""
    saved(one)
    one.save_a_broken_file("letters.py", 0, "\u200b")
    before = one.functions(0).plans.replace("alpha", Counter("alpha", 1).source, "", AGENT)
    assert "not in use" in one.run(before).text
    one.reword(0, 0)
    assert one.run(one.functions(0).pending("alpha")) is not None


def test_each_invariant_quotes_its_promise() -> None:
    section = ARCHITECTURE.read_text().partition("## What always holds")[2].partition("\n## ")[0]
    promises = [" ".join(each.split()) for each in re.split(r"\n\d+\. ", section)[1:]]
    quoted = [
        " ".join(str(each.__doc__).split())
        for each in vars(World).values()
        if hasattr(each, "hypothesis_stateful_invariant")
    ]
    assert quoted == promises


def test_each_deed_has_its_place_in_a_chapter() -> None:
    deeds = {
        name for name, each in vars(Deeds).items() if hasattr(each, "hypothesis_stateful_rule")
    }
    played = {*re.findall(r"\bone\.(\w+)\(", Path(__file__).read_text())}
    assert deeds
    assert deeds - played == set()
