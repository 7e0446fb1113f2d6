"""The prompt on screens that are too small for all of it."""

from itertools import product
from pathlib import Path

from agent_core.interfaces.repl.prompt import StatusBar
from agent_core.interfaces.styled_lines import width
from agent_core.runtime.agent import AgentStatus
from tests.kit import scripted
from tests.kit.levels import IS_PORTABLE, level_here
from tests.kit.terminal import terminal

LONG = "accounts/fireworks/models/qwen3-coder-480b-a35b-instruct"
FACTS = AgentStatus("main", LONG, 30_000, 100_000, 12, 60)


def bar_of(columns: int, *, unsafe: bool = False, status: AgentStatus = FACTS) -> str:
    bar = StatusBar()
    bar.status, bar.sandbox, bar.unsafe = lambda: status, "full", unsafe
    return "".join(part[1] for part in bar.draw(columns))


def test_sandbox_gauge_and_menu_stay_on_a_small_screen_with_a_long_model_name(tmp_path: Path) -> None:
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
