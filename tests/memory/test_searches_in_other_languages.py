"""Words are found by their other forms in German, French and Spanish."""

import json
from pathlib import Path

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
