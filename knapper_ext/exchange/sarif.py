"""Verdicts as a SARIF 2.1.0 log, which editors and code scanning services read.

Rejections are errors, warnings are warnings, and fixes are notes with their changes. The format follows GitHub's code
scanning: rules with descriptions, one location per result, relative URIs, fingerprints.
"""

import hashlib
import json
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from agent_core import __version__
from agent_core.base.matching import compare
from agent_core.base.plain_files import read_named_text
from sandbox.wire.lines import lines_of

if TYPE_CHECKING:  # for annotations
    from agent_core.functions.service.judgment import Judgment


Document: TypeAlias = dict[str, Any]  # Any: JSON of SARIF

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"refuses": "error", "warns": "warning"}
_BASE = "SRCROOT"


class SarifLog:
    """A log with one run."""

    def __init__(self, root: Path, finder: str = "gate") -> None:
        """Begin a log of the findings of the `finder`."""
        self._finder = finder
        self._root = root.resolve()
        self._found: list[Document] = []
        self._rules: dict[str, Document] = {}
        self._seen: Counter[str] = Counter()

    def add(self, judgment: "Judgment") -> None:
        """Add the results of one verdict."""
        for problem in judgment.problems:
            advice = f" — {problem.fix}" if problem.fix else ""
            message = f"{problem.message}{advice}"
            level = _LEVELS[problem.severity]
            place = problem.where.line or 1, problem.where.column
            self._found.append(self._result(judgment, problem.code, level, message, place))
        for number, fix in enumerate(judgment.fixes):
            result = self._result(
                judgment, f"fix/{fix.code}", "note", f"The gate {fix.message}.", (1, 0)
            )
            if number == 0 and (replacement := self._fix(judgment)):
                result["fixes"] = [replacement]
            self._found.append(result)

    def text(self, *, whole: bool = True) -> str:
        """Return the log, which says whether everything requested was judged."""
        rules = list(self._rules.values())
        run = {
            "results": self._found,
            "tool": {
                "driver": {
                    "name": "Knapper",
                    "version": __version__,
                    "semanticVersion": __version__,
                    "rules": rules,
                }
            },
            "columnKind": "unicodeCodePoints",
            "originalUriBaseIds": {
                _BASE: {"description": {"text": "The folder in which the check ran."}}
            },
            "invocations": [{"executionSuccessful": whole}],
        }
        return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})

    def _result(
        self, judgment: "Judgment", code: str, level: str, message: str, place: tuple[int, int]
    ) -> Document:
        file, row = _file_of(judgment.path)
        region: Document = {"startLine": row or place[0]}
        if place[1] and not row:
            region["startColumn"] = place[1]
        name = judgment.name
        # The fingerprint uses the text of the line, not its number, so that it is stable when lines move.
        lines = _lines_of(file)
        line = lines[region["startLine"] - 1].strip() if region["startLine"] <= len(lines) else ""
        text = "\0".join((Path(file).name, name, code, line))
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._seen[digest] += 1
        return {
            "ruleId": code,
            "ruleIndex": self._rule(code, level),
            "level": level,
            "message": {"text": f"{name}: {message}" if name else message},
            "locations": [
                {
                    "physicalLocation": {"artifactLocation": self._address(file), "region": region},
                    "logicalLocations": [
                        {"name": name or Path(file).stem, "kind": "function" if name else "module"}
                    ],
                }
            ],
            "partialFingerprints": {"primaryLocationLineHash": f"{digest}:{self._seen[digest]}"},
        }

    def _rule(self, code: str, level: str) -> int:
        if code not in self._rules:
            words = code.removeprefix("fix/").replace("-", " ")
            verb = f"What the {self._finder} {'fixes' if code.startswith('fix/') else 'finds'}"
            self._rules[code] = {
                "id": code,
                "name": "".join(word.capitalize() for word in words.split()),
                "shortDescription": {"text": words},
                "fullDescription": {"text": f"{verb}: {words}."},
                "help": {"text": "Each result says what is wrong there and how it is fixed."},
                "defaultConfiguration": {"level": level},
                "properties": {"tags": ["function", self._finder]},
            }
        return list(self._rules).index(code)

    def _address(self, file: str) -> Document:
        path = Path(file).resolve()
        if path.is_relative_to(self._root):
            return {"uri": quote(path.relative_to(self._root).as_posix()), "uriBaseId": _BASE}
        return {"uri": path.as_uri()}

    def _fix(self, judgment: "Judgment") -> Document | None:
        """Return all fixes of a function as one change, if its source is in a `.py` file."""
        file, row = _file_of(judgment.path)
        before = _lines_of(file)
        after = lines_of(judgment.source)
        if row or not before or not after:
            return None
        changes = [
            {
                "deletedRegion": {
                    "startLine": start + 1,
                    "startColumn": 1,
                    "endLine": end + 1,
                    "endColumn": 1,
                },
                "insertedContent": {"text": "".join(after[low:high])},
            }
            for tag, start, end, low, high in compare(before, after).opcodes
            if tag != "equal"
        ]
        change = {"artifactLocation": self._address(file), "replacements": changes}
        description = "; ".join(fix.message for fix in judgment.fixes)
        return (
            {"description": {"text": f"The gate {description}."}, "artifactChanges": [change]}
            if changes
            else None
        )


def _file_of(path: str) -> tuple[str, int]:
    """Return the file of a verdict, and its line if that is a `.jsonl` file."""
    file, _, row = path.rpartition(":")
    return (file, int(row)) if file and row.isdigit() else (path, 0)


@lru_cache(maxsize=4)  # verdicts come file by file
def _lines_of(file: str) -> tuple[str, ...]:
    try:
        return tuple(lines_of(read_named_text(file))) if file.endswith(".py") else ()
    except (OSError, UnicodeDecodeError):
        return ()
