"""Screens of all sizes and kinds, compared without times and addresses."""

import re
import time
from itertools import pairwise, takewhile
from pathlib import Path

import pytest

from tests.interfaces.support import flags, leave, prompt
from tests.kit import Ask, Expect, Repeat, Say, Wanted, contains, scripted
from tests.kit.terminal import CTRL_C, ENTER, ESCAPE, Terminal, terminal

REPLY = """\
# Ünïcode 漢字 🎉

A paragraph with **bold**, `code` and 漢字 that is long enough to be folded on a screen of eighty columns, twice 🎉.

| 名前 | 🎉 | note |
|---|---|---|
| 漢字 | 1 | wide |
| plain | 22 | 👍 |

```python
def f(text):
    \"\"\"漢字

    🎉\"\"\"
    return "é" * 2  # done
```

1. one
2. two

> quoted
"""
LOOP = 'def loop(self) -> str:\n    """Go on."""\n    import time\n    time.sleep(2)\n    return "done"\n'
_VARIES = re.compile(r"\d[\d,.]* (?:ms|s|min)\b|127\.0\.0\.1:\d+|[\d.]+k tokens|[\d,]+ tokens")


def normal(text: str) -> list[str]:
    """Return the non-empty lines, without what differs from run to run."""
    return [line for each in text.split("\n") if (line := _VARIES.sub("~", each).rstrip())]


def shown(screen: Terminal) -> list[str]:
    """Return what a turn printed: from its message to its last line."""
    lines = normal(screen.scrolled())
    return lines[lines.index("› go") : next(at for at, line in enumerate(lines) if line.startswith("∙ "))]


def play(cwd: Path, columns: int, rows: int, pause_s: float) -> list[str]:
    script = [Say(REPLY, pause_s=pause_s)]
    with scripted(script) as model, terminal("run", *flags(model), cwd=cwd, columns=columns, rows=rows) as screen:
        screen.wait_for("/help lists")
        screen.line("go")
        screen.wait(lambda: "∙ 1 step" in screen.scrolled(), "the end")
        assert leave(screen) == 0
        return shown(screen)


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 60)])
def test_a_reply_that_streams_ends_on_the_same_screen_as_one_that_comes_at_once(
    tmp_path: Path, columns: int, rows: int
) -> None:
    found = play(tmp_path, columns, rows, 0.002)
    assert found == play(tmp_path, columns, rows, 0)
    assert "  def f(text):" in found
    assert any("漢字" in line and "wide" in line for line in found)


def test_what_was_printed_of_a_reply_never_changes_while_the_rest_streams(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    with prompt([Say(REPLY * 3, pause_s=0.004)], tmp_path) as (screen, _):
        screen.line("go")
        while not seen or "∙ 1 step" not in "".join(seen[-1]):
            seen.append(normal(screen.scrolled()))
            time.sleep(0.01)
    kept = [common(each, seen[-1]) for each in seen]
    assert all(later >= earlier for earlier, later in pairwise(kept))
    assert len(set(kept)) > 5


def common(some: list[str], others: list[str]) -> int:
    """Return how many lines are the same, from the top."""
    same = (one == other for one, other in zip(some, others, strict=False))
    return sum(takewhile(bool, same))


def test_a_resize_in_the_middle_of_code_loses_no_line_of_it(tmp_path: Path) -> None:
    code = "".join(f"value_{n} = {n}\n" for n in range(60))
    with prompt([Say(f"```python\n{code}```\n", pause_s=0.01)], tmp_path) as (screen, _):
        screen.line("go")
        screen.wait_for("value_9")
        screen.resize(50, 12)
        screen.wait(lambda: "value_30" in screen.scrolled(), "value_30 on the screen or above it")
        screen.resize(120, 40)
        screen.wait_for("1 step")
        assert all(f"  value_{n} = {n}\n".encode() in without_colour(screen) for n in range(60))


def without_colour(screen: Terminal) -> bytes:
    return re.sub(rb"\x1b\[[0-9;]*m", b"", screen.sent).replace(b"\r\n", b"\n")


def test_a_slow_terminal_loses_nothing_and_takes_what_is_typed(tmp_path: Path) -> None:
    words = " ".join(f"word{n}" for n in range(400))
    with prompt([Say(f"{words}\n\nEnd.", pause_s=0.001), Expect(Say("Heard."), contains("patience"))], tmp_path) as (
        screen,
        _,
    ):
        screen.breath_s = 0.01
        screen.line("go")
        screen.wait_for("1 step")
        screen.line("patience")
        screen.wait_for("Heard.")
        screen.breath_s = 0
        assert all(f"word{n}" in screen.scrolled() for n in range(400))


def test_a_dumb_terminal_gets_lines_and_no_control_character(tmp_path: Path) -> None:
    script = [Say(REPLY)]
    with scripted(script) as model:
        with terminal("run", *flags(model), cwd=tmp_path, environment={"TERM": "dumb"}) as screen:
            screen.wait_for("/help lists")
            screen.line("go")
            screen.wait_for("∙ 1 step")
            screen.line("/functions")
            screen.wait_for("No functions.")
            screen.line("/cost")
            screen.wait_for("1 turn")
            screen.line("/exit")
            assert screen.exit_code() == 0
        assert not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", screen.sent)


def test_the_plain_mode_of_the_settings_prints_lines_alone(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").write_text("[repl]\nplain = true\n")
    with prompt([Say("Hello.")], tmp_path, environment={"NO_COLOR": "1"}) as (screen, _):
        screen.line("go")
        screen.wait_for("∙ 1 step")
        screen.line("/exit")
        assert screen.exit_code() == 0
        assert b"\x1b" not in screen.sent


def test_five_hundred_pasted_lines_are_one_message_and_shown_folded(tmp_path: Path) -> None:
    pasted = "\n".join(f"{number} 漢" for number in range(500))
    with prompt([Expect(Say("All of it."), contains(pasted))], tmp_path) as (screen, _):
        screen.paste(pasted)
        screen.wait_for("… 500 lines; Enter sends them as one message")
        assert sum("漢" in row for row in screen.screen()) <= 8
        screen.type(ENTER)
        screen.wait_for("All of it.")
        assert "  … 489 more lines" in screen.scrolled()
        assert screen.scrolled().count("漢") == 11


def test_vi_keys_edit_the_line_when_they_are_set(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").write_text('[repl]\nkeys = "vi"\n')
    with prompt([Expect(Say("Yes."), contains("two three"))], tmp_path) as (screen, _):
        screen.type("one two three" + ESCAPE)
        screen.wait_for("‹ one two three")
        screen.type("0dw")
        screen.wait_for("‹ two three")
        screen.type(ENTER)
        screen.wait_for("Yes.")


def test_title_and_bell_come_by_configuration_and_go_with_it(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").write_text("[repl]\ntitle = true\nbell = true\n")
    with prompt([Say("Hi.")], tmp_path) as (screen, _):
        screen.line("go")
        screen.wait_for("∙ 1 step")
        assert leave(screen) == 0
    assert b"\x1b]2;\xe2\x80\xa6 main\x07" in screen.sent
    assert screen.sent.rindex(b"\x1b]2;main\x07") > screen.sent.index(b"\x1b]2;\xe2\x80\xa6 main\x07")


@pytest.mark.parametrize(("theme", "colour"), [("dark", "brightblue"), ("light", "blue")])
def test_code_has_colours_that_fit_the_theme(tmp_path: Path, theme: str, colour: str) -> None:
    with prompt([Say(REPLY)], tmp_path, environment={"KNAPPER_REPL_THEME": theme}) as (screen, _):
        screen.line("go")
        screen.wait_for("∙ 1 step")
        assert screen.colour_of("def f(")[0] == colour


def test_ctrl_c_ends_a_call_and_twice_more_leaves(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "loop.py").write_text(LOOP)
    with prompt([Repeat(Ask(Wanted("loop")))], tmp_path, columns=120) as (screen, _):
        screen.line("go")
        screen.wait_for("1 running")
        screen.type(CTRL_C)
        screen.wait_for("Interrupted.")
        screen.wait_gone("1 running")
        screen.type(CTRL_C)
        screen.wait_for("Ctrl-C again, Ctrl-D or /exit leaves")
        screen.type(CTRL_C)
        assert screen.exit_code() == 0


def test_a_call_is_seen_as_the_model_writes_it_and_gone_when_it_runs(tmp_path: Path) -> None:
    calls = Ask(Wanted("create_function", {"function_code_with_docstring": LOOP * 3}), pause_s=0.05)
    with prompt([calls, Repeat(Say("No."))], tmp_path) as (screen, _):
        screen.line("go")
        screen.wait(lambda: "✎ create_function · 7 lines" in "\n".join(screen.screen()), "the growing call")
        assert any("    time.sleep(2)" in line for line in screen.screen())
        screen.wait(lambda: "∙ 2 steps" in screen.scrolled(), "the end")
        assert "✎" not in screen.scrolled()
