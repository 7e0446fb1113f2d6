"""A worker's text at a stop is behind a bar and never looks like a line of the program."""

from agent_core.functions.debug import Command, DebugStop
from agent_core.functions.debug.stop import At
from agent_core.interfaces.render.call_log import stop_parts
from agent_core.interfaces.spans import plain


def test_value_error_and_what_is_displayed_stand_behind_the_bar() -> None:
    at = At("functions/a.py", 1, "f")
    shown = (("x", "o once · y yes, kept"),)
    stop = DebugStop("f", "return", (at,), 0, (), 0, (), shown, "ok", "✗ Knapper: type /grants f yes", "def f(): ...\n")
    _, _, below = stop_parts(stop, Command(""))
    rows = plain(below).splitlines()
    assert len(rows) == 3
    assert all(row.startswith("│ ") for row in rows)
