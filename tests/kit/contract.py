"""Files that a test compares with what the program says. A test writes them only under `--renew`.

`tests/contracts/sentences.md` has what people and models read, a section for each text; every other contract is a
whole file. Where the wording itself is meant, it is asserted there. All other tests assert codes and values.
"""

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CONTRACTS = Path(__file__).parents[1] / "contracts"
SENTENCES = CONTRACTS / "sentences.md"
RENEW = "--renew"
COMMAND = f"python -m pytest -q tests/contracts {RENEW}"
_HEAD = f"""\
# What people and models read

Each section is one text as the program says it, made by the test of that name in `test_sentences.py`.
`{COMMAND}` renews this file; the difference is what changed for the reader.
"""
_INDENT = "    "
_COUNT = re.compile(r"\b\d+ calls tried\b")  # as many as the time allows
_TIME = re.compile(r"\b\d[\d,.]* m?s\b")
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d( \d\d:\d\d)?")


@dataclass(frozen=True)
class Contracts:
    """The files below `tests/contracts/`, which are compared, or written if they are renewed."""

    is_renewing: bool

    def check(self, name: str, text: str) -> None:
        """Compare a whole file with what the program says."""
        file = CONTRACTS / name
        if self.is_renewing:
            file.write_text(text, "utf-8")
        _fail([_difference(name, file.read_text("utf-8") if file.exists() else "", text)])

    def check_json(self, name: str, value: Any) -> None:  # Any: a JSON value
        """Compare a file of JSON, written so that a difference is one of lines."""
        self.check(name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    def sentences(self, texts: Mapping[str, str]) -> None:
        """Compare sections of the sentences, by name; a failure shows each that differs."""
        sections = read_sections()
        if self.is_renewing:
            sections.update(texts)
            write_sections(sections)
        differences = [
            _difference(f"{SENTENCES.name}, {name}", sections.get(name, ""), text)
            for name, text in texts.items()
        ]
        _fail(differences)


def said(name: str) -> str:
    """Return the text of a section, for a test in which the text is all that is seen of what happened."""
    return read_sections()[name]


def read_sections() -> dict[str, str]:
    """Return the texts in the file of sentences, by the name of their section."""
    sections: dict[str, str] = {}
    text = SENTENCES.read_text("utf-8") if SENTENCES.exists() else _HEAD
    for part in text.split("\n## ")[1:]:
        name, _, body = part.partition("\n")
        lines = [line.removeprefix(_INDENT) for line in body.strip("\n").split("\n")]
        sections[name] = "\n".join(lines)
    return sections


def write_sections(sections: Mapping[str, str]) -> None:
    """Write the file of sentences."""
    parts = [_HEAD]
    for name, text in sorted(sections.items()):
        lines = [f"{_INDENT}{line}".rstrip() for line in text.split("\n")]
        parts.append("\n".join(["", f"## {name}", "", *lines, ""]))
    SENTENCES.write_text("".join(parts), "utf-8")


def steady(text: str, values: Mapping[str, str]) -> str:
    """Return a text without what differs from run to run: these values by their names, and dates and times."""
    for value, name in values.items():
        text = text.replace(value, name)
    for pattern, name in ((_DATE, "DATE"), (_TIME, "N s"), (_COUNT, "N calls tried")):
        text = pattern.sub(name, text)
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))


def shape(value: Any) -> Any:  # Any: a JSON value
    """Return a JSON document with the types of its values in place of these."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        shapes = [shape(inner) for inner in value]
        return [each for at, each in enumerate(shapes) if each not in shapes[:at]]
    return "null" if value is None else type(value).__name__


def _difference(name: str, kept: str, text: str) -> str:
    lines = difflib.unified_diff(
        kept.split("\n"), text.split("\n"), f"{name}, kept", "said now", lineterm="", n=2
    )
    return "\n".join(lines)


def _fail(differences: Sequence[str]) -> None:
    if any(differences):
        advice = f"This is not what the program says now. If the change is meant: {COMMAND}"
        pytest.fail("\n".join([advice, *filter(None, differences)]), pytrace=False)
