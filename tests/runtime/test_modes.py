"""Modes of a turn: a plan only reads, a task asks once for all that it is expected to need."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_core.access.grants import Answer, Decision, Grants, Question
from agent_core.access.grants.approval import Approver
from agent_core.base.errors import SettingsError
from agent_core.base.policy import Policy
from agent_core.base.settings import FILE_NAME, load
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import VOWELS, Desk, another, answers, outcomes
from tests.kit.sources import function_text

COUNT = 6
FILES = "data"


def reading(number: int) -> str:
    """Return a function that reads a file below a folder which its text names."""
    return function_text(
        f"size_{number}(name: str) -> int",
        f"Count the characters of a file of data, and add {number}.\n\nArgs:\n    name: The file's name.",
        f'with open(f"{FILES}/{{name}}") as file:\n    return len(file.read()) + {number}',
    )


TIDY = function_text(
    "tidy(text: str) -> str",
    "Take the spaces off the ends of a text.\n\nArgs:\n    text: The text.",
    "text = text.strip()\nreturn text",
    "tidy(' a ') → 'a'",
    "tidy('') → ''",
)
WRITES = function_text(
    "note(text: str) -> int",
    "Write a text into the notes.\n\nArgs:\n    text: The text.",
    'with open("data/notes.txt", "a") as file:\n    return file.write(text)',
)
KEEPS = function_text(
    "counted(self, by: int) -> int",
    "Add to a count that is kept.\n\nArgs:\n    by: How many to add.",
    'count = self.state.get("count", 0) + by\nself.state["count"] = count\nreturn count',
)
WRITES_HERE = [
    'open("data/new.txt", "w").write("x")',
    'open("data/a.txt", "a").write("x")',
    'import os\nos.remove("data/a.txt")',
    'import os\nos.rename("data/a.txt", "data/b.txt")',
    'import os\nos.mkdir("data/folder")',
    'import os\nos.rmdir("data")',
    'import os\nos.chmod("data/a.txt", 0o600)',
    'import os\nos.truncate("data/a.txt", 0)',
    'import os\nos.symlink("a.txt", "data/link.txt")',
    'import os\nos.utime("data/a.txt")',
    'import shutil\nshutil.rmtree("data")',
    'import shutil\nshutil.copy("data/a.txt", "data/c.txt")',
    'from pathlib import Path\nPath("data/p.txt").write_text("x")',
    'from pathlib import Path\nPath("data/a.txt").unlink()',
    'from pathlib import Path\nPath("knapper.toml").write_text("")',
    'open("functions/texts.py", "a").write("# x")',
    'import sqlite3\nsqlite3.connect("data/x.db").execute("create table a (b)")',
]
EDIT = [{"old_text": "Count the vowels", "new_text": "Count all vowels"}]
NAME = {"function_name": "count_vowels"}
CODE = "function_code_with_docstring"
WRITING = [
    *(Wanted("run_program", {"code": code}) for code in WRITES_HERE),
    Wanted("note", {"text": "x"}),
    Wanted("note", {"text": "y"}),
    Wanted("counted", {"by": 1}),
    Wanted("run_program", {"code": 'note("z")'}),
    Wanted("create_function", {"function_name": "more", CODE: another("more"), "reason": "new"}),
    Wanted("edit_function", {**NAME, "changes": EDIT}),
    Wanted("replace_function", {**NAME, CODE: VOWELS.replace("Count the", "Count all")}),
    Wanted("delete_function", NAME),
    Wanted("rollback_function", {**NAME, "version": "1"}),
    Wanted("add_example", {**NAME, "call": 'count_vowels("a")', "expected": "1"}),
    Wanted("confirm_function", NAME),
    Wanted("core_memory_append", {"name": "human", "content": "x"}),
    Wanted("core_memory_replace", {"name": "human", "old_content": "a", "new_content": "b"}),
    Wanted("archival_memory_insert", {"content": "x"}),
    Wanted("archival_memory_delete", {"id": "x"}),
    Wanted("add_function", NAME),
    Wanted("remove_function", NAME),
    Wanted("reload_functions", {}),
    Wanted("debugger", {**NAME, "line": 3}),
    Wanted("pause_heartbeats", {"minutes": 5}),
    Wanted("message_agent", {"agent": "other", "message": "x"}),
    Wanted("create_helper", {"helper_name": "h"}),
    Wanted("delete_helper", {"helper_name": "h"}),
    Wanted("message_llm", {"message": "x"}),
]


class Person:
    """Answers questions in order, the last answer also to all others, and keeps them."""

    def __init__(self, *answers: Answer) -> None:
        self.asked: list[Question] = []
        self._answers = list(answers)

    async def __call__(self, question: Question) -> Decision:
        self.asked.append(question)
        return Decision(self._answers.pop(0) if len(self._answers) > 1 else self._answers[0])


async def opened(at_desk: OpenDesk, steps: Sequence[Any], person: Approver, **files: str) -> Desk:
    desk = await at_desk([*steps, Repeat(Say("Done."))])
    (desk.workspace.root / FILES).mkdir()
    for name in "abc":
        (desk.workspace.root / FILES / f"{name}.txt").write_text("vowels")
    for module, text in files.items():
        desk.put(f"{module}.py", text)
    await desk.workspace.functions.reload()
    desk.workspace.functions.granting.approver = person
    return desk


def fingerprint(root: Path) -> dict[str, str]:
    """Return the bytes outside of `.knapper/`, as hashes, and the names of folders."""
    found = {}
    for path in sorted(root.rglob("*")):
        place = path.relative_to(root)
        if place.parts[0] != ".knapper":
            content = path.read_bytes() if path.is_file() else b""
            found[str(place)] = hashlib.sha256(content).hexdigest()
    return found


async def kept(desk: Desk) -> tuple[Any, ...]:
    """Return what is kept of functions and memory."""
    shop, blocks = desk.workspace.functions, desk.agent.memory.blocks
    versions = [len(await shop.history.versions(name)) for name in shop.names()]
    counts = await desk.agent.memory.counts()
    shown = [(block.label, str(block.value)) for block in blocks.memory.blocks]
    return (
        shop.names(),
        versions,
        shown,
        counts.passages,
        await shop.kept_states(),
        await shop.all_pending(),
    )


async def test_a_plan_writes_keeps_and_makes_nothing(at_desk: OpenDesk) -> None:
    assert len(WRITING) >= 40
    asks = [Ask(*WRITING[at : at + 12]) for at in range(0, len(WRITING), 12)]
    person = Person("yes")
    desk = await opened(at_desk, asks, person, texts=VOWELS, notes=WRITES, counts=KEEPS)
    held_for_good = Grants(write=("data/notes.txt",))
    await desk.workspace.functions.grants.grant("note", held_for_good)
    before, held = fingerprint(desk.workspace.root), await kept(desk)
    desk.agent.policy = Policy(mode="plan")
    events = await desk.say("Change everything.")
    assert fingerprint(desk.workspace.root) == before
    assert await kept(desk) == held
    assert all(not question.missing.write for question in person.asked)
    assert "returned" in outcomes(events)  # a state is there for the call, and ends with it


@pytest.mark.parametrize("code", ["secret = len('made in a plan')\n1", "secret = 14\n1 / 0"])
async def test_a_plan_keeps_no_names_of_its_programs(at_desk: OpenDesk, code: str) -> None:
    programs = [Wanted("run_program", {"code": text}) for text in ("own = 7", code, "own")]
    kept, in_plan, then = [Ask(program) for program in programs]
    use = Ask(Wanted("run_program", {"code": "secret"}))
    desk = await at_desk([kept, Say("1."), in_plan, then, Say("2."), use, then, Repeat(Say("3."))])
    await desk.say("Keep one.")
    before = await desk.workspace.store.history(desk.agent.line, kinds=("kept",))
    desk.agent.policy = Policy(mode="plan")
    assert answers(await desk.say("What would you do?"))[-1] == "7"
    assert await desk.workspace.store.history(desk.agent.line, kinds=("kept",)) == before
    desk.agent.policy = None
    later = await desk.say("Do it.")
    assert outcomes(later)[0] == "refused"
    assert answers(later)[1] == "7"


async def test_a_plan_reads_and_ends_with_what_it_would_have_to_reach(at_desk: OpenDesk) -> None:
    expecting = {"read": ["data/"], "network": ["api.example.org"], "why": "to sum them up"}
    reads = [Wanted("size_1", {"name": "a.txt"}), Wanted("expect_reach", expecting)]
    person = Person("yes")
    desk = await opened(at_desk, [Ask(*reads)], person, sizes=reading(1))
    before = fingerprint(desk.workspace.root)
    desk.agent.policy = Policy(mode="plan")
    assert outcomes(await desk.say("What would you do?")) == ["returned", "returned"]
    assert len(person.asked) == 1
    assert fingerprint(desk.workspace.root) == before  # a yes is for this call
    assert "This turn is a plan" in desk.model.requests[0].text
    desk.agent.take_up_proposal()
    await desk.say("Do it.")
    task = await desk.workspace.store.history(desk.agent.line)
    policies = [entry.payload["policy"]["mode"] for entry in task if "policy" in entry.payload]
    assert policies == ["plan", "task"]


async def test_forty_calls_of_six_functions_under_one_yes_are_one_dialog(at_desk: OpenDesk) -> None:
    names = [f"size_{number % COUNT}" for number in range(40)]
    calls = [Wanted(name, {"name": f"{'abc'[at % 3]}.txt"}) for at, name in enumerate(names)]
    steps = [Ask(Wanted("expect_reach", {"read": ["data/"]})), Ask(*calls[:20]), Ask(*calls[20:])]
    person = Person("yes")
    text = "\n\n".join(reading(number) for number in range(COUNT))
    desk = await opened(at_desk, steps, person, sizes=text)
    desk.agent.policy = Policy(mode="task")
    events = await desk.say("Add up all sizes.")
    assert outcomes(events) == ["returned"] * 41, answers(events)
    assert [question.moment for question in person.asked] == ["task"]
    assert person.asked[0].missing.read == ("data/",)


@pytest.mark.parametrize(
    "what",
    [
        "a larger reach",
        "a new version",
        "after its end",
        "unseen code",
        "a neighbor",
        "what a program calls",
    ],
)
async def test_what_exceeds_the_yes_is_asked(at_desk: OpenDesk, what: str) -> None:
    expecting = Ask(Wanted("expect_reach", {"read": ["data/"]}))
    first = Ask(Wanted("size_1", {"name": "a.txt"}))
    changes = [{"old_text": "+ 1", "new_text": "+ 100"}]
    edit = Wanted("edit_function", {"function_name": "size_1", "changes": changes})
    tidier = TIDY.replace("return text", "return text + ''")
    tidy = Wanted("replace_function", {"function_name": "tidy", CODE: tidier, "reason": "tidier"})
    program = Wanted("run_program", {"code": "print(size_3(name='a.txt'))"})
    made = Wanted("create_function", {"function_name": "size_2", CODE: reading(2), "reason": "2"})
    read = Wanted("introspect_function", {"function_name": "size_1"})
    others: dict[str, list[Ask | Say]] = {
        "a larger reach": [Ask(Wanted("note", {"text": "x"}))],
        "a new version": [Ask(read), Ask(edit), first],
        "after its end": [Say("Done."), first],
        "a neighbor": [Ask(tidy), Ask(Wanted("size_3", {"name": "a.txt"}))],
        "unseen code": [Ask(made), Ask(Wanted("size_2", {"name": "a.txt"}))],
        "what a program calls": [Ask(program), Ask(tidy), Ask(program)],
    }
    person = Person("once")
    uses = reading(3).replace("len(file.read())", "len(tidy(file.read()))")
    steps = [expecting, first, *others[what]]
    desk = await opened(
        at_desk, steps, person, sizes=reading(1), uses=f"{TIDY}\n\n{uses}", notes=WRITES
    )
    desk.agent.policy = Policy(mode="task")
    await desk.say("Go.")
    if what == "after its end":
        await desk.say("Again.")
    if what in ("a neighbor", "what a program calls"):
        # it needs no yes, and runs within a function that had one
        assert "+ ''" in desk.workspace.functions.source("tidy")
    moments = [question.moment for question in person.asked]
    assert moments[0] == "task"
    seen = moments.count("program")  # a program is asked about until it was seen, and then anew
    assert len(moments) == (3 if what == "what a program calls" else 2), moments
    assert seen == (2 if what == "what a program calls" else 0)  # the first call was within the yes


async def test_the_question_of_a_new_function_offers_the_list_too(at_desk: OpenDesk) -> None:
    expecting = Ask(Wanted("expect_reach", {"read": ["data/"]}))
    fixed = function_text(
        "size_2() -> int",
        "Count the characters of the first file.",
        'with open("data/a.txt") as file:\n    return len(file.read())',
    )
    made = Wanted("create_function", {"function_name": "size_2", CODE: fixed, "reason": "2"})
    calls = [Wanted("size_2"), Wanted("size_1", {"name": "a.txt"})]
    person = Person("yes")
    desk = await opened(at_desk, [expecting, Ask(made), Ask(*calls)], person, sizes=reading(1))
    desk.agent.policy = Policy(mode="task")
    events = await desk.say("Go.")
    assert outcomes(events) == ["returned"] * 4, answers(events)
    assert [question.moment for question in person.asked] == ["join"]
    assert "this turn may also: read data/" in person.asked[0].doubts[-1]


async def test_a_never_is_for_the_one_function_that_was_shown(at_desk: OpenDesk) -> None:
    calls = [Ask(Wanted(f"size_{number}", {"name": "a.txt"})) for number in (1, 2)]
    asked: list[str] = []

    async def never(question: Question) -> Decision:
        asked.append(question.function)
        return Decision("no", is_lasting=True)

    desk = await opened(at_desk, calls, never, sizes=f"{reading(1)}\n\n{reading(2)}")
    assert outcomes(await desk.say("Both.")) == ["refused", "refused"]
    book = desk.workspace.functions.granting.book
    assert asked == ["size_1"], "the same reach is not asked for again in this turn"
    assert (bool(await book.denied("size_1")), bool(await book.denied("size_2"))) == (True, False)


async def test_a_never_holds_against_the_yes_to_a_task(at_desk: OpenDesk) -> None:
    call = Ask(Wanted("size_1", {"name": "a.txt"}))
    expecting = Ask(Wanted("expect_reach", {"read": ["data/"]}))
    other = Ask(Wanted("size_2", {"name": "a.txt"}))
    steps = [call, Say("No."), expecting, other, call, Say("Done.")]
    never = Decision("no", is_lasting=True)
    asked: list[str] = []

    async def answer(question: Question) -> Decision:
        asked.append(question.moment)
        return never if question.function == "size_1" else Decision("yes")

    desk = await opened(at_desk, steps, answer, sizes=f"{reading(1)}\n\n{reading(2)}")
    assert outcomes(await desk.say("Go.")) == ["refused"]
    desk.agent.policy = Policy(mode="task")
    assert outcomes(await desk.say("Both.")) == ["returned", "returned", "refused"]
    assert asked == ["call", "task"]


async def test_a_no_to_the_list_leaves_each_reach_to_be_asked(at_desk: OpenDesk) -> None:
    steps = [
        Ask(Wanted("expect_reach", {"read": ["data/"]})),
        Ask(Wanted("size_1", {"name": "a.txt"})),
    ]
    person = Person("no", "once")
    desk = await opened(at_desk, steps, person, sizes=reading(1))
    desk.agent.policy = Policy(mode="task")
    events = await desk.say("Go.")
    assert outcomes(events) == ["returned", "returned"], answers(events)
    assert [question.moment for question in person.asked][:1] == ["task"]
    assert len(person.asked) == 2


def test_the_file_of_a_workspace_only_narrows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / FILE_NAME).write_text('[turn]\nmode = "task"\n')
    with pytest.raises(SettingsError, match="travels with the folder"):
        load(tmp_path)
    (tmp_path / FILE_NAME).write_text('[turn]\nmode = "plan"\n')
    assert load(tmp_path).policy.mode == "plan"
    monkeypatch.setenv("KNAPPER_TURN_MODE", "task")
    assert load(tmp_path).policy.mode == "task"


def test_an_unknown_value_of_a_policy_is_the_narrowest() -> None:
    assert Policy.from_json({"growth": "wild", "mode": "free"}) == Policy("off", True, "plan")
    whole = Policy("ask", False, "task", same_reach=True)
    assert Policy.from_json(whole.to_json()) == whole
    assert whole.narrowed(Policy()) == Policy("ask", False, "ask")
