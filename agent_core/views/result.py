"""The result of a command: a document for scripts, and lines for people."""

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agent_core.base.records import dataclass, to_json
from agent_core.base.untrusted import in_json

if TYPE_CHECKING:
    from .styled_lines import Line, Table


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a command: a document for scripts, lines for people, and the exit code.

    A document of None and no lines print nothing. `before`, `aside` and `hint` go to standard error; scripts do not get
    `hint`.
    At the prompt, the source is colored, and the table can be browsed in place of the lines.
    """

    document: Any  # Any: a JSON document of a published shape
    lines: Sequence["Line"] = ()
    hint: str = ""
    code: int = 0
    aside: Sequence["Line"] = ()
    source: tuple[str, int, Sequence[int]] | None = None
    table: "Table | None" = None
    before: Sequence["Line"] = ()


def print_json(result: object) -> None:
    """Print the published JSON form of a result as one line on standard output."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    sys.stdout.write(
        in_json(json.dumps(to_json(result), ensure_ascii=encoding != "utf8", default=str)) + "\n"
    )
    sys.stdout.flush()
