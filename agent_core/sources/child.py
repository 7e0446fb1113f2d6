"""The process in which sources are read: bounded in memory, without a key, a network's use or a file to write.

It speaks with `reading.py`: a line of JSON and so many bytes in; lines of JSON out, the last of which says so.
"""

import json
import resource
import sys
from typing import Any, BinaryIO, Final

from .errors import Unreadable
from .kinds import read

_MEMORY: Final = 1 << 30
_FILES: Final = 32
_LINE: Final = 128
_TROUBLE: Final = "It cannot be read: {}."


def main() -> None:
    """Read what is asked for until nobody asks any more."""
    _bound()
    given, out = sys.stdin.buffer, sys.stdout.buffer
    while line := given.readline():
        order = json.loads(line)
        for answer in _answers(order, given.read(order["size"])):
            _say(out, answer)


def _answers(order: dict[str, Any], data: bytes) -> list[dict[str, Any]]:  # Any: JSON
    try:
        found = read(order["name"], data, order["content_type"])
    except Unreadable as error:
        return [{"error": error.message, "mend": error.mend}]
    except MemoryError:
        return [{"error": "Reading it takes more memory than is given.", "mend": "Divide it."}]
    except RecursionError:
        return [{"error": _TROUBLE.format("it is nested too deep"), "mend": ""}]
    rows = [[chunk.text, chunk.place] for chunk in found.chunks]
    lines: list[dict[str, Any]] = [{"chunks": rows[at : at + _LINE]} for at in range(0, len(rows), _LINE)]
    return [*lines, {"kind": found.kind, "notes": found.notes}]


def _say(out: BinaryIO, answer: dict[str, Any]) -> None:  # Any: JSON
    out.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    out.flush()


def _bound() -> None:
    sys.setrecursionlimit(2_000)
    for kind, limit in (
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, _FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))


if __name__ == "__main__":
    main()
