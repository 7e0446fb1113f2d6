"""The menu for a user without a model: three choices, each ending at a prompt or with a message."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.interfaces.support import leave
from tests.kit import Repeat, Say, scripted
from tests.kit.terminal import Terminal, terminal

CHOICE = "Type 1, 2 or 3 and Enter"
SECRET = "sk-never-shown-12345"  # pragma: allowlist secret


@contextmanager
def menu(cwd: Path, environment: Mapping[str, str] | None = None) -> Iterator[Terminal]:
    alone = {"HOME": str(cwd), "XDG_DATA_HOME": str(cwd), **(environment or {})}
    with terminal("run", cwd=cwd, environment=alone) as screen:
        screen.wait_for(CHOICE)
        yield screen


def test_an_address_with_a_key_is_tried_written_with_a_yes_and_used(tmp_path: Path) -> None:
    with scripted([Say("ready"), Say("Good day.")], key=SECRET) as model, menu(tmp_path) as screen:
        screen.do(model.base_url, "Its key")  # in place of a choice
        screen.do(SECRET, "The model's name")
        screen.line("")
        screen.answer("y")
        screen.wait_for("/help lists")
        screen.line("hello")
        screen.wait_for("Good day.")
        assert leave(screen) == 0
        assert SECRET not in screen.scrolled()
    written = (tmp_path / "knapper.toml").read_text()
    assert model.base_url in written
    assert SECRET not in written
    files = [file for file in (tmp_path / ".knapper").rglob("*") if file.is_file()]
    assert not [file for file in files if SECRET.encode() in file.read_bytes()]


def test_lines_typed_before_the_menu_are_told_as_not_sent(tmp_path: Path) -> None:
    with terminal(
        "run", cwd=tmp_path, environment={"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    ) as screen:
        screen.wait_for("getting ready")
        screen.line("hello there")
        screen.line("and more")
        screen.wait_for(CHOICE)
        shown = screen.scrolled()
        assert "not sent: hello there" in shown
        assert "not sent: and more" in shown


FORMS = (
    "{host}",
    "localhost:{port}",
    "http://{host}",
    "{host}/v1/",
    " {host}/v1/chat/completions ",
    "127.1.2.3:{port}",
)


@pytest.mark.parametrize("form", FORMS)
def test_an_address_is_one_in_every_form_and_its_version_is_found(
    tmp_path: Path, form: str
) -> None:
    with scripted([Repeat(Say("ready"))]) as model, menu(tmp_path) as screen:
        host = model.base_url.removeprefix("http://").removesuffix("/v1")
        typed = form.format(host=host, port=host.rpartition(":")[2])
        screen.do("1", "not shown as you type")
        screen.do(typed, "The address is http://", "Its key")
        assert "A key of" not in screen.scrolled()
        screen.do("", "The model's name")
        if "127.1" in form:  # where nothing listens
            screen.do("", "cannot be reached", CHOICE)
            return
        screen.do("", "Keep the address")
        screen.wait_count("Enter alone: no.", 1)
        screen.answer("y")
        screen.wait_for("/help lists")
        assert leave(screen) == 0
    assert f'{host.rpartition(":")[2]}/v1"' in (tmp_path / "knapper.toml").read_text()


NO_KEYS = (
    "/home/me/keys.txt",
    "./key",
    "~/key.txt",
    "C:\\keys",
    "me:pass@127.0.0.1:9",
    "id:secret",
    "[::1",
    "two words",
)


def test_a_key_goes_only_where_its_owner_says_and_nothing_else_is_taken_for_one(
    tmp_path: Path,
) -> None:
    with scripted([Repeat(Say("ready"))], key=SECRET) as model, menu(tmp_path) as screen:
        for typed in NO_KEYS:
            screen.do("1", "not shown as you type")
            screen.do(typed, "so it was not sent as a key", CHOICE)
        screen.do("1", "not shown as you type")
        screen.do(SECRET, "Whose is it?")
        assert not model.requests
        screen.do(model.base_url.removesuffix("/v1"), "The model's name")
        screen.do("", "Keep the address")
        screen.do("", "/help lists")
        assert leave(screen) == 0
        assert SECRET not in screen.scrolled()
    assert (tmp_path / "knapper.toml").read_text() == ""


def test_a_key_typed_where_it_shows_is_not_shown_again_and_goes_nowhere(tmp_path: Path) -> None:
    with menu(tmp_path) as screen:
        screen.do(SECRET, "That is not 1, 2, 3 or an address.", CHOICE)
        assert screen.scrolled().replace("\n", "").count(SECRET) == 1
        screen.do("example.invalid", "The address is https://example.invalid")


def test_enter_alone_is_the_tour_and_nothing_is_downloaded_without_a_yes(tmp_path: Path) -> None:
    with menu(tmp_path) as screen:
        screen.do(
            "2", "Download 1.1 GB now?", "then Enter."
        )  # what is typed before it is no answer
        screen.do("", "Nothing was downloaded.", CHOICE)
        screen.do("", "how many vowels are in queueing?")


UNUSABLE = {
    "http://me:secret@127.0.0.1:9/v1": "has no user, password or query",
    "http://": "not an address",
}


def test_the_menu_shows_three_ways_and_comes_back_after_what_cannot_be_used(tmp_path: Path) -> None:
    with scripted([], key="another") as model, menu(tmp_path, {"NO_COLOR": "1"}) as screen:
        shown = "\n".join(screen.screen())
        for part in (
            "1 a key",
            "2 the local model",
            "1.1 GB, Apache-2.0, by Qwen",
            "huggingface.co",
            "3 the tour",
        ):
            assert part in shown, part
        assert b"\x1b[31m" not in screen.sent
        for typed, says in UNUSABLE.items():
            screen.do("1", "not shown as you type")
            screen.do(typed, says, CHOICE)
        screen.do("1", "not shown as you type")
        screen.do(model.base_url, "Its key")
        screen.do(SECRET, "The model's name")
        screen.do("scripted", "✗ The key was refused.", CHOICE)
        assert SECRET not in screen.scrolled()
        screen.do("q", "Nothing was changed")
        assert screen.exit_code() == 0


def test_the_third_choice_takes_the_tour_on_a_dumb_terminal_too(tmp_path: Path) -> None:
    with menu(tmp_path, {"TERM": "dumb"}) as screen:
        screen.line("7")
        screen.wait_for("✗ `7` is not 1, 2, 3 or an address.")
        assert screen.scrolled().count("Which model should answer you?") == 1
        screen.wait_count(CHOICE, 2)  # input typed before a question is not its answer
        screen.line("3")
        screen.wait_for("how many vowels are in queueing?")


def test_a_folder_that_is_no_workspace_becomes_one_with_a_yes(tmp_path: Path) -> None:
    alone = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    (tmp_path / "knapper.toml").unlink()  # it would be found from below
    for name, has in (("bare", ""), ("used", "letter.txt")):
        (tmp_path / name / has).mkdir(parents=True)
        with terminal("run", cwd=tmp_path / name, environment=alone) as screen:
            screen.wait_for("then Enter.")
            screen.do("y", CHOICE)
            screen.do("q", "Nothing was changed")
        assert (tmp_path / name / "knapper.toml").is_file()
        assert (tmp_path / name / "functions" / "text.py").is_file()


def test_a_folder_stays_as_it_is_without_a_yes_and_what_was_typed_ahead_is_not_sent(
    tmp_path: Path,
) -> None:
    bare = tmp_path / "bare"
    (tmp_path / "knapper.toml").unlink()
    bare.mkdir()
    with terminal("run", cwd=bare, environment={"HOME": str(tmp_path)}, columns=110) as screen:
        screen.type(
            "y\rhow many vowels?\rand half a"
        )  # whether the prompt reads it is up to chance
        screen.wait_for("Make one here")
        screen.wait_for("then Enter.")
        for text in ("y", "how many vowels?", "and half a"):
            assert f"not sent: {text}\n" in screen.scrolled()
        screen.do("", "Next: knapper init")
        assert screen.exit_code() == 0
    assert list(bare.iterdir()) == []
