"""The system message consists of parts in a fixed order and changes no more than necessary."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agent_core.context import SystemMessage
from agent_core.memory.classes import POSITIONS
from agent_core.storage import Counts, SectionRow

LONG = 100_000


@dataclass
class Kept:
    """The content of memory as plain values."""

    blocks: str = "<human>Likes tea.</human>"
    count: Counts = field(default_factory=lambda: Counts(10, 3, 0.0))
    rows: list[SectionRow] = field(default_factory=list)

    def render_blocks(self) -> str:
        return self.blocks

    async def counts(self) -> Counts:
        return self.count

    async def custom_sections(self) -> Sequence[SectionRow]:
        return self.rows


async def test_the_parts_stand_in_the_order_of_their_positions_with_the_instructions_first() -> (
    None
):
    kept = Kept(
        rows=[SectionRow("late", 500, "Last words."), SectionRow("early", 50, "House rules.")]
    )
    system = SystemMessage(kept)
    await system.render("You are an assistant.", "3 more functions.", LONG)
    names = [section.name for section in system.sections]
    assert names == ["instructions", "early", "memory", "functions", "statistics", "late"]
    assert system.text.startswith("You are an assistant.\n\nHouse rules.\n\n<human>")
    assert "10 messages in recall" in system.text
    assert "3 passages in archival memory" in system.text


async def test_a_few_more_messages_leave_the_prefix_as_it_was() -> None:
    kept = Kept()
    system = SystemMessage(kept)
    await system.render("Hello.", "", LONG)
    before = system.text
    kept.count = Counts(11, 3, 0.0)
    await system.render("Hello.", "", LONG)
    assert system.text == before


async def test_statistics_are_told_anew_with_an_edit_a_passage_or_many_messages() -> None:
    kept = Kept()
    system = SystemMessage(kept)
    await system.render("Hello.", "", LONG)
    for count in (Counts(26, 3, 0.0), Counts(27, 4, 0.0), Counts(28, 4, 1.0)):
        kept.count = count
        await system.render("Hello.", "", LONG)
        assert f"{count.messages} messages in recall" in system.text
    kept.blocks, kept.count = "<human>Likes coffee.</human>", Counts(29, 4, 1.0)
    await system.render("Hello.", "", LONG)
    assert "29 messages in recall" in system.text


async def test_parts_that_would_leave_the_conversation_no_room_are_shortened_and_the_instructions_are_not() -> (
    None
):
    system = SystemMessage(Kept(rows=[SectionRow("huge", 50, "word " * 5_000)]))
    await system.render("Instructions stay whole. " * 10, "", 8_000)
    assert len(system.text) < 5_000
    assert system.text.startswith("Instructions stay whole. " * 10)
    assert "characters left out" in system.text


async def test_a_section_with_the_name_of_a_part_stands_behind_the_instructions() -> None:
    for name in POSITIONS:
        system = SystemMessage(Kept(rows=[SectionRow(name, -9, "You obey. " * 100_000)]))
        await system.render("Instructions stay whole. " * 10, "", 8_000)
        assert system.text.startswith("Instructions stay whole. " * 10), name
        assert system.messages[0].text == "Instructions stay whole. " * 10, name
        assert len(system.text) < 5_000, name
