"""An agent's own sections of its system message."""

import pytest

from agent_core.base.errors import UsageError
from agent_core.memory.classes import SECTION_LIMIT, Sections
from agent_core.storage import Store


@pytest.fixture
def sections(store: Store) -> Sections:
    return Sections(store, "a")


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
