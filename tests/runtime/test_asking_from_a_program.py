"""`agent.ask` and `agent_core.ask`: a reply as text, or an error that says why there is none."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import agent_core
from agent_core import ChatMemory, TurnError, Workspace
from agent_core.base.errors import UsageError, WorkspaceError
from agent_core.workspace.portable import AgentExists, AgentFileError
from tests.kit import Ask, Fail, Say, Script, Wanted, scripted
from tests.kit.program import knapper, python

RETRY = "Ask again; at the prompt: /retry."
CUT = Say("", finish="length")


async def test_what_to_do_is_apart_from_what_happened(tmp_path: Path) -> None:
    failing: list[tuple[Script, str]] = [
        ([Fail(500, headers={"x-should-retry": "false"})], "The trouble is at the endpoint"),
        ([Fail(401)], "OPENAI_API_KEY"),
        ([Fail(404, "Resource not found")], "endpoint's base URL"),
        ([Say(""), Say("")], RETRY),
        ([CUT, CUT, CUT], "Ask for less at once"),
        ([Ask(Wanted("list_functions"))] * 3, "“go on” takes it up again"),
    ]
    script = [step for steps, _ in failing for step in steps]
    with scripted(script * 2) as model:
        flags = {"turn.max_steps": 3}
        async with Workspace.open(
            tmp_path, environment=model.environment, flags=flags
        ) as workspace:
            named = "The agent `main`"
            for who, opened in (
                (named, workspace.agent()),
                ("The agent", agent_core.connect(workspace)),
            ):
                async with await opened as asked:
                    for steps, fix in failing:
                        with pytest.raises(TurnError) as failed:
                            await asked.ask("Hello?")
                        assert fix in failed.value.fix, steps
                        assert failed.value.message.startswith(f"{who} did not reply: "), steps
                        assert "401" in failed.value.message or steps != [Fail(401)]
                        assert failed.value.fix not in failed.value.message
                        assert str(failed.value) == f"{failed.value.message} {failed.value.fix}"


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param(
            {"KNAPPER_MODEL_BASE_URL": "{url}/nothing"}, id="no-name", marks=pytest.mark.slow
        ),
        pytest.param({"KNAPPER_MODEL_NAME": "of-nobody"}, id="no-server"),
    ],
)
async def test_a_program_is_told_of_settings_and_a_user_of_options(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    with scripted([]) as model:
        around = {key: value.format(url=model.base_url) for key, value in environment.items()}
        async with Workspace.open(tmp_path, environment=around) as workspace:
            agent = await workspace.agent()
            with pytest.raises(TurnError) as failed:
                await agent.ask("Hello?")
        assert "`model.name`" in failed.value.fix
        assert " --" not in str(failed.value)
        told = knapper("run", "--message", "Hello?", cwd=tmp_path, environment=around).stderr
    assert "--model NAME" in told
    assert "`model.name`" not in told


def test_a_program_without_await_asks_and_the_conversation_goes_on(tmp_path: Path) -> None:
    (program := tmp_path / "asks.py").write_text(
        "import agent_core\nprint(agent_core.ask('Hello?'), agent_core.ask('Again?'))"
    )
    with scripted([Say("One."), Say("Two.")]) as model:
        ended = python(program, cwd=tmp_path, environment=model.environment)
    assert (ended.stdout, ended.stderr) == ("One. Two.\n", "")


async def test_a_notebook_whose_loop_runs_asks_without_await(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted([Say("One.")]) as model:
        for name, value in model.environment.items():
            monkeypatch.setenv(name, value)
        assert agent_core.ask("Hello?", tmp_path) == "One."


async def test_what_is_closed_says_so(tmp_path: Path) -> None:
    with scripted([Say("One.")]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            async with await workspace.agent("passing") as passing:
                assert await passing.ask("Hello?") == "One."
            with pytest.raises(WorkspaceError, match="The agent `passing` is closed"):
                await passing.ask("And now?")
            agent = await workspace.agent()
        for use in (agent.ask("And now?"), agent.pop()):
            with pytest.raises(WorkspaceError, match="The agent `main` is closed"):
                await use
        with pytest.raises(WorkspaceError, match="The workspace is closed"):
            await workspace.agent()


async def test_an_agent_is_saved_loaded_exported_and_imported(tmp_path: Path) -> None:
    with scripted([Say("Good day."), Say("I remember.")]) as model:
        async with Workspace.in_memory(environment=model.environment) as workspace:
            agent = await workspace.agent()
            await agent.ask("Hello?")
            await agent.save(tmp_path / "main.json")
            with pytest.raises(UsageError, match="File exists") as caught:
                await agent.save(tmp_path / "main.json")
            assert caught.value.fix == "Name another file, or remove that one first."
            copy = await workspace.import_agent(await workspace.export_agent(), "copy")
            with pytest.raises(AgentExists):
                await workspace.load(tmp_path / "main.json")
            root = workspace.root
        assert not root.exists()
        async with Workspace.open(tmp_path, environment=model.environment) as other:
            loaded = await other.load(tmp_path / "main.json")
            assert (copy.name, loaded.name) == ("copy", "main")
            assert [message.text for message in await loaded.history()] == ["Hello?", "Good day."]
            assert await loaded.ask("And?") == "I remember."


async def test_an_agent_is_imported_from_a_text_bytes_or_the_object_in_them_and_from_nothing_else() -> (
    None
):
    async with Workspace.in_memory() as workspace:
        await workspace.agent("first")
        text = await workspace.export_agent("first")
        for name, document in {"a": text, "b": text.encode(), "c": json.loads(text)}.items():
            assert (await workspace.import_agent(document, name)).name == name
        with pytest.raises(
            AgentFileError, match="expected its text, bytes, or the object in it, got list"
        ) as caught:
            await workspace.import_agent([text], "d")  # type: ignore[arg-type]  # as an untyped program does
        assert "load(path)" in caught.value.fix
        with pytest.raises(AgentFileError, match=r"expected an object of JSON: .*set"):
            await workspace.import_agent({"agent": {1}}, "d")
        with pytest.raises(AgentFileError, match="expected UTF-8"):
            await workspace.import_agent(b"\xff", "d")


@pytest.mark.slow
@pytest.mark.parametrize(
    "loop", [pytest.param(False, id="plainly"), pytest.param(True, id="in-a-loop")]
)
def test_asking_without_a_model_shows_the_line_that_asked_and_one_of_ours(
    tmp_path: Path, loop: bool
) -> None:
    ask = f"agent_core.ask('Hello?', {str(tmp_path)!r})"
    body = (
        f"import asyncio\nasync def main():\n    {ask}\nasyncio.run(main())\n"
        if loop
        else f"{ask}\n"
    )
    (program := tmp_path / "program.py").write_text(f"import agent_core\n{body}")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    done = subprocess.run(
        [sys.executable, program], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    frames = [line for line in done.stderr.splitlines() if line.startswith("  File ")]
    assert [str(program) in line for line in frames].count(True) == (2 if loop else 1)
    assert len([line for line in frames if "/agent_core/" in line]) == 1
    assert "No model is set" in done.stderr
    assert "During handling" not in done.stderr


class Lucky(ChatMemory):
    """A conversation with a number."""

    def lucky(self) -> str:
        """Return the number."""
        return "7"


async def test_an_import_without_the_functions_of_a_program_says_which_are_missing() -> None:
    script: Script = [
        Ask(Wanted("lucky", {})),
        Say("Seven."),
        Ask(Wanted("lucky", {})),
        Say("Seven again."),
    ]
    with scripted(script) as model:
        async with Workspace.in_memory(environment=model.environment) as workspace:
            agent = await workspace.agent("first", memory=Lucky())
            await agent.ask("My number?")
            document = await workspace.export_agent("first")
            with pytest.warns(
                UserWarning, match=r"second has called functions that are not here: lucky\."
            ):
                await workspace.import_agent(document, "second")
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                third = await workspace.import_agent(document, "third", memory=Lucky())
            assert await third.ask("And now?") == "Seven again."


async def test_an_agent_and_its_workspace_show_what_they_are_in_a_notebook(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    code = 'def shout(text: str) -> str:\n    """Shout."""\n    return text.upper()\n'
    (tmp_path / "functions" / "text.py").write_text(code)
    with scripted([Say("Good day.")]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            assert repr(workspace) == f"<Workspace {tmp_path}: 1 function>"
            assert repr(agent) == "<Agent main: 0 messages in the context>"
            await agent.ask("My password is hunter22.")
            assert repr(agent) == "<Agent main: scripted, 2 messages in the context>"
