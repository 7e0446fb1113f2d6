"""What people, models and strangers do at a workspace: the rules of the state machine in `test_what_always_holds.py`.

Each rule does one thing through the public doors and notes what should be there now. What a rule or the model sees on
the way and no look at the workspace would show is collected in `broken`, by the number of its promise.
"""

import asyncio
import json
import re
import shutil
import tempfile
import warnings
from collections import Counter as Tally
from collections import defaultdict, deque
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import apsw
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
)

from agent_core.access.grants import Grants
from agent_core.access.grants.record import confirm
from agent_core.base import programs
from agent_core.base.errors import KnapperError
from agent_core.base.events import (
    CallAnswered,
    CallStarted,
    Event,
    MessageAdded,
    Progress,
    TurnEnded,
    TurnStarted,
    Warned,
)
from agent_core.functions.service import Author, PlannedChange
from agent_core.runtime.turn import MAX_CALLS
from agent_core.storage import BlockRow
from agent_core.views.call_log import ShownCall, laid_open
from agent_core.views.verdicts import printed_lines
from agent_core.workspace import scaffold
from agent_core.workspace.forgetting import ForgetRequest, Forgetting
from agent_core.workspace.workspace import Workspace
from knapper_ext.exchange.library import ImportRequest, import_library
from sandbox import Sandbox
from sandbox.wire.lines import lines_of
from tests.kit import Ask, Say, Seen, Step, Wanted, scripted
from tests.kit.crash import Worker
from tests.kit.levels import IS_PORTABLE, lend
from tests.memory.blocks.conftest import HUMAN
from tests.promises.doomed import act
from tests.promises.world import (
    KEY,
    SECRET,
    Counter,
    Process,
    Talk,
    Turn,
    Watch,
    comments_in,
    copy_folder,
    counters_in,
    files_of,
    leaks,
)

Value = TypeVar("Value")

NAMES: Final = st.sampled_from(["alpha", "beta", "gamma", "delta"])
PATHS: Final = st.sampled_from(["letters.py", "words.py"])
WHICH: Final = st.integers(0, 3)
PLACES: Final = st.sampled_from([0, 1])
"""One of the two processes: the first has the conversation `main`, the second `other`."""
AGENT: Final = Author("agent")
PERSON: Final = Author("human")
TELL: Final = '''\
def tell(self) -> list[str]:
    """Tell the key."""
    print("printed", self.secret("KEY"))
    self.progress(1, 2, "at " + self.secret("KEY"))
    self.state = {"kept": self.secret("KEY")}
    return [self.secret("KEY"), "é" + self.secret("KEY") * 2]
'''
FAIL: Final = '''\
def fail(self) -> None:
    """Fail with the key."""
    held = self.secret("KEY")
    raise ValueError(f"no {held}")
'''
TOTAL: Final = '''\
# A person counts here.
from pathlib import Path\r
# One line,\r# and another.

def total() -> int:
    """Add up the numbers in the folder data."""
    return sum(int(one.read_text()) for one in Path("data").iterdir()) + {number}
'''
STRIKE: Final = '''\
import builtins, os, sys
builtins.struck = os.getpid()
sys.modules["struck"] = sys

def strike(at: int = setattr(__import__("builtins"), "struck", 1) or 1) -> int:
    """Tell whether this is the host, which has a mark: numbers of processes repeat in a namespace."""
    return int(hasattr(builtins, "is_host"))
'''
MARK: Final = '''\
def mark(text: str) -> str:
    """Print a text, and give it back."""
    print(text)
    return text
'''
WAIT: Final = '''\
import time

def wait(self) -> None:
    """Wait until somebody ends it."""
    self.progress(0, 1, "waiting")
    time.sleep(60)
'''
MARKED: Final = "one\x0ctwo\u2028three\x85four"
"""One line, whatever `str.splitlines` takes it for."""
STRIKES: Final = 'setattr(__import__("builtins"), "struck", 1) or 7'
"""An expression with an effect, whose value is 7."""
STRIKERS: Final = {
    "default": ("text: str", f"text: str, more: int = {STRIKES}"),
    "expectation": ("\n    7\n", f"\n    {STRIKES}\n"),
    "example": ('"queueing")', f'"queueing" if {STRIKES} else "")'),
    "annotation": ("-> int:", f"-> [int, {STRIKES}][0]:"),
    "decorator": ("def ", f"@[lambda made: made, {STRIKES}][0]\ndef "),
    "constant": ("def ", f"SEVEN = {STRIKES}\n\n\ndef "),
}
"""Where a function may have such an expression: what is put in the place of what."""
HIDDEN: Final = ("\u202e", "\u2066", "\u200b", "\u2028", "\x0c", "\x85")
DISGUISES: Final = {
    base: f"type('Same', ({base},), {{'__eq__': lambda *_: True, '__hash__': {base}.__hash__,"
    " '__repr__': lambda made: str(int(made) - 1)})"
    for base in ("int", "str")
}
"""Classes of numbers that are equal to everything and look like the number below, by what they are in truth."""
AGAIN: Final = "The program was stopped in the middle of your turn"
INDEX: Final = re.compile(r"^Call these .*?\n(?=And of )", re.MULTILINE | re.DOTALL)
FIRST_WORD: Final = 10_001


def begins_again(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return whether a message is the one before with the notice that its turn was cut off and begins again."""
    text = str(now["content"])
    return AGAIN in text and text.startswith(str(before["content"]))


class Deeds(RuleBasedStateMachine):
    """Two processes at one workspace, each with a conversation, and what is done there."""

    loop: ClassVar[asyncio.AbstractEventLoop]
    sandbox: ClassVar[Sandbox]
    watch: ClassVar[Watch]

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="always-"))
        self.outside = Path(tempfile.mkdtemp(prefix="outside-"))
        self.broken: dict[int, list[str]] = defaultdict(list)
        self.talk = Talk()
        self.talk.on_request = self._look_at_request
        self.flags = {
            "model.base_url": self.talk.model.base_url,
            "model.name": "scripted",
            "model.stream": False,
            "model.context_tokens": 200_000,
            "memory.embedding": "none",
        }
        self.processes = [
            Process(self.root, self.flags, self.sandbox, name) for name in ("main", "other")
        ]
        self.words = iter(range(FIRST_WORD, 99_999))
        self.looks: Tally[str] = Tally()
        # What should be there.
        self.counters: dict[str, Counter] = {}
        self.ever: dict[str, set[Counter]] = defaultdict(set)
        self.comments: dict[str, list[str]] = {}
        self.rejected: dict[str, str] = {}  # the whole text of files that stand rejected, by path
        self.own_texts: dict[str, str] = {}  # files that only a person changes
        self.shown_index: dict[str, str] = {}  # as a conversation's first request has it
        self.said: dict[str, set[str]] = {"main": set(), "other": set()}
        self.forgotten: set[str] = set()
        self.lines: set[str] = set()  # of the shared block, each told as added
        self.agreed: set[str] = (
            set()
        )  # texts of `total` that a person has granted since a revocation
        self.has_entry = False
        self.run(self._begin())

    # How things are done here.

    def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        """Do something within a minute."""
        return self.loop.run_until_complete(asyncio.wait_for(work, 60))

    def functions(self, place: int) -> Any:  # Any: the service, whose verbs are many
        return self.processes[place].workspace.functions

    def number(self) -> int:
        return next(self.words)

    def alternate(self, what: str) -> int:
        """Return 0 or 1 in turns: an invariant that needs a worker looks at one side at a time."""
        self.looks[what] += 1
        return self.looks[what] % 2

    def is_admitted(self, work: Coroutine[Any, Any, Any]) -> bool:  # Any: a verdict
        """Carry out a change, and return whether it joined; a refusal may be an error or a verdict."""
        try:
            return bool(self.run(work).admitted)
        except KnapperError:
            return False

    def path(self, path: str) -> Path:
        return self.root / "functions" / path

    async def team(self) -> BlockRow:
        """Return the block that both conversations share."""
        rows = await self.processes[0].workspace.store.blocks("main")
        (team,) = [row for row in rows if row.label == "team"]
        return team

    async def block(self) -> list[str]:
        """Return its lines."""
        team = await self.team()
        return [*team.value] if not isinstance(team.value, str) else team.value.split("\n")

    async def _begin(self) -> None:
        self.watch.is_on = True
        (self.root / "data").mkdir()
        (self.root / "data" / "1").write_text("5")
        for process in self.processes:
            await process.open()
        for path, text in (
            ("tell.py", TELL),
            ("fail.py", FAIL),
            ("strike.py", STRIKE),
            ("mark.py", MARK),
            ("wait.py", WAIT),
        ):
            self._save_own(path, text)
        self._save_own("wait.py", WAIT)
        self._save_own("total.py", TOTAL.format(number=0))
        await self._reload()
        for name in ("tell", "fail"):
            await self.functions(0).grants.grant(name, Grants(secrets=("KEY",)))

    async def _reload(self) -> None:
        for process in self.processes:
            await process.workspace.functions.reload()

    def _save_own(self, path: str, text: str) -> None:
        self.path(path).write_bytes(text.encode())
        self.own_texts[path] = text

    def _put(self, counter: Counter) -> None:
        self.counters[counter.name] = counter
        self.ever[counter.name].add(counter)
        self.comments.setdefault(counter.path, [])

    def teardown(self) -> None:
        self.run(self._end())
        self.watch.is_on = False
        self.watch.faults.clear()
        for folder in (self.root, self.outside):
            shutil.rmtree(folder)

    async def _end(self) -> None:
        for process in self.processes:
            await process.close()
        self.talk.model.close()

    # Functions.

    @rule(name=NAMES, path=PATHS, place=PLACES)
    def create(self, name: str, path: str, place: int) -> None:
        counter = Counter(name, self.number(), 0, path)
        module = path.removesuffix(".py")
        work = self.functions(place).create(name, counter.source, module, author=AGENT)
        should = name not in self.counters and path not in self.rejected
        assert self.is_admitted(work) == should
        if should:
            self._put(counter)

    @rule(
        name=NAMES,
        place=PLACES,
        disguise=st.sampled_from(["", *DISGUISES]),
        by=st.sampled_from([AGENT, PERSON]),
    )
    def create_a_liar(self, name: str, place: int, disguise: str, by: Author) -> None:
        """Its examples say what it does not return; disguised, its value says so itself, in the worker."""
        counter = Counter(f"{name}_lies", self.number())
        said, does = f"return {counter.number} +", f"return {counter.number + 1} +"
        text = counter.source.replace(said, does)
        if disguise:
            lying = f"return ({DISGUISES[disguise]})(1 + "
            text = counter.source.replace("return ", lying).replace("-> int", f"-> {disguise}")
            text = f"{text.rstrip()})\n"
        verdict = self.run(self.functions(place).create(counter.name, text, "lies", author=by))
        if verdict.admitted:
            self.broken[2].append(f"admitted a function that does not do as its examples:\n{text}")
        assert not self.path("lies.py").exists()

    @rule(where=st.sampled_from([*STRIKERS]), place=PLACES, is_saved=st.booleans())
    def strike_from(self, where: str, place: int, is_saved: bool) -> None:
        """A function with an effect in some place is created or saved: whatever becomes of it, the host has none."""
        text = Counter("six", 0).source.replace(*STRIKERS[where], 1)
        assert STRIKES in text
        service = self.functions(place)
        if is_saved:
            self.path("six.py").write_text(text)
            self.run(service.reload())
            self.path("six.py").unlink()
        else:
            self.run(service.create("six", text, "six", author=AGENT))
            self.path("six.py").unlink(missing_ok=True)
        self.run(self._reload())

    @precondition(lambda self: self.counters)
    @rule(which=WHICH, place=PLACES)
    def replace(self, which: int, place: int) -> None:
        """A person gives a function another number."""
        before = self._one(which)
        counter = Counter(before.name, self.number(), 0, before.path)
        work = self.functions(place).replace(before.name, counter.source)
        self._changed(counter, self.is_admitted(work))

    @precondition(lambda self: self.counters)
    @rule(which=WHICH, place=PLACES)
    def reword(self, which: int, place: int) -> None:
        """The agent changes a sentence of a function."""
        before = self._one(which)
        counter = Counter(before.name, before.number, before.edition + 1, before.path)
        sentence = "(edition {})".format
        change = sentence(before.edition), sentence(counter.edition)
        work = self.functions(place).edit(before.name, *change, author=AGENT)
        self._changed(counter, self.is_admitted(work))
        if counter.path in self.rejected:  # what the agent wrote is kept
            assert self.run(self.functions(place).pending(before.name)) is not None

    def _one(self, which: int) -> Counter:
        return self.counters[sorted(self.counters)[which % len(self.counters)]]

    def _changed(self, counter: Counter, is_done: bool) -> None:
        assert is_done == (counter.path not in self.rejected)
        if is_done:
            self._put(counter)

    @precondition(lambda self: self.counters)
    @rule(which=WHICH, place=PLACES, by=st.sampled_from([AGENT, PERSON]))
    def delete(self, which: int, place: int, by: Author) -> None:
        before = self._one(which)
        is_done = True
        try:
            self.run(self.functions(place).delete(before.name, author=by))
        except KnapperError:
            is_done = False
        assert is_done == (before.path not in self.rejected)
        if is_done:
            self._drop(before.name)

    def _drop(self, name: str) -> None:
        del self.counters[name]

    @precondition(lambda self: self.counters)
    @rule(which=WHICH, place=PLACES, is_named=st.booleans())
    def rename_or_move(self, which: int, place: int, is_named: bool) -> None:
        """A person gives a function another name or file; in the other process, it is called and taken back."""
        before = self._one(which)
        texts = files_of(self.root / "functions")
        service = self.functions(place)
        other = self.functions(1 - place)
        to = f"{before.name}_{self.number()}"
        change = service.relocations.rename if is_named else service.relocations.move
        try:
            self.run(service.make(self.run(change(before.name, to, PERSON))))
        except KnapperError:
            assert before.path in self.rejected
            assert files_of(self.root / "functions") == texts
            return
        self.run(self._reload())
        name = to if is_named else before.name
        report = self.run(other.call(name, {"text": "fox"}))
        assert (report.outcome, report.value) == ("returned", before.value("fox"))
        assert (before.name in other.names()) != is_named
        assert self.is_admitted(other.rollback(before.name))
        assert files_of(self.root / "functions") == texts
        self.run(self._reload())
        self.replace(which, place)  # a rollback would take the step back once more

    @rule(name=NAMES, place=PLACES)
    def roll_back(self, name: str, place: int) -> None:
        try:
            is_done = self.run(self.functions(place).rollback(name)).admitted
        except KnapperError:
            is_done = False
        if is_done:
            found = {
                counter
                for path in {each.path for each in self.ever[name]} - self.rejected.keys()
                if self.path(path).exists()
                for counter in counters_in(path, self.path(path).read_text()).values()
                if counter.name == name
            }
            assert len(found) == 1
            assert found <= self.ever[name], "what was never there came back"
            assert found != {self.counters.get(name)}, "it is as it was"
            self._put(found.pop())

    @rule(
        path=PATHS,
        names=st.sets(NAMES, max_size=3),
        place=PLACES,
        ending=st.sampled_from(["\n", "\r\n"]),
    )
    def save(self, path: str, names: set[str], place: int, ending: str) -> None:
        """A person writes a file anew, with a comment of their own."""
        held = {name for name, counter in self.counters.items() if counter.path != path}
        counters = [Counter(name, self.number(), 0, path) for name in sorted(names - held)]
        text = self._text_of(counters).replace("\n", ending)
        self._save(path, text, counters)
        self.run(self.functions(place).reload())

    def _text_of(self, counters: list[Counter]) -> str:
        mark = f"# A person was here: {self.number()}"
        return "\n\n\n".join([mark, *(counter.source.rstrip() for counter in counters)]) + "\n"

    def _save(self, path: str, text: str, counters: list[Counter]) -> None:
        self.path(path).write_bytes(text.encode())
        for name in [name for name, counter in self.counters.items() if counter.path == path]:
            self._drop(name)
        self.rejected.pop(path, None)
        self.comments[path] = comments_in(text)
        for counter in counters:
            self._put(counter)

    @rule(path=PATHS, place=PLACES, hidden=st.sampled_from(["", *HIDDEN]))
    def save_a_broken_file(self, path: str, place: int, hidden: str) -> None:
        """It has an error, or a character that makes it read otherwise than it runs."""
        counter = Counter("alpha", self.number(), 0, path)
        text = self._text_of([counter])
        above = f"# one\r# two\r\n# three{hidden}\n"
        text = f"{above}{text}" + ("" if hidden else "def broken(:\n")
        self.path(path).write_bytes(text.encode())
        self.rejected[path] = text
        found = self.run(self.functions(place).reload()).rejected
        lines = [problem.where.line for problem in found if problem.where.path.endswith(path)]
        wrong_line = 3 if hidden else len(lines_of(text))
        if wrong_line not in lines:
            self.broken[14].append(f"line {wrong_line} is wrong, and named were {lines}: {found}")

    @rule(path=PATHS, place=PLACES)
    def remove_a_file(self, path: str, place: int) -> None:
        self.path(path).unlink(missing_ok=True)
        self._save_nothing(path)
        self.run(self.functions(place).reload())

    def _save_nothing(self, path: str) -> None:
        for name in [name for name, counter in self.counters.items() if counter.path == path]:
            self._drop(name)
        self.rejected.pop(path, None)
        self.comments.pop(path, None)

    @precondition(lambda self: self.counters)
    @rule(which=WHICH, place=PLACES)
    def save_a_name_twice(self, which: int, place: int) -> None:
        """A second file defines a function that is there: the first one stays."""
        before = self._one(which)
        self.path("twice.py").write_text(Counter(before.name, self.number()).source)
        found = self.run(self.functions(place).reload())
        assert [problem.code for problem in found.rejected if "twice" in problem.where.path] == [
            "name-clash"
        ]
        report = self.run(self.functions(place).call(before.name, {"text": "fox"}))
        assert report.value == before.value("fox")
        self.path("twice.py").unlink()
        self.run(self.functions(place).reload())

    @precondition(lambda self: self.counters)
    @rule(
        which=WHICH,
        deed=st.sampled_from(["replace", "reword", "delete"]),
        touch=st.sampled_from(["beside", "same", "late", "broken", "gone"]),
        place=PLACES,
    )
    def overtake(self, which: int, deed: str, touch: str, place: int) -> None:
        """A person saves the file between a plan of the agent and its carrying out, or late in the middle of that."""
        before = self._one(which)
        if before.path in self.rejected:
            return
        self.run(self.functions(place).reload())
        after = Counter(before.name, before.number, before.edition + 1, before.path)
        service = self.functions(place)
        plans = {
            "replace": lambda: service.plans.replace(before.name, after.source, "", AGENT),
            "reword": lambda: service.plans.edit(
                before.name, [(f"{before.edition})", f"{after.edition})")], "", AGENT
            ),
            "delete": lambda: service.plans.delete(before.name, AGENT),
        }
        plan: PlannedChange = self.run(plans[deed]())
        theirs = {name: each for name, each in self.counters.items() if each.path == before.path}
        is_alone = len(theirs) == 1 and not self.comments.get(before.path)  # its file goes with it
        if touch in ("same", "late"):
            theirs[before.name] = Counter(before.name, self.number(), 0, before.path)
        elif touch == "gone":
            del theirs[before.name]
        text = self._text_of([*theirs.values()])
        if touch == "late":
            self.watch.is_removed = deed == "delete" and is_alone
            self.watch.on_change = lambda: self._save(before.path, text, [*theirs.values()])
        elif touch == "broken":
            text += "def broken(:\n"
            self.path(before.path).write_text(text)
            self.rejected[before.path] = text
        else:
            self._save(before.path, text, [*theirs.values()])
        done = self.run(service.finish(plan, AGENT))
        assert self.watch.on_change is None
        is_done = done.outcome == "returned"
        if touch == "beside":
            if is_done and deed == "delete":
                self._drop(before.name)
            elif is_done:
                self._put(after)
        else:
            assert not is_done or (touch, deed) == ("gone", "delete"), (done.text, touch)

    @rule(names=st.lists(NAMES, min_size=2, max_size=2, unique=True))
    def create_two_at_once(self, names: list[str]) -> None:
        """Both processes write into one file at once."""
        if self.rejected or self.counters.keys() & set(names):
            return
        counters = [Counter(name, self.number()) for name in names]

        async def both() -> list[Any]:
            work = [
                self.functions(place).create(counter.name, counter.source, "letters", author=AGENT)
                for place, counter in enumerate(counters)
            ]
            return await asyncio.gather(*work)

        verdicts = self.run(both())
        assert [verdict.admitted for verdict in verdicts] == [True, True], verdicts
        for counter in counters:
            self._put(counter)

    @rule(place=PLACES)
    def import_a_library(self, place: int) -> None:
        number = self.number()
        if "imported" in self.counters or "library.py" in self.rejected:
            return
        folder = self.outside / str(number)
        folder.mkdir()
        counter = Counter("imported", number, 0, "library.py")
        (folder / "library.py").write_text(f"# Theirs\n\n\n{counter.source}")
        self.path("library.py").unlink(missing_ok=True)
        self._save_nothing("library.py")
        self.run(self.functions(place).reload())
        request = ImportRequest(folder / "library.py")
        work = import_library(self.functions(place), request, lambda _: None, lambda _: None)
        report = self.run(work)
        assert [each.outcome for each in report.functions] == ["joined"], report
        self.comments["library.py"] = comments_in(self.path("library.py").read_text())
        self._put(counter)

    # Conversations.

    @rule(
        place=PLACES,
        deeds=st.lists(
            st.sampled_from(
                ["remember", "call", "gone", "create", "delete", "tell", "fail", "total", "list"]
            ),
            min_size=1,
            max_size=5,
        ),
        name=NAMES,
    )
    def say(self, place: int, deeds: list[str], name: str) -> None:
        """A person says something, and the model makes calls, all in one reply."""
        word = f"word{self.number()}"
        calls = [self._wanted(deed, name, word, at) for at, deed in enumerate(deeds)]
        events = self.run(self._turn(place, word, Ask(*calls)))
        outcomes = {event.call_id: event for event in events if isinstance(event, CallAnswered)}
        if Tally(event.call_id for event in events if isinstance(event, CallAnswered)) != Tally(
            call.id for call in calls
        ):
            self.broken[5].append(f"of {calls} were answered: {[*outcomes]}")
        late = []
        for deed, call in zip(deeds, calls, strict=True):
            if deed == "call" and name not in self.counters:
                late.append(call)  # it waits for the others, which may make it
            else:
                self._hear(deed, name, call, outcomes[str(call.id)])
        for call in late:
            self._hear("call", name, call, outcomes[str(call.id)])

    def _wanted(self, deed: str, name: str, word: str, at: int) -> Wanted:
        counter = Counter(name, self.number())
        wanted = {
            "remember": Wanted(
                "core_memory_append", {"name": "team", "content": f"Fact {at} of {word}: {MARKED}"}
            ),
            "call": Wanted(name, {"text": "fox"}),
            "gone": Wanted(f"{name}_gone", {}),
            "create": Wanted(
                "create_function",
                {
                    "function_name": name,
                    "function_code_with_docstring": counter.source,
                    "module_name": "letters",
                },
            ),
            "delete": Wanted("delete_function", {"function_name": name}),
            "list": Wanted("list_functions", {}),
        }.get(deed, Wanted(deed, {}))
        return Wanted(wanted.name, wanted.arguments, f"{word}{deed}{at}")

    async def _turn(self, place: int, word: str, *steps: Step) -> list[Event]:
        """Say a word in a conversation, and look at the record whenever something is shown."""
        process = self.processes[place]
        self.talk.turns[word] = Turn(deque(steps), agent=process.name)
        self.said[process.name].add(word)
        events = []
        async for event in process.agent.turn(f"Please: {word}."):
            events.append(event)
            await self._look_at_event(event)
        (ended,) = [event for event in events if isinstance(event, TurnEnded)]
        assert (ended.reason, ended.reply) == ("replied", f"Done: {word}."), events
        return events

    async def _look_at_event(self, event: Event) -> None:
        """Read in the other process what this one shows."""
        if leaks(event):
            self.broken[10].append(f"an event has a secret: {event}")
        store = self.processes[1 if event.agent == "main" else 0].workspace.store
        entries = await store.load(event.turn)
        shown: tuple[object, ...] = ()
        match event:
            case TurnStarted():
                shown = ("notice" if event.event == "again" else "user", "text", event.message)
            case CallStarted():
                shown = ("call", "id", event.call_id)
            case CallAnswered():
                shown = ("result", "call_id", event.call_id)
            case MessageAdded() if event.turn:
                shown = ("user", "text", event.message)
            case TurnEnded() if event.reply:
                shown = ("assistant", "text", event.reply)
        stored = {
            (entry.kind, key, str(entry.payload.get(key)))
            for entry in entries
            for key in ("text", "call_id")
        }
        calls = [call for entry in entries for call in entry.payload.get("calls", ())]
        stored |= {("call", "id", call["id"]) for call in calls}
        if shown and shown not in stored:
            self.broken[4].append(f"shown and not on disk: {event}")

    def _hear(self, deed: str, name: str, call: Wanted, answer: CallAnswered) -> None:
        """Compare an answer with what should be."""
        counter = self.counters.get(name)
        is_done = answer.outcome == "returned"
        match deed:
            case "remember":
                assert is_done, answer
                assert isinstance(call.arguments, dict)
                self.lines.add(call.arguments["content"])
            case "call" if counter is not None:
                if not is_done or not answer.text.startswith(str(counter.value("fox"))):
                    self.broken[3].append(f"{counter} is there, and a call of it gave {answer}")
            case "call" | "gone":
                if is_done or f"`{call.name}`" not in answer.text:
                    self.broken[3].append(
                        f"{call.name} is not there, and a call of it gave {answer}"
                    )
            case "create":
                assert isinstance(call.arguments, dict)
                should = counter is None and "letters.py" not in self.rejected
                assert is_done == should, answer
                if should:
                    text = call.arguments["function_code_with_docstring"]
                    self._put(counters_in("letters.py", text)[name])
            case "delete":
                assert not is_done or counter is not None, answer
                if is_done:
                    self._drop(name)
            case "total":
                self._compare_total(answer.outcome, answer.text)
            case _:
                assert is_done == (deed != "fail"), answer

    def _look_at_request(self, turn: Turn, seen: Seen) -> None:
        """Check a request of the model when it arrives, in the model's own thread."""
        if SECRET in json.dumps(seen.body):
            self.broken[10].append("a request has a secret")
        first = turn.requests[0]
        if seen.messages[0] != first.messages[0]:
            self.broken[13].append("the system message changed within a turn")
        index = INDEX.search(str(first.messages[0]["content"]))
        if turn.agent and index:
            before_index = self.shown_index.setdefault(turn.agent, index[0])
            if index[0] != before_index:
                self.broken[3].append(f"the index changed from {before_index} to {index[0]}")
        if len(turn.requests) > 1:
            before = turn.requests[-2].messages
            now = seen.messages[: len(before)]
            if begins_again(before[-1], now[-1]):  # a message without an answer is told of it
                before = [*before[:-1], now[-1]]
            if now != before:
                pairs = zip(before, seen.messages, strict=False)
                differs = [pair for pair in pairs if pair[0] != pair[1]]
                self.broken[3].append(f"a request does not begin as the one before it: {differs}")
        answered = {
            message["tool_call_id"] for message in seen.messages if message["role"] == "tool"
        }
        looking = asyncio.run_coroutine_threadsafe(self._results(), self.loop)
        if missing := answered - looking.result(20).keys():
            self.broken[4].append(f"sent to the model and not on disk: {missing}")

    async def _results(self) -> dict[str, str]:
        """Return the outcome of each call that has one on disk."""
        store = self.processes[1].workspace.store
        return {
            str(entry.payload["call_id"]): str(entry.payload["outcome"])
            for agent in ("main", "other", "guest")
            for entry in await store.history(agent, kinds=("result",), with_removed=True)
        }

    @rule(place=PLACES, name=NAMES)
    def save_while_the_model_thinks(self, place: int, name: str) -> None:
        """What is called was shown at this step, and is gone or new when the call runs."""
        word = f"word{self.number()}"
        calls = [self._wanted("call", name, word, 0)]
        path = "words.py"
        is_here = self.counters.get(name)
        is_free = is_here is None or is_here.path == path
        counters = [Counter(name, self.number(), 0, path)] if is_free and is_here is None else []

        async def meanwhile() -> None:
            self._save(path, self._text_of(counters), counters)
            await self.functions(place).reload()

        def on_request(seen: Seen) -> None:
            if seen.messages[-1]["role"] == "user":
                asyncio.run_coroutine_threadsafe(meanwhile(), self.loop).result(20)

        async def turn() -> list[Event]:
            self.talk.turns[word] = Turn(deque([Ask(*calls)]), on_request=on_request)
            self.said[self.processes[place].name].add(word)
            message = f"Please: {word}."
            return [event async for event in self.processes[place].agent.turn(message)]

        before = dict(self.counters)
        events = self.run(turn())
        (call,) = [event for event in events if isinstance(event, CallAnswered)]
        shown = before.get(name)
        is_right = (
            call.outcome == "returned" and call.text.startswith(str(shown.value("fox")))
            if shown is not None
            else call.outcome != "returned" and f"`{name}`" in call.text
        )
        if not is_right:
            self.broken[3].append(f"{shown} was shown, {self.counters.get(name)} is there: {call}")

    @rule()
    def remember_at_once(self) -> None:
        """Both agents add to one block at once."""
        words = [f"word{self.number()}" for _ in self.processes]
        lines = [f"Fact of {word}" for word in words]
        steps = [
            Ask(Wanted("core_memory_append", {"name": "team", "content": line}, f"{line[-9:]}at"))
            for line in lines
        ]

        async def both() -> None:
            await asyncio.gather(
                *(
                    self._turn(at, word, step)
                    for at, (word, step) in enumerate(zip(words, steps, strict=True))
                )
            )

        self.run(both())
        self.lines.update(lines)

    @rule(
        place=PLACES,
        after=st.integers(0, 8),
        deed=st.sampled_from(["remember", "create", "call"]),
        name=NAMES,
    )
    def interrupt(self, place: int, after: int, deed: str, name: str) -> None:
        """What waits for a turn is cancelled after so many events."""
        word = f"word{self.number()}"
        process = self.processes[place]
        call = self._wanted(deed, name, word, 0)
        behind = self._wanted("remember", name, word, 1)
        self.talk.turns[word] = Turn(deque([Ask(call, behind)]))
        seen: list[Event] = []
        is_time = asyncio.Event()

        async def listen() -> None:
            async for event in process.agent.turn(f"Please: {word}."):
                seen.append(event)
                if len(seen) == after:
                    is_time.set()
            is_time.set()

        async def cancelled() -> bool:
            task = asyncio.create_task(listen())
            if after:
                await is_time.wait()
            if not task.cancel():
                return True  # it had ended
            await asyncio.wait([task], timeout=20)
            return task.cancelled()

        if not self.run(cancelled()):
            self.broken[8].append(f"a cancellation after {after} events did not pass: {seen}")
        self.run(self._settle(word, call, name))
        self.run(self._settle(word, behind, name))

    @rule(place=PLACES, is_whole=st.booleans())
    def interrupt_a_call(self, place: int, is_whole: bool) -> None:
        """What waits for a turn is cancelled while a function of the workspace runs; or every task of the turn is, as
        at the end of a program.
        """
        word = f"word{self.number()}"
        process = self.processes[place]
        turn = self.talk.turns[word] = Turn(deque([Ask(Wanted("wait", {}, f"{word}wait"))]))
        self.said[process.name].add(word)
        has_begun = asyncio.Event()

        async def listen() -> None:
            async for event in process.agent.turn(f"Please: {word}."):
                if isinstance(event, Progress):
                    has_begun.set()

        async def cancelled() -> list[str]:
            others = asyncio.all_tasks()
            listening = asyncio.create_task(listen())
            await asyncio.wait_for(has_begun.wait(), 20)
            tasks = asyncio.all_tasks() - others if is_whole else {listening}
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=20)
            return [str(task) for task in tasks if not task.cancelled()]

        if went_on := self.run(cancelled()):
            self.broken[8].append(f"a cancellation in a call did not pass: {went_on}")
        outcome = self.run(self._results()).get(f"{word}wait", "")
        if outcome not in (["", "unknown"] if is_whole else ["", "unknown", "interrupted"]):
            self.broken[8].append(f"a call that was cancelled is answered as {outcome}")
        if len(turn.requests) > 1:
            self.broken[8].append("a turn that was cancelled asked on")

    async def _settle(self, word: str, call: Wanted, name: str) -> None:
        """Take over what a turn has done that was cut off, and only what it may have done."""
        await self._reload()
        for agent in self.said:
            store = self.processes[0].workspace.store
            for entry in await store.history(agent, kinds=("user",), with_removed=True):
                if word in str(entry.payload["text"]):
                    self.said[agent].add(word)
        assert isinstance(call.arguments, dict)
        if call.name == "core_memory_append" and call.arguments["content"] in await self.block():
            self.lines.add(call.arguments["content"])
        if call.name == "create_function" and name not in self.counters:
            text = call.arguments["function_code_with_docstring"]
            counter = counters_in("letters.py", text)[name]
            if name in self.functions(0).names():
                self._put(counter)

    @precondition(lambda self: not self.rejected and "late" not in self.counters)
    @rule(place=PLACES, is_late=st.booleans())
    def take_a_turn_over(self, place: int, is_late: bool) -> None:
        """Another process claims a turn, before its call or while that runs, which takes long enough where it makes a
        function, and is gone: the first one writes no more of it, says so, and begins again.
        """
        deed = "create" if is_late else "remember"
        word = f"word{self.number()}"
        process = self.processes[place]
        store = self.processes[1 - place].workspace.store
        call = self._wanted(deed, "late", word, 0)
        taken: list[Any] = []

        async def take() -> None:
            taken.append(await store.next(process.name, "another"))

        def on_request(_: Seen) -> None:
            if not is_late and not taken:
                asyncio.run_coroutine_threadsafe(take(), self.loop).result(20)

        told: list[str] = []

        async def turn() -> None:
            self.talk.turns[word] = Turn(deque([Ask(call)]), on_request=on_request)
            self.said[process.name].add(word)
            async for event in process.agent.turn(f"Please: {word}."):
                await self._look_at_event(event)
                if isinstance(event, Warned):
                    told.append(event.message)
                if is_late and isinstance(event, CallStarted) and not taken:
                    await take()

        self.run(turn())
        if not any("took over" in text for text in told):
            self.broken[8].append(f"nobody says that a turn was taken over: {told}")
        later = self.run(store.load(taken[0].id))[taken[0].n :]
        written = [entry for entry in later if entry.kind in ("assistant", "call")]
        written += [entry for entry in later if entry.payload.get("outcome") == "returned"]
        if written:
            self.broken[8].append(f"a turn that was taken over wrote on: {written}")
        if any(AGAIN not in request.text for request in self.talk.turns[word].requests[1:]):
            self.broken[8].append("a turn that was taken over asked on")
        self.run(self._restart(place))
        if call.id not in self.run(self._results()) and "late" in self.functions(place).names():
            self.broken[8].append("a turn that was taken over left its function")
        self.run(self._settle(word, call, "late"))

    @rule(place=PLACES)
    def say_in_between(self, place: int) -> None:
        """A person says something while a turn runs, which takes it up."""
        words = [f"word{self.number()}" for _ in range(2)]
        process = self.processes[place]
        said = process.agent.say_during_turn

        def on_request(_: Seen) -> None:
            work = said(f"Please: {words[1]}.")
            asyncio.run_coroutine_threadsafe(work, self.loop).result(20)

        async def turn() -> None:
            call = Ask(Wanted("list_functions", {}, f"{words[0]}list"))
            self.talk.turns[words[0]] = Turn(deque([call]), on_request=on_request)
            self.talk.turns[words[1]] = Turn(deque())
            async for event in process.agent.turn(f"Please: {words[0]}."):
                await self._look_at_event(event)

        self.run(turn())
        self.said[process.name].update(words)

    @rule(place=PLACES)
    def ask_for_too_much(self, place: int) -> None:
        """A reply has more calls than are carried out: the others are answered, too."""
        word = f"word{self.number()}"
        calls = [Wanted("list_functions", {}, f"{word}at{at}") for at in range(MAX_CALLS + 1)]
        events = self.run(self._turn(place, word, Ask(*calls)))
        answered = Tally(event.call_id for event in events if isinstance(event, CallAnswered))
        if answered != Tally(call.id for call in calls):
            self.broken[5].append(f"of {len(calls)} calls were answered: {answered}")

    @rule(place=PLACES, how=st.sampled_from(["summarize", "pop"]))
    def leave_behind(self, place: int, how: str) -> None:
        """A person says something, and it leaves the context before anybody looks for it."""
        word = f"word{self.number()}"
        self.run(self._turn(place, word))
        self.run(getattr(self.processes[place].agent, how)())
        self.shown_index.pop(self.processes[place].name, None)

    @rule(place=PLACES, is_branch=st.booleans())
    def talk_aside(self, place: int, is_branch: bool) -> None:
        """A person says something in another conversation, which is deleted then: this one is as it was."""
        process = self.processes[place]
        word = f"word{self.number()}"

        async def aside() -> None:
            before = await process.agent.history()
            own = process.workspace.conversations(process.name)
            row = await (own.branch("main") if is_branch and before else own.begin())
            self.talk.turns[word] = Turn(deque())
            async with await process.workspace.agent(process.name, row.id) as agent:
                events = [event async for event in agent.turn(f"Please: {word}.")]
                texts = await agent.user_texts()
            assert isinstance(events[-1], TurnEnded)
            assert events[-1].reply == f"Done: {word}."
            assert texts == [
                *(await process.agent.user_texts() if is_branch else []),
                f"Please: {word}.",
            ]
            await own.delete(row.id)
            assert row.id not in {each.id for each in await own.list()}
            assert await process.agent.history() == before

        self.run(aside())

    @rule(place=PLACES, is_behind=st.booleans())
    def describe_a_block(self, place: int, is_behind: bool) -> None:
        """A person changes what a block is for and how long it may be, and leaves its value as it is."""
        blocks = self.processes[place].agent.memory.blocks
        version = self.run(self.team()).version
        number = self.number()
        words = f"What the team knows, {number}."
        work = blocks.set_up(
            "team", HUMAN, version - is_behind, description=words, limit=100_000 + number
        )
        plan = self.run(work)
        done = self.run(blocks.commit(plan))
        if (done.outcome == "refused") != is_behind:
            self.broken[12].append(f"written for the version before: {is_behind}, and it is {done}")

    @precondition(lambda self: self.said["main"] | self.said["other"])
    @rule(which=WHICH)
    def forget(self, which: int) -> None:
        known = sorted(self.said["main"] | self.said["other"])
        word = known[which % len(known)]

        async def forget() -> None:
            for process in self.processes:
                await process.agent.aclose()
            workspace = self.processes[0].workspace
            forgetting = Forgetting(self.root, self.root / ".knapper", workspace.store)
            await forgetting.carry_out(await forgetting.order(ForgetRequest(word), "main"))
            for process in self.processes:
                process.agent = await process.workspace.agent(process.name)

        self.run(forget())
        self.shown_index.clear()
        self.forgotten.add(word)
        for words in self.said.values():
            words.discard(word)
        self.lines = {line for line in self.lines if word not in line}

    @rule()
    def move_an_agent(self) -> None:
        """An agent's file becomes another agent, with all that was said; nothing of it runs."""

        async def moved() -> list[Any]:
            workspace = self.processes[0].workspace
            if "guest" in await workspace.store.agent_names():
                return []
            document = await workspace.export_agent("other")
            before = len(self.talk.model.requests)
            with warnings.catch_warnings():  # of functions that it called and that are gone
                warnings.simplefilter("ignore", UserWarning)
                importing = await workspace.import_agent(document, "guest")
            async with importing as guest:
                assert len(self.talk.model.requests) == before
                history = await self.processes[1].agent.history()
                mine = [getattr(each, "text", "") for each in history]
                return [mine, [getattr(each, "text", "") for each in await guest.history()]]

        if found := self.run(moved()):
            assert found[0] == found[1]

    # Processes.

    @rule(place=PLACES)
    def restart(self, place: int) -> None:
        self.run(self._restart(place))

    async def _restart(self, place: int) -> None:
        self.shown_index.clear()
        await self.processes[place].close()
        await self.processes[place].open()

    @rule(
        deed=st.sampled_from(["create", "replace", "delete", "save"]),
        name=NAMES,
        instant=st.integers(1, 60),
    )
    def kill_while_functions_change(self, deed: str, name: str, instant: int) -> None:
        """A process dies at an instant of a change: it is done or not, and done if it was told."""
        before = self.counters.get(name)
        if (before is None) != (deed in ("create", "save")) or self.rejected:
            return
        path = before.path if before else "letters.py"
        counter = Counter(name, self.number(), 0, path)
        text = self._text_of(
            [*(each for each in self.counters.values() if each.path == path), counter]
        )
        more = {
            "create": [name, counter.source],
            "replace": [name, counter.source],
            "delete": [name],
        }
        arguments = more.get(deed, [f"functions/{path}", text])
        told = self._doomed(deed, *arguments, instant=instant)
        is_told = any(report.endswith(" True") for report in told)
        is_saved = (
            deed == "save"
            and self.path(path).exists()
            and counter.source.rstrip() in self.path(path).read_text()
        )
        if is_saved:
            self.comments[path] = comments_in(text)
        is_done = {
            "create": lambda: name in self.functions(0).names(),
            "replace": lambda: f"return {counter.number} " in self.functions(0).source(name),
            "delete": lambda: name not in self.functions(0).names(),
            "save": lambda: is_saved,
        }[deed]()
        assert is_done or not is_told, f"told, and not there: {told}"
        if deed == "save" and self.path(path).exists() and not self.path(path).read_text():
            self.path(path).unlink()  # the person's own save was cut off
            self._save_nothing(path)
        elif is_done and deed == "delete":
            self._drop(name)
        elif is_done:
            self._put(counter)

    @rule(
        instant=st.integers(1, 60),
        deed=st.sampled_from(["remember", "create", "total"]),
        name=NAMES,
    )
    def kill_in_a_turn(self, instant: int, deed: str, name: str) -> None:
        """A process dies in a turn: what it has told is there, and nothing twice."""
        word = f"word{self.number()}"
        call = self._wanted(deed, name, word, 0)
        behind = self._wanted("remember", name, word, 1)
        self.talk.turns[word] = Turn(deque([Ask(call, behind)]))
        told = self._doomed("take_turn", f"Please: {word}.", instant=instant)
        if any(report.startswith("said") for report in told):
            self.said["main"].add(word)
        self.run(self._settle(word, call, name))
        self.run(self._settle(word, behind, name))
        assert isinstance(call.arguments, dict)
        if f"answered {call.id} returned" in told:
            if deed == "remember" and call.arguments["content"] not in self.lines:
                self.broken[4].append(f"told and not in the block: {call}")
            if deed == "create" and name not in self.counters:
                self.broken[4].append(f"told and not in the registry: {call}")
            if call.id not in self.run(self._results()):
                self.broken[4].append(f"told and not on disk: {call}")

    def _doomed(self, deed: str, *arguments: str, **more: Any) -> list[str]:
        """Let another process do something in the place of the first one, and die."""

        async def died() -> list[str]:
            self.shown_index.clear()
            await self.processes[0].close()
            order = {"root": str(self.root), "flags": self.flags, "agent": "main", **more}
            worker = Worker(act, json.dumps(order | {"deed": deed, "arguments": arguments}))
            told = await asyncio.to_thread(worker.reports)
            await self.processes[0].open()
            await self._reload()
            return told

        return self.run(died())

    @precondition(lambda _: not IS_PORTABLE)
    @rule()
    def call_without_a_sandbox(self) -> None:
        """A process runs on a machine that can confine nothing."""
        flags = self.flags | {"sandbox.level": "core"}  # without looking for another one
        lacks = ["landlock", "namespaces"]
        told = self._doomed("call", "strike", lacks=lacks, flags=flags)
        if not told[-1].startswith("refused None") or "landlock" not in " ".join(told).lower():
            self.broken[7].append(f"a call without a sandbox gave {told}")

    @rule()
    def start_a_program(self) -> None:
        """Something starts a program, by the one place for that: it sees no key."""

        async def printed() -> bytes:
            command = programs.isolated_python("-c", "import os; print(dict(os.environ))")
            process = await programs.start(
                command, env=programs.variables(), cwd=self.root, stdout=asyncio.subprocess.PIPE
            )
            return (await process.communicate())[0]

        environment = self.run(printed()).decode()
        if KEY in environment or SECRET in environment:
            self.broken[15].append(f"a program sees {environment}")

    @rule()
    def begin_a_workspace(self) -> None:
        """A person makes a second workspace: nothing is started."""
        scaffold.create(self.outside / str(self.number()))

    @rule(place=PLACES)
    def show_odd_lines(self, place: int) -> None:
        """A function prints characters at which some programs begin a new line: it is shown as the one that it is."""
        report = self.run(self.functions(place).call("mark", {"text": f"{MARKED}\nnext"}))
        assert report.value == f"{MARKED}\nnext"
        call = ShownCall(1, "mark", MARKED, MARKED, "returned", 0.0, {"output": report.output})
        rows = [str(row) for row in (*printed_lines(report.output), *laid_open(call))]
        if odd := [row for row in rows if ("one" in row) != ("four" in row)]:
            self.broken[14].append(f"a line was shown as several: {odd}")
        assert sum("four" in row for row in rows) == 4, rows

    # Grants, and what a stranger does to them.

    @rule(place=PLACES)
    def grant(self, place: int) -> None:
        self.run(self.functions(place).grants.grant("total", Grants(read=("data/",))))
        self.agreed.add(self.own_texts["total.py"])
        self.has_entry = True

    @rule(place=PLACES)
    def revoke(self, place: int) -> None:
        with suppress(KnapperError):  # there is none
            self.run(self.functions(place).grants.revoke("total", None))
        self.agreed.clear()
        self.has_entry = False

    @rule(instant=st.integers(1, 20), is_yes=st.booleans())
    def kill_while_grants_change(self, instant: int, is_yes: bool) -> None:
        arguments = ["grant", "total", "data/"] if is_yes else ["revoke", "total"]
        told = self._doomed(*arguments, instant=instant)
        is_told = any(report.endswith(" True") for report in told)
        value = self.run(self.functions(0).call("total", {})).outcome == "returned"
        text = self.own_texts["total.py"]
        had = self._is_granted()
        if is_told and value != is_yes:
            self.broken[9].append(f"{arguments} was told, and in force is {value}")
        elif value not in (had, is_yes):
            self.broken[9].append(f"{arguments} was cut off, and in force is {value}")
        # What is certain goes on from here.
        self.agreed = {text} if value else set()
        self.run(
            self.functions(0).grants.revoke("total", None)
        ) if not value and self._entry() else None
        self.has_entry = value

    def _entry(self) -> bool:
        file = self.path("grants.toml")
        return file.exists() and "[total]" in file.read_text()

    @rule(number=st.integers(0, 2), place=PLACES)
    def change_what_was_granted(self, number: int, place: int) -> None:
        """A person changes the code, perhaps back to what it was."""
        self._save_own("total.py", TOTAL.format(number=number))
        self.run(self.functions(place).reload())

    @rule()
    def strike_the_entry_out(self) -> None:
        """Somebody takes the entry out of the file, and puts it in again: that is no yes."""
        file = self.path("grants.toml")
        if not self._entry():
            return
        text = file.read_text()
        head, _, tail = text.partition("[total]")
        rest = tail.partition("\n[")[2]
        file.write_text(f"{head}[{rest}" if rest else head)
        for place in (0, 1):
            self._compare_total(
                self.run(self.functions(place).call("total", {})).outcome, "", False
            )
        file.write_text(text)
        self.agreed.clear()

    @rule()
    def propose_an_entry(self) -> None:
        """A clone comes with an entry that nobody here has approved."""
        if not self._entry():
            with self.path("grants.toml").open("a") as file:
                file.write(
                    '\n[total]\nread = ["data/"]\nby = "somebody"\nat = "2026-01-01T00:00:00Z"\n'
                )
            self.has_entry = True

    @precondition(lambda self: self.agreed)
    @rule(is_for_another=st.booleans())
    def bring_an_old_state_back(self, is_for_another: bool) -> None:
        """A revoked yes is put back as it was in the state file, or one is written for other code."""
        database = apsw.Connection(str(self.root / ".knapper" / "state.db"))
        database.set_busy_timeout(10_000)
        query = "select * from approval where function = 'total'"
        rows = [*database.execute(query)]
        names = [column[1] for column in database.execute("pragma table_info(approval)")]
        self.run(self.functions(0).grants.revoke("total", None))
        self.agreed.clear()
        marks = ", ".join("?" * len(names))
        for row in rows:
            values = dict(zip(names, row, strict=True))
            if is_for_another:
                values["digest"] = "0" * 64
            database.execute(
                f"insert or replace into approval values ({marks})", [*values.values()]
            )
        database.close()
        self.has_entry = False
        self.propose_an_entry()

    @precondition(lambda self: self._is_granted())
    @rule(is_same_user=st.booleans())
    def clone(self, is_same_user: bool) -> None:
        """The folder is copied with all its state: a yes counts for its own folder and user alone."""
        copied = self.outside / str(self.number())
        copy_folder(self.root, copied)

        async def called() -> str:
            opening = Workspace.open(copied, flags=self.flags, sandbox=self.sandbox, follows=False)
            try:
                async with opening as workspace:
                    return (await workspace.functions.call("total", {})).outcome
            except KnapperError as error:  # the state is not even opened
                return error.code

        with pytest.MonkeyPatch.context() as patch:
            if not is_same_user:
                patch.setenv("XDG_DATA_HOME", str(self.outside / "home"))
                lend(self.outside / "home")
            if self.run(called()) == "returned":
                self.broken[9].append("a yes counted in a copy")

    def _is_granted(self) -> bool:
        return self.has_entry and self.own_texts["total.py"] in self.agreed

    def _compare_total(self, outcome: str, text: str, should: bool | None = None) -> None:
        should = self._is_granted() if should is None else should
        if (outcome == "returned") != should:
            self.broken[9].append(f"granted: {should}, and the call {outcome}: {text}")

    @rule(is_confirmed=st.booleans())
    def ask_at_an_address_of_the_file(self, is_confirmed: bool) -> None:
        """The workspace's file names an address; the person has confirmed it, or another one."""

        async def asked(address: str) -> str:
            (self.root / "knapper.toml").write_text(
                f'[model]\nbase_url = "{address}"\nname = "scripted"\n'
            )
            async with Workspace.open(
                self.root, environment={}, sandbox=self.sandbox, follows=False
            ) as workspace:
                try:
                    async with workspace.passing_agent() as agent:
                        return await agent.ask("hello")
                except KnapperError as error:
                    return error.code

        with scripted([]) as elsewhere, scripted([Say("hi")] * is_confirmed) as model:
            if is_confirmed:
                confirm(self.root, model.base_url)
                assert self.run(asked(model.base_url)) == "hi"
            code = self.run(asked(elsewhere.base_url))
            if elsewhere.requests or elsewhere.connections:
                sent = elsewhere.requests, elsewhere.connections
                self.broken[16].append(f"nobody confirmed an address, and it got {sent}: {code}")
        (self.root / "knapper.toml").unlink()
