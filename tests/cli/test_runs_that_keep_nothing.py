"""`run --once`, `log`, `--debug`, named models, and a workspace whose state is in a database."""

import json
from pathlib import Path

import pytest

from tests.cli.support import run
from tests.interfaces.support import COUNT_VOWELS, flags, prompt
from tests.kit import Expect, Repeat, Say, contains, scripted
from tests.kit.program import knapper


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "words.py").write_text(COUNT_VOWELS)
    return tmp_path


def test_a_question_that_keeps_nothing_is_answered_while_a_prompt_is_open(folder: Path) -> None:
    (folder / "notes.md").write_text("tea\n")
    with prompt([Say("Hi."), Say("Once.")], folder) as (screen, model):
        screen.line("remember the kettle")
        screen.wait_for("∙ 1 step")
        options = (
            "--once",
            "-f",
            "notes.md",
            "-f",
            "-",
            "-s",
            "Be terse.",
            "--message",
            "what is it?",
        )
        done = knapper("run", *flags(model), *options, cwd=folder, given="from the pipe\n")
        assert (done.returncode, done.stdout) == (0, "Once.\n"), done.stderr
        request = model.requests[-1]
        assert "kettle" not in request.text
        assert "Be terse." in str(request.messages[0])
        assert (
            "what is it?\n\n`notes.md`:\n```\ntea\n```\n\n`standard input`:\n```\nfrom the pipe\n```"
            in str(request.messages[-1]["content"])
        )
        log = knapper("log", cwd=folder)
        told = "**You:** remember the kettle\n\n**main:** Hi.\n\n> This turn: `nothing outside this conversation`\n"
        assert log.stdout.endswith(told)
    assert [agent["name"] for agent in run(folder, "agents", "list")["agents"]] == ["main"]
    locks = {path.name for path in (folder / ".knapper" / "agents").glob("*.lock")}
    assert locks == {"main.lock", "present.lock"}, "of the agent, and of who is there"


def test_options_that_contradict_one_another_say_so(folder: Path) -> None:
    hi = ("--message", "hi")
    for options, says in (
        (("--once", "--agent", "x", *hi), "--once keeps no conversation"),
        (("--message", "-", "-f", "-"), "only once"),
        (("-f", "nothing.md", *hi), "nothing.md cannot be sent"),
        (("-f", "functions", *hi), "functions cannot be sent"),
    ):
        done = knapper("run", *options, cwd=folder)
        assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    (folder / "knapper.toml").write_text('[models.a]\nkey_variable = "AWS_SECRET_ACCESS_KEY"\n')
    done = knapper("functions", "list", cwd=folder)
    assert (done.returncode, "models.a.key_variable" in done.stderr) == (2, True), done.stderr


def test_a_transcript_has_the_last_turns_and_goes_to_a_new_file(folder: Path) -> None:
    with scripted([Repeat(Say("Yes."))]) as model:
        knapper("run", *flags(model), cwd=folder, given="one\ntwo\nthree\n")
    last = knapper("log", "--last", "1", "--since", "yesterday", cwd=folder).stdout
    assert last.startswith("# Conversation with main\n\n## ")
    assert ("three" in last, "two" in last) == (True, False)
    kept = knapper("log", "-o", "kept.md", cwd=folder)
    assert "3 turns in kept.md" in kept.stdout
    assert (folder / "kept.md").read_text().count("**main:** Yes.") == 3
    assert knapper("log", "-o", "kept.md", cwd=folder).returncode == 2
    with scripted([]) as model:
        knapper("run", *flags(model), "-y", cwd=folder, given="/pop\n")
    assert "three" not in knapper("log", cwd=folder).stdout
    assert [turn["entries"][0]["text"] for turn in run(folder, "log", "--all")["turns"]] == [
        "one",
        "two",
        "three",
    ]
    assert knapper("log", "--agent", "nobody", cwd=folder).returncode == 1


def test_debugging_shows_the_wire_without_the_key_and_tracebacks(folder: Path) -> None:
    key = {"OPENAI_API_KEY": "sk-very-secret-key"}
    with scripted([Say("sk-very-secret-key it is.")]) as model:
        done = knapper(
            "run",
            *flags(model),
            "--once",
            "--debug",
            "--message",
            "hi",
            cwd=folder,
            environment=key,
        )
    assert f"→ {model.base_url}" in done.stderr
    assert f"← {model.base_url}" in done.stderr
    assert "sk-very-secret-key" not in done.stderr
    failed = knapper("functions", "show", "nothing", "--debug", cwd=folder)
    assert "Traceback (most recent call last)" in failed.stderr
    assert "Traceback" not in knapper("functions", "show", "nothing", cwd=folder).stderr
    assert "Traceback" in knapper("--debug", "functions", "show", "nothing", cwd=folder).stderr


def test_a_named_model_has_its_address_key_and_price(folder: Path) -> None:
    with scripted([Expect(Say("Quick."), contains("hi"))]) as model:
        (folder / "knapper.toml").write_text(
            f'[models.fast]\nname = "scripted"\nbase_url = "{model.base_url}"\nkey_variable = "FAST_API_KEY"\n'
            "price = { input = 1, output = 4000 }\n"
        )
        refused = knapper(
            "run", "--model", "fast", "--once", "--message", "hi", "--json", cwd=folder
        )
        assert json.loads(refused.stdout)["error"]["code"] == "unconfirmed-address"
        confirmed = knapper("configure", "--confirm-address", "--yes", cwd=folder)
        assert f"{model.base_url} is confirmed" in confirmed.stdout
        assert "the key in FAST_API_KEY" in confirmed.stderr
        key = {"FAST_API_KEY": "sk-fast-one", "OPENAI_API_KEY": "sk-other-one"}
        done = knapper(
            "run", "--model", "fast", cwd=folder, given="hi\n/cost\n/model\n", environment=key
        )
        assert "Quick." in done.stdout
        assert "$" in done.stdout
        assert "$1 in, $4000 out for a million tokens" in done.stdout


def test_a_workspace_moves_into_a_database_and_belongs_to_one_folder(
    tmp_path: Path, database: str
) -> None:
    (tmp_path / "functions").mkdir()
    (elsewhere := tmp_path / "elsewhere" / "functions").mkdir(parents=True)
    (elsewhere.parent / "knapper.toml").touch()
    there = {"KNAPPER_STORAGE_URL": database}
    assert knapper("agents", "list", cwd=tmp_path).returncode == 0  # creates the file
    file = f"sqlite:///{tmp_path}/.knapper/state.db"
    copied = knapper("storage", "copy", "--from", file, "--to", database, cwd=tmp_path)
    assert "compared by their hashes" in copied.stdout, copied.stderr
    assert "whole" in knapper("storage", "check", cwd=tmp_path, environment=there).stdout
    told = knapper("storage", "stats", "--json", cwd=tmp_path, environment=there).stdout
    assert '"place":"postgresql://' in told.replace(" ", "")
    refused = knapper("storage", "check", cwd=elsewhere.parent, environment=there)
    assert (refused.returncode, "knapper storage join" in refused.stderr) == (1, True)
    assert knapper("storage", "claim", cwd=elsewhere.parent, environment=there).returncode == 0
    assert knapper("storage", "check", cwd=elsewhere.parent, environment=there).returncode == 0


def test_a_database_that_only_the_folder_names_is_used_after_a_yes(
    tmp_path: Path, database: str
) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").write_text(f'[storage]\nurl = "{database}"\n')
    refused = knapper("storage", "check", "--json", cwd=tmp_path)
    assert json.loads(refused.stdout)["error"]["code"] == "unconfirmed-database"
    assert knapper("storage", "confirm", cwd=tmp_path).returncode == 0
    assert (
        knapper("storage", "check", cwd=tmp_path).stdout.strip()
        == "✓ whole: 0 turns with 0 entries"
    )


def test_a_state_that_is_not_there_is_not_copied(tmp_path: Path) -> None:
    new = tmp_path / "new.db"
    done = knapper(
        "storage",
        "copy",
        "--from",
        f"sqlite:///{tmp_path}/typo.db",
        "--to",
        f"sqlite:///{new}",
        cwd=tmp_path,
    )
    assert (done.returncode, "There is no state at" in done.stderr) == (1, True)
    assert not [*tmp_path.glob("*.db")]
