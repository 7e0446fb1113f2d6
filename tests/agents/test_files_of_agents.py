"""agents/NAME.toml: what an agent sees, whom it may talk to, how it works; read live, and its problems reported."""

from pathlib import Path

import pytest

from agent_core.base.errors import KnapperError, TurnError
from agent_core.base.events import Warned
from agent_core.runtime.colleagues import AgentProfile
from agent_core.workspace.agent_files import AgentFiles
from tests.kit import Ask, Say, Seen, Step, Wanted
from tests.kit.desk import VOWELS, answers, ended, of

from .team import describe, said_last, team
from .test_messages_between_agents import calling


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        pytest.param("purpose = 1\n", 1, "`purpose` cannot be 1", id="a wrong type"),
        pytest.param('purpose = "x"\nfunction = ["a"]\n', 2, "Did you mean `functions`?", id="an unknown key"),
        pytest.param("\n\nlimits = { steps = -1 }\n", 3, "`steps` cannot be -1", id="a budget below zero"),
        pytest.param('functions = ["a", 2]\n', 1, "a list of texts", id="a number among texts"),
        pytest.param('purpose = "x\n', 1, "not valid TOML", id="no TOML"),
        pytest.param('talks_to = "main"\n', 1, "a list of texts", id="a text for a list"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(tmp_path: Path, text: str, line: int, part: str) -> None:
    describe(tmp_path, "editor", text)
    (problem,) = AgentFiles(tmp_path, "main").folder.problems
    assert part in str(problem)
    assert (problem.where.path, problem.where.line) == ("agents/editor.toml", line)


def test_a_bad_file_leaves_what_the_good_one_said_in_force(tmp_path: Path) -> None:
    files = AgentFiles(tmp_path, "main")
    describe(tmp_path, "editor", 'purpose = "Edits."\n')
    assert files.profile("editor").purpose == "Edits."
    describe(tmp_path, "editor", "purpose = = 1\n")
    assert files.profile("editor").purpose == "Edits."
    assert "stays in force" in files.folder.problems[0].message
    describe(tmp_path, "editor", 'purpose = "Edits again."\n')
    assert files.profile("editor").purpose == "Edits again."
    assert files.folder.problems == ()


def test_files_for_which_the_folder_had_no_room_are_read_when_there_is_some(tmp_path: Path) -> None:
    files, text = AgentFiles(tmp_path, "main"), f"talks_to = {['b'] * 900}\n"
    for number in range(40):
        describe(tmp_path, f"a{number}x", text)
    first = files.folder.read().keys()
    assert 0 < len(first) < 40
    assert len(files.folder.problems) == 40 - len(first)
    for name in sorted(first)[:20]:
        (tmp_path / "agents" / f"{name}.toml").unlink()
    assert len(files.folder.read()) == 20
    assert files.folder.problems == ()


@pytest.mark.parametrize(
    ("name", "part"),
    [
        pytest.param("user", "is reserved", id="the user"),
        pytest.param("System", "is reserved", id="the system"),
        pytest.param("knapper", "is reserved", id="the program"),
        pytest.param("Editor", "looks like `editor`", id="another case"),
        pytest.param("ed1tor", "looks like `editor`", id="a digit for a letter"),
        pytest.param("edi_tor", "looks like `editor`", id="a hidden stroke"),
        pytest.param("a b", "cannot be a name", id="a space"),
        pytest.param("edіtor", "cannot be a name", id="a Cyrillic letter"),
        pytest.param("once--1", "is reserved", id="a passing agent"),
    ],
)
def test_a_name_that_could_be_taken_for_another_is_refused(tmp_path: Path, name: str, part: str) -> None:
    files = AgentFiles(tmp_path, "main")
    describe(tmp_path, "editor")
    assert [*files.names()] == ["editor", "main"]
    describe(tmp_path, name)
    assert part in files.folder.problems[0].message
    assert [*files.names()] == ["editor", "main"]


def test_a_new_agent_gets_a_file_in_which_everything_is_allowed(tmp_path: Path) -> None:
    files = AgentFiles(tmp_path, "main")
    assert files.make("editor") == "agents/editor.toml"
    assert (files.profile("editor"), files.folder.problems) == (AgentProfile(), ())
    for name, part in (("ed1tor", "looks like `editor`"), ("user", "is reserved"), ("editor", "agents/editor.toml")):
        with pytest.raises(KnapperError, match=part):
            files.make(name)


def test_a_file_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.toml").write_text('purpose = "Spies."\n', "utf-8")
    describe(tmp_path, "editor")
    (tmp_path / "agents" / "spy.toml").symlink_to(tmp_path / "elsewhere.toml")
    files = AgentFiles(tmp_path, "main")
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
    (root / "functions" / "other.py").write_text(VOWELS.replace("count_vowels", "count_all"), "utf-8")
    describe(root, "editor", 'functions = ["text.*"]\n')


async def test_an_agent_is_shown_and_can_call_only_the_functions_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "text.py").write_text(VOWELS, "utf-8")
    (tmp_path / "functions" / "other.py").write_text(VOWELS.replace("count_vowels", "count_all"), "utf-8")
    describe(tmp_path, "editor", 'functions = ["text.*"]\n')
    async with team(tmp_path, {"editor": calling("count_all", text="x")}) as agents:
        events = await agents.say("Count.", to="editor")
        assert "count_all" not in agents.model.requests[0].functions
        assert "count_vowels" in agents.model.requests[0].functions
        assert answers(events)[0].startswith("There is no function `count_all`.")
        assert ended(events).reason == "replied"


async def test_what_an_agent_does_not_see_it_cannot_reach_by_another_way(tmp_path: Path) -> None:
    lay_out(tmp_path)
    about = {"function_name": "count_all"}
    wanted = [
        Wanted("list_functions", {}),
        Wanted("list_functions", {"pattern": "count the vowels of a text"}),
        *(Wanted(name, about) for name in ("introspect_function", "add_function", "delete_function")),
        *(Wanted(name, {**about, "arguments": {"text": "a"}}) for name in ("test_function", "trace_function")),
    ]
    script = lambda seen: Say("Ok.") if seen.messages[-1]["role"] == "tool" else Ask(*wanted)  # noqa: E731
    async with team(tmp_path, {"editor": script}) as agents:
        listed, found, *others = answers(await agents.say("Go on.", to="editor"))
    assert all("count_twice" in text and "count_all(" not in text for text in (listed, found))
    assert all("There is no function `count_all` in functions/." in answer for answer in others)


async def test_a_function_of_a_narrow_agent_calls_those_that_the_agent_does_not_see(tmp_path: Path) -> None:
    lay_out(tmp_path)
    async with team(tmp_path, {"editor": calling("count_twice", text="queue")}) as agents:
        assert answers(await agents.say("Count.", to="editor"))[0].startswith("8")


async def test_an_agent_talks_only_to_those_that_its_file_names(tmp_path: Path) -> None:
    describe(tmp_path, "editor", 'talks_to = ["cri*"]\n')
    script = calling("message_agent", agent="boss", message="Hello.")
    async with team(tmp_path, {"editor": script, "critic": script, "boss": script}) as agents:
        assert "You can reach: critic" in answers(await agents.say("Greet the boss.", to="editor"))[0]


async def test_who_may_talk_to_nobody_is_shown_nothing_of_others(tmp_path: Path) -> None:
    describe(tmp_path, "editor", "talks_to = []\n")

    async with team(tmp_path, {"critic": lambda _: Say("!"), "": lambda _: Say("Alone.")}) as agents:
        await agents.say("Hello.", to="editor")
        assert "ask_agent" not in agents.model.requests[0].functions


async def test_a_persona_and_a_model_of_the_file_are_used(tmp_path: Path) -> None:
    describe(tmp_path, "editor", 'persona = "I am strict about commas."\nmodel = "scripted"\n')
    async with team(tmp_path, {"editor": lambda _: Say("!"), "critic": lambda _: Say("!")}) as agents:
        await agents.say("Hello.", to="editor")
        assert "I am strict about commas." in agents.last("editor").text


async def test_a_model_that_is_saved_in_the_file_of_an_open_agent_answers_from_then_on(tmp_path: Path) -> None:
    describe(tmp_path, "editor")
    async with team(tmp_path, {"editor": lambda _: Say("!")}) as agents:
        editor = await agents.workspace.agent("editor")
        await editor.ask("Hello.")
        describe(tmp_path, "editor", 'model = "another"\n')
        with pytest.raises(TurnError, match=r"has no model `another`\. It has `scripted`"):
            await editor.ask("Hello.")
        describe(tmp_path, "editor", 'model = "scripted"\n')
        assert await editor.ask("Hello.") == "!"


async def test_its_own_name_before_a_reply_is_left_out_in_the_stream_too(tmp_path: Path) -> None:
    parts = {"editor": lambda _: Say("editor: The text is good."), "critic": lambda _: Say("!")}
    async with team(tmp_path, parts, model__stream=True) as agents:
        events = await agents.say("Well?", to="editor")
        assert ended(events).reply == "The text is good."
        assert "".join(event.text for event in events if event.type == "text") == "The text is good."  # type: ignore[union-attr]  # of its type


def asks_main(seen: Seen) -> Step:
    """Ask the agent that has no file."""
    return (
        Say("Ok.") if " answers:" in said_last(seen) else Ask(Wanted("ask_agent", {"agent": "main", "question": "?"}))
    )


async def test_the_usual_agent_is_reached_without_a_file(tmp_path: Path) -> None:
    async with team(tmp_path, {"editor": asks_main}) as agents:
        await agents.say("Ask main.", to="editor")
        await agents.work()
        assert agents.replies("editor") == ["Ok."]


async def test_what_is_wrong_with_a_file_is_told_once_in_the_next_turn(tmp_path: Path) -> None:
    describe(tmp_path, "critic", "purpose = 1\n")
    async with team(tmp_path, {"editor": lambda _: Say("Well.")}) as agents:
        first, second = [await agents.say("Hello.", to="editor") for _ in range(2)]
        assert ["agents/critic.toml:1" in event.message for event in of(Warned, first)] == [True]
        assert of(Warned, second) == []


async def test_what_an_agent_makes_outside_of_its_patterns_stays_in_its_sight(tmp_path: Path) -> None:
    describe(tmp_path, "editor", 'functions = ["nothing.*"]\n')
    create = {"function_name": "count_vowels", "function_code_with_docstring": VOWELS}

    def grow(seen: Seen) -> Step:
        calls = sum(message["role"] == "tool" for message in seen.messages)
        steps = [Wanted("create_function", create), Wanted("count_vowels", {"text": "queue"})]
        return Ask(steps[calls]) if calls < len(steps) else Say("Four.")

    async with team(tmp_path, {"editor": grow, "critic": lambda _: Say("!")}) as agents:
        assert answers(await agents.say("Count.", to="editor"))[1].startswith("4")
        async with await agents.workspace.agent("editor") as editor:
            await editor.begin_anew()
        await agents.say("Again.", to="editor")
        assert "count_vowels" in agents.last("editor").functions
