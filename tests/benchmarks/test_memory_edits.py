"""The benchmark of edits, on a few invented cases: a script scores right, and mistakes are counted."""

import json
import uuid
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks import memory_edits

FACTS = ["Ann plays chess.", "Bob sails.", "Ann and Bob live in Oslo."]
NEW = {"update": "Ann lives in Rome, while Bob lives in Oslo.", "superseded_facts": [2]}


def _file(tmp_path: Path, *rows: dict[str, object]) -> Path:
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    return path


def test_reads_and_updates_by_the_script_all_come_out_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"facts": FACTS, "question": "Where does Ann live?", "answer": "Oslo"}
    read: dict[str, object] = {"id": "r/1", "task": "core_memory_read", **asked}
    updated: dict[str, object] = {**read, "id": "u/1", "task": "core_memory_update", **NEW}
    memory_edits.main([str(_file(tmp_path, read, updated)), "--json"])
    figures = json.loads(capsys.readouterr().out)
    assert {task: (one["cases"], one["right"]) for task, one in figures.items()} == {
        "core_memory_read": (1, 1),
        "core_memory_update": (1, 1),
    }


def test_a_chain_of_keys_is_followed_to_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = [str(uuid.UUID(int=n << 64 | 7919 * n)) for n in range(1, 31)]
    records = [*pairwise(keys[:5]), *zip(keys[5:17], keys[17:29], strict=True)]
    row = {"id": "kv/1", "hops": 4, "records": records, "ask": keys[0], "answer": keys[4]}
    memory_edits.main([str(_file(tmp_path, row))])
    assert "nested_kv, 4 hops: cases 1, right 1" in capsys.readouterr().out
