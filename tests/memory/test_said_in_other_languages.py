"""What is said already, and what is denied, in blocks in German, French and Spanish: as in English."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core.memory.classes import ChatMemory
from tests.conftest import OpenDesk
from tests.kit.program import knapper
from tests.memory.blocks.conftest import By

ROWS = [json.loads(row) for row in (Path(__file__).parents[1] / "data" / "said.jsonl").read_text("utf-8").splitlines()]
LANGUAGES = sorted({row["language"] for row in ROWS})


def outcome(memory: ChatMemory, old: str, new: str) -> str:
    """What became of a block with one line when another was added: the same, denied, or new."""
    memory.blocks[-1].value = old
    answer = memory.core_memory_append("human", new)
    if answer.startswith("Already there"):
        return "same"
    return "new" if old in memory["human"].lines else "denied"


def wrong(language: str) -> Iterator[tuple[str, str, str]]:
    """The rows of a language that come out otherwise."""
    for row in (row for row in ROWS if row["language"] == language):
        came = outcome(ChatMemory(), row["old"], row["new"])
        if came != row["is"]:
            yield row["old"], row["new"], came


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_said_already_or_denied_is_told_as_in_english(language: str) -> None:
    assert [*wrong(language)] == []


@pytest.mark.parametrize(("language", "lines"), [("auto", 2), ("de", 1)])
async def test_a_language_that_is_set_reads_lines_whose_words_do_not_tell(
    at_desk: OpenDesk, language: str, lines: int
) -> None:
    desk = await at_desk([], memory__language=language)
    blocks = (await desk.workspace.agent("blank", memory=ChatMemory())).memory.blocks
    for content in ("Raucht Pfeife", "Anwenderin raucht Pfeife"):
        await blocks.commit(await blocks.call("core_memory_append", {"name": "human", "content": content}, By()))
    assert len(blocks.memory["human"].lines) == lines


def test_a_language_that_is_none_of_the_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    done = knapper("memory", "show", cwd=tmp_path, environment={"KNAPPER_MEMORY_LANGUAGE": "klingon"})
    assert (done.returncode, "memory.language" in done.stderr) == (2, True), done.stderr
