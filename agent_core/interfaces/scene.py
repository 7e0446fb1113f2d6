"""What every command is given, and how it answers: results on standard output, talk on standard error."""

import functools
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from agent_core.untrusted import in_json

from .spans import Line, line
from .wrap import write


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a command works and how it answers."""

    root: Path
    as_json: bool

    def result(self, document: Any, lines: Iterable[Line]) -> None:  # Any: a JSON document of a published shape
        """Print what was asked for: the document for scripts, the lines for people."""
        if self.as_json:
            print_json(document)
        else:
            write(lines, sys.stdout)

    def talk(self, *sentences: str) -> None:
        """Tell the human something that is not the result."""
        write([line(("dim", sentence)) for sentence in sentences], sys.stderr)

    def hint(self, sentence: str) -> None:
        """Name the next thing to type; a script does not need it."""
        if not self.as_json:
            self.talk(sentence)


Command = Callable[..., int | None]


def scene(command: Command) -> Command:
    """Give a command `--json` and `--workspace`, and its Scene as first argument."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")
    @click.option(
        "--workspace",
        "-C",
        "root",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="The workspace, if not the current folder.",
    )
    @functools.wraps(command)
    def prepared(as_json: bool, root: Path | None, **given: Any) -> int | None:  # noqa: FBT001  (click hands it in)
        above = click.get_current_context().find_root().params
        return command(Scene(root or above.get("root") or Path(), as_json or bool(above.get("as_json"))), **given)

    return prepared


def print_json(document: Any) -> None:  # Any: a JSON document of a published shape
    """One JSON document on one line of standard output."""
    sys.stdout.write(in_json(json.dumps(document, ensure_ascii=not _takes_unicode(), default=str)) + "\n")
    sys.stdout.flush()


def _takes_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
