"""Words are found by their other forms in German, French and Spanish, also in the contents of an older file."""

import json
from pathlib import Path

import apsw

from agent_core import Settings, Workspace
from agent_core.base.settings import MemorySettings
from agent_core.storage.sqlite.connection import MIGRATIONS
from tests.conftest import OpenDesk

QUERIES = json.loads((Path(__file__).parents[1] / "data" / "stems.json").read_text("utf-8"))
LEAST = 0.9


async def test_a_word_is_found_by_another_form_of_it(at_desk: OpenDesk) -> None:
    desk = await at_desk([], memory__embedding="none")
    for language, pairs in QUERIES.items():
        memory = (await desk.workspace.agent(language)).memory
        for _, sentence in pairs:
            await memory.blocks.commit(await memory.archival.insert(sentence))
        right = 0
        for query, sentence in pairs:
            page = await memory.archival.search(query)
            right += bool(page.items) and page.items[0].text == sentence
        assert right >= LEAST * len(pairs), (language, right)


NEWER = ("thread", "spending", "message", "paused", "block_access", "token", "state", "exposure", "tended", "seen")
"""The tables that later versions created."""


async def test_a_file_of_an_earlier_version_is_indexed_anew(tmp_path: Path) -> None:
    settings = Settings(memory=MemorySettings(embedding="none"))
    async with Workspace.open(tmp_path, settings=settings) as workspace:
        agent = await workspace.agent("blank")
        await agent.memory.blocks.commit(await agent.memory.archival.insert("Die Häuser stehen am Fluss und sind alt."))
    db = apsw.Connection(str(tmp_path / ".knapper" / "state.db"))
    db.execute("insert into passage_words (passage_words) values ('delete-all')")
    for name in NEWER:
        db.execute(f"drop table {name}")
    for table, column in (("turn", "streamed"), ("intent", "tended"), ("intent", "seal")):
        db.execute(f"alter table {table} drop column {column}")
    db.execute("drop index change_kept_out")
    db.execute("alter table change drop column kept_out")
    db.execute("drop table approval")
    for name in ("0003_sketch.sql", "0004_grants.sql"):  # later versions dropped or renamed these tables
        db.execute((MIGRATIONS / name).read_text("utf-8"))
    db.execute("pragma user_version = 10")
    db.close()
    async with Workspace.open(tmp_path, settings=settings) as workspace:
        page = await (await workspace.agent("blank")).memory.archival.search("Haus")
    assert [item.text for item in page.items] == ["Die Häuser stehen am Fluss und sind alt."]
