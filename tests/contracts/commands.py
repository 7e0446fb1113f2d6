"""Runs commands one after the other in one process, and prints what came of each: a start of its own takes longer."""

import io
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from knapper.shell.cli import main
from tests.kit.program import python


def run_commands(
    commands: Sequence[Sequence[str]], cwd: Path, environment: Mapping[str, str]
) -> list[tuple[int, str, str]]:
    """Return the exit code, the output and the errors of each command."""
    module = "tests.contracts.commands"
    done = python(module, cwd=cwd, given=json.dumps(commands), environment=environment)
    assert done.returncode == 0, done.stderr
    rows: list[Any] = json.loads(done.stdout)  # Any: JSON
    return [(code, out, err) for code, out, err in rows]


def _run(words: list[str]) -> tuple[int, str, str]:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(words)
    return code, out.getvalue(), err.getvalue()


if __name__ == "__main__":
    print(json.dumps([_run(words) for words in json.load(sys.stdin)]))
