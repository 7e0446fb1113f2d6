"""`python -m benchmarks.tool_schemas PATH [--json]`: the calls of published schemas, unchanged and with mistakes.

Each case of a data file becomes a function's schema. Its gold calls go through the reader that the product uses for a
model's arguments and must come back unchanged. Then each call is repeated with the mistakes that models make. Each of
these is repaired (the value equals the gold call), rejected with the place, the expectation and the given value, or
wrong. A mistake that leaves a valid call of the same function cannot be detected and is counted separately.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import jsonschema

from agent_core.registry import arguments
from agent_core.registry.validation import check_schema

from .mistakes import MISTAKES

TYPES: Final = {
    "dict": "object",
    "float": "number",
    "tuple": "array",
    "any": None,
    "double": "number",
    "long": "integer",
}
_LOOSE: Final = ("optional", "format", "default", "required")
COLUMNS: Final = ("calls", "repaired", "answered", "valid as sent", "silently wrong")


def as_json_schema(
    published: Any, key: str = ""
) -> Any:  # Any: a schema with the type words of its publisher
    """Return the schema in terms of JSON Schema, closed as a function's schema is."""
    if isinstance(published, list):
        return [as_json_schema(part) for part in published]
    if not isinstance(published, dict):
        return published
    if key == "properties":
        return {name: as_json_schema(part) for name, part in published.items()}
    schema = {
        name: part if name == "enum" else as_json_schema(part, name)
        for name, part in published.items()
        if name not in _LOOSE
    }
    kind = TYPES.get(str(schema.pop("type", "any")), published.get("type"))
    schema |= {"type": kind} if kind else {}
    schema |= {"additionalProperties": False} if schema.get("properties") else {}
    return (
        {**schema, "required": published["required"]}
        if isinstance(published.get("required"), list)
        else schema
    )


def accepted(value: Any) -> Any:  # Any: JSON
    """Return the first accepted value of a gold call, recursively, without values that may be left out."""
    if isinstance(value, dict):
        first = {
            name: given[0] if isinstance(given, list) and given else given
            for name, given in value.items()
        }
        return {name: accepted(part) for name, part in first.items() if part != ""}
    return [accepted(part) for part in value] if isinstance(value, list) else value


def is_valid(call: Any, schema: dict[str, Any]) -> bool:
    """Check a call with the standard's own validator."""
    return jsonschema.Draft202012Validator(schema).is_valid(call)


def cases(path: Path) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield the id, schema and gold call of each case."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            schema = as_json_schema(case["parameters"])
            for call in map(accepted, case["gold_calls"] or ()):
                yield case["id"], schema, call


def is_same(left: Any, right: Any) -> bool:
    """Check whether two JSON values are equal; true is not 1."""
    return json.dumps(_even(left), sort_keys=True) == json.dumps(_even(right), sort_keys=True)


def _even(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _even(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_even(part) for part in value]
    return float(value) if type(value) is int and abs(value) < 1 << 50 else value


def outcome(raw: str, schema: dict[str, Any], gold: dict[str, Any]) -> str:
    """Return the column in which a call with a mistake is counted."""
    result = arguments.read(raw, schema)
    if not isinstance(result, dict):
        texts = [problem.message for problem in result]
        is_precise = texts and all("expected" in text and "got" in text for text in texts)
        return "answered" if is_precise else "silently wrong"
    if is_same(result, gold):
        return "repaired"
    try:
        return "valid as sent" if is_valid(json.loads(raw), schema) else "silently wrong"
    except ValueError:
        return "silently wrong"


def measure(path: Path) -> dict[str, Any]:
    """Return the number of gold calls, their exceptions, and the table of mistakes with the wrong cases."""
    gold = 0
    exceptions: list[dict[str, Any]] = []
    wrong: list[dict[str, Any]] = []
    table: dict[str, Counter[str]] = {kind: Counter() for kind in MISTAKES}
    for name, schema, call in cases(path):
        if problem := check_schema(schema):
            exceptions.append({"id": name, "why": problem.message})
            continue
        gold += 1
        result = arguments.read(json.dumps(call), schema)
        if not isinstance(result, dict) or not is_same(result, call):
            why = result if isinstance(result, dict) else [problem.message for problem in result]
            exceptions.append({"id": name, "why": why, "fits": is_valid(call, schema)})
            continue
        for kind, made in MISTAKES.items():
            for raw in made(call, schema):
                column = outcome(raw, schema, call)
                table[kind].update(("calls", column))
                if column == "silently wrong":
                    wrong.append({"id": name, "kind": kind, "sent": raw, "gold": call})
    return {"gold": gold, "exceptions": exceptions, "mistakes": table, "wrong": wrong}


def show(figures: dict[str, Any]) -> None:
    """Print the figures as Markdown."""
    good = figures["gold"] - len(figures["exceptions"])
    print(f"gold calls unchanged: {good} of {figures['gold']}")
    for row in figures["exceptions"]:
        contradicts = "" if row.get("fits", True) else " (the call contradicts its own schema)"
        print(f"- {row['id']}{contradicts}: {row['why']}")
    print(f"\n| mistake | {' | '.join(COLUMNS)} |\n|---|{'---|' * len(COLUMNS)}")
    for kind, counts in figures["mistakes"].items():
        print(f"| {kind} | {' | '.join(str(counts[column]) for column in COLUMNS)} |")
    for row in figures["wrong"][:20]:
        print(f"WRONG {row['kind']} {row['id']}: {row['sent']} for {json.dumps(row['gold'])}")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tool_schemas", description=__doc__)
    parser.add_argument("path", type=Path, help="a file of cases, one JSON object per line")
    parser.add_argument(
        "--json", action="store_true", help="one JSON document instead of the table"
    )
    given = parser.parse_args()
    figures = measure(given.path)
    if given.json:
        print(json.dumps(figures))
    else:
        show(figures)
    sys.exit(1 if figures["wrong"] else 0)


if __name__ == "__main__":
    main()
