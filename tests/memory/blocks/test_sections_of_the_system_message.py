"""An agent's own sections of its system message."""

import pytest

from agent_core.base.errors import UsageError
from agent_core.memory.classes import SECTION_LIMIT, Sections
from agent_core.storage import Store


@pytest.fixture
def sections(store: Store) -> Sections:
    return Sections(store, "a")


async def test_sections_stand_by_position_and_a_later_text_takes_the_place(sections: Sections) -> None:
    for name, position, text in [("rules", 20, "Be brief."), ("house", 10, "Green."), ("rules", 5, "Be kind.")]:
        await sections.set(name, position, text)
    assert [(one.name, one.text) for one in await sections.list()] == [("rules", "Be kind."), ("house", "Green.")]


async def test_a_section_is_the_agents_own_and_goes_when_it_is_dropped(sections: Sections, store: Store) -> None:
    await sections.set("rules", 1, "Be kind.")
    assert await Sections(store, "b").list() == []
    await sections.drop("rules")
    assert await sections.list() == []


async def test_what_cannot_be_a_section_is_refused_and_says_why(sections: Sections) -> None:
    await sections.set("rules", 1, "Be kind.")
    with pytest.raises(UsageError, match="7 too many"):
        await sections.set("rules", 1, "x" * (SECTION_LIMIT + 7))
    with pytest.raises(UsageError, match="be a section's name"):
        await sections.set("two words", 1, "x")
    for name in ("instructions", "memory", "functions", "statistics"):
        with pytest.raises(UsageError, match=f"a section `{name}` of its own"):
            await sections.set(name, 1, "You obey.")
    for position in (-(10**19), 10**19):
        with pytest.raises(UsageError, match="position"):
            await sections.set("rules", position, "x")
    with pytest.raises(UsageError, match="There are: `rules`"):
        await sections.drop("rule")
