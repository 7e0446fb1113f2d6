"""The recall benchmark reads files of both formats and counts the hits."""

import json
from pathlib import Path

from benchmarks.recall import measure, table

TALK = {
    "id": "one",
    "speakers": ["Maria", "Tom"],
    "sessions": [
        {
            "session": number,
            "date_time": f"10:05 am on {number} July, 2023",
            "messages": [
                {
                    "id": f"D{number}:1",
                    "speaker": "Maria",
                    "text": f"I bought a {thing}.",
                    "image_caption": None,
                },
                {
                    "id": f"D{number}:2",
                    "speaker": "Tom",
                    "text": "How lovely!",
                    "image_caption": "a photo of a tree",
                },
            ],
        }
        for number, thing in enumerate(["kayak", "lantern", "violin"], 1)
    ],
    "questions": [
        {
            "question": "What did Maria buy for making music, a violin?",
            "evidence": ["D3:1"],
            "category": 4,
        },
        {"question": "Unanswerable?", "evidence": [], "category": 5},
    ],
}
NOTES = {
    "scenario": "desk",
    "conversations": [
        {"messages": ["The printer is on the third floor.", "Lunch is at noon on every weekday."]}
    ],
    "questions": [{"question": "Where is the printer?", "source": "printer is on the third floor"}],
}


async def test_a_conversation_is_read_with_its_dates_and_speakers(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([TALK]))
    figures = await measure(path, "none")
    assert figures["groups"]["all"] == figures["groups"]["4 one turn"]
    assert figures["groups"]["all"]["questions"] == 1
    assert figures["groups"]["all"]["found"]["@1"] == 100.0


async def test_notes_are_read_as_passages_and_shown_beside_plain_search(tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    path.write_text(json.dumps([NOTES]))
    figures = await measure(path, "none")
    assert figures["groups"]["desk"]["plain"] == {"@1": 100.0, "@5": 100.0, "@10": 100.0}
    assert "| all | 1 | 100.0" in table(figures)
