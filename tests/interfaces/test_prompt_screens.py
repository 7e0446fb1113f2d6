"""Screens of all sizes and kinds, compared without times and addresses."""

import re
from itertools import pairwise, product, takewhile
from pathlib import Path

import pytest

from agent_core.runtime.agent import AgentStatus
from agent_core.views.styled_lines import width
from knapper.prompt.prompt import StatusBar
from tests.interfaces.support import flags, leave, prompt
from tests.kit import Ask, Expect, Repeat, Say, Script, Wanted, contains, scripted
from tests.kit.drawing import sampled
from tests.kit.levels import IS_PORTABLE, level_here
from tests.kit.terminal import CTRL_C, ENTER, ESCAPE, Terminal, terminal

REPLY = """\
# Ünïcode 漢字 🎉

A paragraph with **bold**, `code` and 漢字 that is long enough to be folded on a screen of eighty columns, twice 🎉.

| 名前 | 🎉 | note |
|---|---|---|
| 漢字 | 1 | wide |
| plain | 22 | 👍 |

```python
for f in text:
    \"\"\"漢字

    🎉\"\"\"
    print("é" * 2)  # done
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


def turns(screen: Terminal) -> list[list[str]]:
    """Return what each turn printed: from its message to its last line."""
    lines = normal(screen.scrolled())
    begun = [at for at, line in enumerate(lines) if line == "› go"]
    ended = [at for at, line in enumerate(lines) if line.startswith("∙ ")]
    return [lines[start:end] for start, end in zip(begun, ended, strict=True)]


@pytest.mark.sampled
@pytest.mark.parametrize(("columns", "rows"), sampled([(80, 24), (200, 60)], 2))
def test_a_reply_that_streams_ends_on_the_same_screen_as_one_that_comes_at_once(
    tmp_path: Path, columns: int, rows: int
) -> None:
    script: Script = [Say(REPLY, pause_s=0.002), Say(REPLY)]
    with prompt(script, tmp_path, columns=columns, rows=rows) as (screen, _):
        screen.do("go", "∙ 1 step")
        screen.do("go", "∙ 1 step")
        assert screen.colour_of("for f in")[0] == "magenta"
        streamed, whole = turns(screen)
    assert streamed == whole
    assert "  for f in text:" in whole
    assert any("漢字" in line and "wide" in line for line in whole)


@pytest.mark.slow
def test_what_was_printed_never_changes_and_neither_a_resize_nor_a_slow_terminal_loses_any_of_it(
    tmp_path: Path,
) -> None:
    seen: list[list[str]] = []
    code = "".join(f"value_{n} = {n}\n" for n in range(60))
    words = " ".join(f"word{n}" for n in range(400))
    script: Script = [
        Say(REPLY * 3, pause_s=0.004),
        Say(f"```python\n{code}```\nSo far.", pause_s=0.01),
        Say(f"{words}\n\nEnd.", pause_s=0.001),
        Expect(Say("Heard."), contains("patience")),
    ]
    with prompt(script, tmp_path) as (screen, _):
        screen.line("go")

        def is_over() -> bool:
            seen.append(normal(screen.scrolled()))
            return "∙ 1 step" in "".join(seen[-1])

        screen.wait(is_over, "the end of the turn")
        kept = [common(each, seen[-1]) for each in seen]
        assert all(later >= earlier for earlier, later in pairwise(kept))
        assert len(set(kept)) > 5
        screen.do("code", "value_9")
        screen.resize(50, 12)
        screen.wait(lambda: "value_30" in screen.scrolled(), "value_30 on the screen or above it")
        screen.resize(120, 40)
        screen.wait(
            lambda: "∙ 1 step" in screen.scrolled().partition("So far.")[2], "the end of the code"
        )
        without_colour = re.sub(rb"\x1b\[[0-9;]*m", b"", screen.sent).replace(b"\r\n", b"\n")
        assert all(f"  value_{n} = {n}\n".encode() in without_colour for n in range(60))
        screen.breath_s = 0.01
        screen.do("words", "∙ 1 step")
        screen.do("patience", "Heard.")
        screen.breath_s = 0
        assert all(f"word{n}" in screen.scrolled() for n in range(400))


def common(some: list[str], others: list[str]) -> int:
    """Return how many lines are the same, from the top."""
    same = (one == other for one, other in zip(some, others, strict=False))
    return sum(takewhile(bool, same))


def test_a_dumb_terminal_gets_lines_asks_before_a_function_goes_and_leaves_with_ctrl_c(
    grown: Path,
) -> None:
    kept = grown / "functions" / "words.py"
    with (
        scripted([Say(REPLY)]) as model,
        terminal(
            "run", *flags(model), cwd=grown, environment={"TERM": "dumb"}, columns=110
        ) as screen,
    ):
        screen.wait_for("/help lists")
        screen.do("go", "∙ 1 step")
        screen.do("/functions", "Count the vowels")
        screen.do("/cost", "1 turn")
        for answer in ("n\n", CTRL_C, "maybe\n"):
            screen.do("/delete count_vowels", "Type y (yes) or n (no), then Enter.")
            times = screen.scrolled().count("Nothing was changed.")
            screen.type(answer)
            if answer == "maybe\n":
                screen.wait_for("That is not an answer.")
                screen.type("\n")
            screen.wait_count("Nothing was changed.", times + 1)
            assert kept.exists()
        screen.do("/delete count_vowels", "Type y (yes) or n (no), then Enter.")
        screen.answer("y")
        screen.wait_for("✓ deleted count_vowels from words")
        screen.type(CTRL_C)
        assert screen.exit_code() == 1
        assert not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", screen.sent)


def test_vi_keys_and_title_come_by_configuration(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").write_text('[repl]\nkeys = "vi"\ntitle = true\n')
    with prompt([Expect(Say("Yes."), contains("two three"))], tmp_path) as (screen, _):
        screen.type("one two three" + ESCAPE)
        screen.wait_for("‹ one two three")
        screen.type("0dw")
        screen.wait_for("‹ two three")
        screen.type(ENTER)
        screen.wait_for("∙ 1 step")
        assert leave(screen) == 0
    assert b"\x1b]2;\xe2\x80\xa6 main\x07" in screen.sent
    assert screen.sent.rindex(b"\x1b]2;main\x07") > screen.sent.index(
        b"\x1b]2;\xe2\x80\xa6 main\x07"
    )


def test_a_call_is_seen_as_it_is_written_and_ctrl_c_ends_it_and_twice_more_leaves(
    folder: Path,
) -> None:
    (folder / "functions" / "loop.py").write_text(LOOP)
    grows = Ask(Wanted("create_function", {"function_code_with_docstring": LOOP * 3}), pause_s=0.05)
    with prompt([grows, Say("No."), Repeat(Ask(Wanted("loop")))], folder, columns=120) as (
        screen,
        _,
    ):
        screen.line("grow")
        growing = re.compile(r"✎ create_function · ([5-9]|1\d) lines[^▸]*    time\.sleep\(2\)")
        screen.wait(lambda: bool(growing.search("\n".join(screen.screen()))), "the growing call")
        screen.wait(lambda: "∙ 2 steps" in screen.scrolled(), "the end")
        assert "✎" not in screen.scrolled()
        screen.line("go")
        screen.wait_for("1 running")
        screen.type(CTRL_C)
        screen.wait_for("Interrupted.")
        screen.wait_gone("1 running")
        screen.type(CTRL_C)
        screen.wait_for("Ctrl-C again, Ctrl-D or /exit leaves")
        screen.type(CTRL_C)
        assert screen.exit_code() == 0


LONG = "accounts/fireworks/models/qwen3-coder-480b-a35b-instruct"
FACTS = AgentStatus("main", LONG, 30_000, 100_000, 12, 60)


def bar_of(columns: int, *, unsafe: bool = False, status: AgentStatus = FACTS) -> str:
    bar = StatusBar()
    bar.status, bar.sandbox, bar.unsafe = lambda: status, "full", unsafe
    return "".join(part[1] for part in bar.draw(columns))


def test_sandbox_gauge_and_menu_stay_on_a_small_screen_with_a_long_model_name(
    tmp_path: Path,
) -> None:
    with scripted([], models=[LONG]) as model:
        arguments = ("run", "--base-url", model.base_url, "--model", LONG)
        with terminal(*arguments, cwd=tmp_path, columns=40) as screen:
            screen.wait_for(told := f"sandbox {level_here()}")
            [bar] = [row for row in screen.screen() if told in row]
            assert "%" in bar
            assert "…" in bar or IS_PORTABLE  # which leaves no place for a name
            screen.resize(120, 24)
            screen.wait_for(f"main · {LONG} · ")
            screen.resize(40, 8)
            screen.type("/re")
            screen.wait_for("/reload")
            screen.wait_for("/retry")
            assert not any("too small" in row for row in screen.screen())


def test_the_bar_fits_every_width_and_keeps_what_matters_most() -> None:
    for columns, unsafe in product((200, 80, 60, 40, 30, 20), (False, True)):
        shown = bar_of(columns, unsafe=unsafe)
        assert width(shown) <= columns
        assert "SANDBOX OFF" in shown if unsafe else "sandbox full" in shown
        assert "30%" in shown or columns < 30
        assert (LONG in shown) == (columns == 200)
    cut = bar_of(80)  # a long name keeps its two ends
    assert (" main · accounts/f" in cut, "instruct · ▰▰▱" in cut) == (True, True)
    bar = StatusBar()
    bar.hint = "Nothing is running. Ctrl-D or /exit leaves."
    assert "".join(part[1] for part in bar.draw(30)) == " Nothing is running. Ctrl-D o…"
