"""Runs commands one after the other in this process, and prints the exit code and the shape of the JSON of each."""

import io
import json
import sys
from contextlib import redirect_stdout

from agent_core.interfaces.cli import main
from tests.kit.contract import shape


def document(words: list[str]) -> dict[str, object]:
    """Return the exit code of one command, and the shape of each line that it prints."""
    with redirect_stdout(io.StringIO()) as out:
        code = main([*words, "--json"])
    lines = out.getvalue().splitlines()
    return {"exit": code, "lines": shape([json.loads(line) for line in lines])}


if __name__ == "__main__":
    commands = json.load(sys.stdin)
    documents = {" ".join(words): document(words) for words in commands}
    print(json.dumps(documents))
