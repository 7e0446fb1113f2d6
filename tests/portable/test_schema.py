"""The published schema matches the program's checks."""

import json
import runpy
from pathlib import Path

import jsonschema
from hypothesis import given, settings

from agent_core.storage import WholeAgent
from agent_core.workspace.portable.outward import document_of
from tests.portable.support import agents
from tests.portable.test_files_are_checked import GOOD, changed

PUBLISHED = Path(__file__).parents[2] / "docs" / "agent-file.schema.json"
SCHEMA = jsonschema.Draft202012Validator(json.loads(PUBLISHED.read_text("utf-8")))


def test_the_published_schema_is_that_of_the_program() -> None:
    made = runpy.run_path(str(PUBLISHED.with_name("generate.py")))["agent_file"]()
    assert PUBLISHED.read_text("utf-8") == made, "run: python docs/generate.py"
    jsonschema.Draft202012Validator.check_schema(SCHEMA.schema)


@settings(max_examples=20)
@given(whole=agents())
def test_every_exported_agent_is_valid_by_the_published_schema(whole: WholeAgent) -> None:
    SCHEMA.validate(document_of(whole))


def test_what_the_program_refuses_for_its_shape_the_schema_refuses() -> None:
    SCHEMA.validate(GOOD)
    for path, value in (
        ("version", 2),
        ("agent.name", "../x"),
        ("blocks.0.limit", "ten"),
        ("turns.0.entries.0.payload", {}),
        ("turns.0.entries.1.payload.calls", [{"id": "c"}]),
        ("passages.0.id", 3),
        ("more", []),
    ):
        assert not SCHEMA.is_valid(json.loads(changed(path, value))), path
