"""A secret that is not set is typed after the yes to the question: hidden, and into the user's own file alone."""

from pathlib import Path

import pytest

from tests.interfaces.asking import DONE, home, press
from tests.interfaces.support import create, flags, prompt
from tests.kit import Ask, Expect, Script, Wanted, contains, scripted
from tests.kit.sources import function_text
from tests.kit.terminal import ENTER, Terminal, terminal

VALUE = "sk-12345-abcdef"
KEYED = function_text(
    "keyed(self) -> int",
    "Return the length of the key of the shop.",
    'return len(self.secret("SHOP_KEY"))',
)
CALLED: Script = [
    Ask(create(KEYED, "keyed")),
    Ask(Wanted("keyed", {})),
    Expect(DONE, contains(str(len(VALUE)))),
]


@pytest.fixture
def user(tmp_path: Path) -> dict[str, str]:
    """The folders of a user who has no secrets yet."""
    return {**home(tmp_path), "XDG_CONFIG_HOME": str(tmp_path.parent / f"{tmp_path.name}-config")}


def holders(tmp_path: Path) -> list[str]:
    """Return the files that have the value, of the workspace and of the user."""
    files = [file for file in tmp_path.parent.glob(f"{tmp_path.name}*/**/*") if file.is_file()]
    return [file.name for file in files if VALUE.encode() in file.read_bytes()]


def typed(screen: Terminal) -> None:
    """Type the value where it is asked for."""
    screen.wait_for("The value of SHOP_KEY (not shown as you type")
    screen.line(VALUE)
    screen.wait_for("SHOP_KEY is set.")


def test_at_the_prompt_the_first_call_has_it_and_nothing_else_sees_it(
    tmp_path: Path, user: dict[str, str]
) -> None:
    with prompt(CALLED, tmp_path, environment=user, columns=120) as (screen, model):
        screen.line("how long is it?")
        screen.wait_for("SHOP_KEY is not set.")
        press(screen, "y")
        typed(screen)
        screen.wait_for("∙ ")
        screen.type("\x1b[A")
        screen.wait_for("› how long is it?")
        assert VALUE.encode() not in screen.sent
        assert not [request for request in model.requests if VALUE in request.text]
    assert holders(tmp_path) == ["secrets.toml"]


def test_an_empty_line_leaves_it_unset_and_a_short_one_is_asked_for_again(
    tmp_path: Path, user: dict[str, str]
) -> None:
    unset: Script = [
        Ask(create(KEYED, "keyed")),
        Ask(Wanted("keyed", {})),
        Expect(DONE, contains("is not set")),
    ]
    with prompt(unset, tmp_path, environment=user, columns=120) as (screen, _):
        screen.line("how long is it?")
        press(screen, "y")
        screen.wait_for("The value of SHOP_KEY")
        screen.line("short")
        screen.wait_count("The value of SHOP_KEY", 2)
        screen.type(ENTER)
        screen.wait_for("SHOP_KEY is not set. Later: knapper secrets set SHOP_KEY")
        screen.wait_for("∙ ")


def test_a_terminal_of_lines_asks_for_it_too(tmp_path: Path, user: dict[str, str]) -> None:
    with (
        scripted(CALLED) as model,
        terminal(
            "run", *flags(model), cwd=tmp_path, environment={"TERM": "dumb", **user}, rows=60
        ) as screen,
    ):
        screen.wait_for("/help lists")
        screen.line("how long is it?")
        screen.answer("y")
        typed(screen)
        screen.wait_for("∙ ")
        assert VALUE.encode() not in screen.sent
    assert holders(tmp_path) == ["secrets.toml"]


def test_a_value_typed_in_another_window_is_in_the_owners_file_alone(
    tmp_path: Path, user: dict[str, str]
) -> None:
    with (
        prompt(CALLED, tmp_path, environment=user, columns=120) as (first, model),
        terminal("run", *flags(model), cwd=tmp_path, environment=user, columns=120) as second,
    ):
        second.wait_for("/help lists")
        first.line("how long is it?")
        press(second, "y")
        typed(second)
        first.wait_for("→ answered in another window: yes")
        for screen in (first, second):
            screen.wait_for("∙ ")
            assert VALUE.encode() not in screen.sent
    assert holders(tmp_path) == ["secrets.toml"]
