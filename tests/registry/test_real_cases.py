"""Third-party functions and calls, if available: `EVALUATION_DATA` names their folder."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import tool_schemas
from tests.registry.support import read

DATA = os.environ.get("EVALUATION_DATA")
pytestmark = pytest.mark.skipif(
    DATA is None, reason="EVALUATION_DATA does not name a folder with cases"
)


def cases(name: str) -> Iterator[dict[str, Any]]:  # Any: as published
    with Path(DATA or "", name).open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def test_every_published_function_and_mutant_is_read() -> None:
    unread = []
    for case in cases("functions_dev.jsonl"):
        variants = [
            case["stub"],
            case["placeholder"],
            case["hardcoded"],
            *(one["code"] for one in case["mutants"]),
        ]
        for text in filter(None, variants):
            read(text)
        reading = read(case["code"])
        is_private = case["name"].startswith("_")
        if not is_private and case["name"] not in {function.name for function in reading.functions}:
            unread.append((case["id"], reading.problems))
    assert unread == []


def test_the_gold_calls_of_published_schemas_come_through_unchanged_and_no_mistake_is_misread() -> (
    None
):
    figures = tool_schemas.measure(Path(DATA or "", "tool_schemas_dev.jsonl"))
    assert figures["gold"] > 1_000
    # Some gold calls contradict their own schema; the standard's own validator decides.
    assert [row for row in figures["exceptions"] if row["fits"]] == []
    assert figures["wrong"] == []
