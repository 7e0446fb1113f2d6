"""A carriage return ends a line in Python, so it does wherever a source is shown, compared or numbered."""

import pytest

from agent_core.access.grants.content import differences
from agent_core.context.presentation import introspection
from agent_core.functions.gate.draft import unified_diff
from agent_core.functions.service.grant_service import _granting_lines
from agent_core.functions.service.history import diff
from agent_core.registry.source import ModuleSource
from agent_core.views.function_view import source_lines
from agent_core.views.styled_lines import plain
from knapper.prompt import render
from tests.functions.support import Room
from tests.kit.desk import VOWELS

RETURNS = VOWELS.replace(
    "    return sum(", "    text = text  # note\r    # more\r\n    text.nothing\r    return sum("
)


async def test_errors_listings_and_needs_have_the_lines_of_python(here: Room) -> None:
    await here.save(VOWELS)
    here.letters.write_bytes(RETURNS.encode())
    await here.shop.saved([here.letters])
    found = await here.shop.call("count_vowels", {"text": "a"})
    assert found.error is not None
    assert [(frame.line, frame.source) for frame in found.error.frames] == [(17, "text.nothing")]
    details = await here.shop.introspect("count_vowels")
    shown = introspection(details, details.function.parameters)
    assert (
        "  15     text = text  # note\n  16     # more\n  17     text.nothing\n  18     return sum("
        in shown
    )
    here.letters.write_bytes(RETURNS.replace("text.nothing", 'open("x")').encode())
    await here.shop.saved([here.letters])
    snapshot = here.shop.registry.snapshot()
    assert _granting_lines(snapshot.functions["count_vowels"], snapshot, ()) == ((17, 'open("x")'),)


async def test_every_difference_has_the_lines_of_python() -> None:
    new = "+    text.nothing"
    assert new in differences({"a": VOWELS}, [ModuleSource.of("a", RETURNS)]).split("\n")
    assert new in diff(VOWELS, RETURNS, ("a", "b")).split("\n")
    assert new in unified_diff(VOWELS, RETURNS, "a").replace("\r", "\n").split("\n")


async def test_every_listing_has_the_lines_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "  17     text.nothing\n" in plain(source_lines(RETURNS, 1))
    assert any(row.strip().endswith("text.nothing") for row in render.source(RETURNS, 1, 80))
