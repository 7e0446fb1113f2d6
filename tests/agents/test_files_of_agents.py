"""agents/NAME.toml: what an agent sees, whom it may talk to, how it works; read live, and its problems reported."""

from pathlib import Path

import pytest

from agent_core.base.errors import KnapperError, TurnError
from agent_core.base.events import CallAnswered, Warned
from agent_core.runtime.source import AgentProfile
from agent_core.workspace.agent_files import AgentFiles
from tests.kit import Ask, Say, Seen, Step, Wanted
from tests.kit.desk import VOWELS, answers, ended, of
from tests.kit.pace import time_of

from .team import describe, team
from .test_messages_between_agents import calling

MISTAKES = (
    ("purpose = 1\n", 1, "`purpose` cannot be 1"),
    ('purpose = "x"\nfunction = ["a"]\n', 2, "Did you mean `functions`?"),
    ("\n\nlimits = { steps = -1 }\n", 3, "`steps` cannot be -1"),
    ('purpose = "x\n', 1, "not valid TOML"),
    ('talks_to = "main"\n', 1, "a list of texts"),
)


def test_what_is_wrong_with_a_file_is_told_with_its_line_and_what_the_good_one_said_stays(
    tmp_path: Path,
) -> None:
    files = AgentFiles(tmp_path, "main")
    for number, (text, line, part) in enumerate(MISTAKES):
        describe(tmp_path, "editor", f'purpose = "Edits {number}."\n')
        assert (files.profile("editor").purpose, files.folder.problems) == (f"Edits {number}.", ())
        describe(tmp_path, "editor", text)
        assert files.profile("editor").purpose == f"Edits {number}."
        (problem,) = files.folder.problems
        assert [said in str(problem) for said in (part, "stays in force")] == [True, True], text
        assert (problem.where.path, problem.where.line) == ("agents/editor.toml", line)


def test_a_name_that_could_be_taken_for_another_and_a_link_are_refused(tmp_path: Path) -> None:
    files = AgentFiles(tmp_path, "main")
    assert files.make("editor") == "agents/editor.toml"
    assert (files.profile("editor"), files.folder.problems) == (AgentProfile(), ()), (
        "everything is allowed"
    )
    with pytest.raises(KnapperError, match=r"agents/editor.toml"):
        files.make("editor")
    for name, part in {
        "user": "is reserved",
        "knapper": "is reserved",
        "once--1": "is reserved",
        "Editor": "looks like `editor`",
        "ed1tor": "looks like `editor`",
        "a b": "cannot be a name",
        "edіtor": "cannot be a name",
    }.items():
        with pytest.raises(KnapperError, match=part):
            files.make(name)
        path = describe(tmp_path, name)
        assert part in files.folder.problems[0].message, name
        assert [*files.names()] == ["editor", "main"]
        path.unlink()
    (tmp_path / "agents" / "spy.toml").symlink_to(describe(tmp_path, "editor"))
    assert "spy" not in files.names()
    assert "cannot be read" in files.folder.problems[0].message


TWICE = '''\
def count_twice(self, text: str) -> int:
    """Count the vowels of a text, and double the number.

    Args:
        text: The text.
    """
    return 2 * self.call("count_all", text=text)
'''


def lay_out(root: Path) -> None:
    """Write two modules, and an agent that sees the functions of one of them."""
    (root / "functions").mkdir()
    (root / "functions" / "text.py").write_text(TWICE, "utf-8")
    (root / "functions" / "other.py").write_text(
        VOWELS.replace("count_vowels", "count_all"), "utf-8"
    )
    describe(root, "editor", 'functions = ["text.*"]\n')


async def test_an_agent_is_shown_and_reaches_only_the_functions_of_its_file(tmp_path: Path) -> None:
    lay_out(tmp_path)
    about = {"function_name": "count_all"}
    wanted = [
        Wanted("list_functions", {}),
        Wanted("list_functions", {"pattern": "count the vowels of a text"}),
        Wanted("count_twice", {"text": "queue"}),  # it calls what the agent does not see
        Wanted("count_all", {"text": "x"}),
        *(
            Wanted(name, about)
            for name in ("introspect_function", "add_function", "delete_function")
        ),
        *(
            Wanted(name, {**about, "arguments": {"text": "a"}})
            for name in ("test_function", "trace_function")
        ),
    ]
    script = lambda seen: Say("Ok.") if seen.messages[-1]["role"] == "tool" else Ask(*wanted)  # noqa: E731
    async with team(tmp_path, {"editor": script}) as agents:
        events = await agents.say("Go on.", to="editor")
        assert [
            name in agents.model.requests[0].functions for name in ("count_twice", "count_all")
        ] == [True, False]
    listed, found, twice, *others = agents.model.requests[-1].answers  # in the order of the calls
    assert ended(events).reason == "replied"
    assert all("count_twice" in text and "count_all(" not in text for text in (listed, found))
    assert twice.startswith("8")
    assert all("There is no function `count_all`" in answer for answer in others), others


async def test_an_agent_talks_only_to_those_that_its_file_names(tmp_path: Path) -> None:
    describe(tmp_path, "editor", 'talks_to = ["cri*"]\n')
    script = calling("message_agent", agent="boss", message="Hello.")
    async with team(tmp_path, {"editor": script, "critic": script, "boss": script}) as agents:
        assert (
            "You can reach: critic" in answers(await agents.say("Greet the boss.", to="editor"))[0]
        )


async def test_who_may_talk_to_nobody_is_shown_nothing_of_others_and_has_its_persona(
    tmp_path: Path,
) -> None:
    describe(
        tmp_path,
        "editor",
        'talks_to = []\npersona = "I am strict about commas."\nmodel = "scripted"\n',
    )
    async with team(
        tmp_path, {"critic": lambda _: Say("!"), "": lambda _: Say("Alone.")}
    ) as agents:
        await agents.say("Hello.", to="editor")
        assert "ask_agent" not in agents.model.requests[0].functions
        assert "I am strict about commas." in agents.model.requests[0].text


async def test_a_model_that_is_saved_in_the_file_of_an_open_agent_answers_from_then_on(
    tmp_path: Path,
) -> None:
    describe(tmp_path, "editor")
    async with team(tmp_path, {"editor": lambda _: Say("!")}) as agents:
        editor = await agents.workspace.agent("editor")
        await editor.ask("Hello.")
        describe(tmp_path, "editor", 'model = "another"\n')
        with pytest.raises(TurnError, match=r"has no model `another`\. It has `scripted`"):
            await editor.ask("Hello.")
        describe(tmp_path, "editor", 'model = "scripted"\n')
        assert await editor.ask("Hello.") == "!"


async def test_what_is_wrong_with_a_file_is_told_once_in_the_next_turn(tmp_path: Path) -> None:
    describe(tmp_path, "critic", "purpose = 1\n")
    async with team(tmp_path, {"editor": lambda _: Say("Well.")}) as agents:
        first, second = [await agents.say("Hello.", to="editor") for _ in range(2)]
        assert ["agents/critic.toml:1" in event.message for event in of(Warned, first)] == [True]
        assert of(Warned, second) == []


async def test_what_a_file_says_of_functions_counts_in_the_next_turn(tmp_path: Path) -> None:
    lay_out(tmp_path)
    count = Ask(Wanted("count_all", {"text": "queue"}))
    script = lambda seen: Say("Ok.") if seen.messages[-1]["role"] == "tool" else count  # noqa: E731
    async with (
        team(tmp_path, {"editor": script}) as agents,
        await agents.workspace.agent("editor") as editor,
    ):
        outcomes = list[str]()
        for patterns in ('["text.*", "other.*"]', '["text.*"]', '["other.*"]'):
            describe(tmp_path, "editor", f"functions = {patterns}\n")
            heard = [event async for event in editor.turn("Count.")]
            outcomes += [event.outcome for event in of(CallAnswered, heard)]
    assert outcomes == ["returned", "refused", "returned"]


async def test_what_an_agent_makes_outside_of_its_patterns_stays_in_its_sight(
    tmp_path: Path,
) -> None:
    describe(tmp_path, "editor", 'functions = ["nothing.*"]\n')
    create = {"function_name": "count_vowels", "function_code_with_docstring": VOWELS}

    def grow(seen: Seen) -> Step:
        calls = sum(message["role"] == "tool" for message in seen.messages)
        steps = [Wanted("create_function", create), Wanted("count_vowels", {"text": "queue"})]
        return Ask(steps[calls]) if calls < len(steps) else Say("Four.")

    async with team(tmp_path, {"editor": grow, "critic": lambda _: Say("!")}) as agents:
        assert answers(await agents.say("Count.", to="editor"))[1].startswith("4")
        async with await agents.workspace.agent("editor") as editor:
            while await editor.pop():
                pass
        await agents.say("Again.", to="editor")
        assert "count_vowels" in agents.last("editor").functions


def test_a_file_is_read_in_the_same_time_among_many(tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        folder = tmp_path / str(count)
        (folder / "agents").mkdir(parents=True)
        for number in range(count):
            (folder / "agents" / f"agent_{number}.toml").write_text('purpose = "Edits."\n', "utf-8")
        files = AgentFiles(folder, "main")
        return time_of(lambda: files.profile("agent_1"))

    few, many = seconds(200), seconds(1_600)
    assert many / few <= 20, (few, many)  # the square would be 64
