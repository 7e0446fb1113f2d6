"""Serves a script from a file: `python -m tests.kit.server SCRIPT.json [PORT]`, then start the command it prints."""

import sys
import threading
from contextlib import suppress
from pathlib import Path

from .play import ScriptedModel
from .steps import read_script

__all__ = ["ScriptedModel"]


def main() -> None:
    """Play a script from a file until interrupted, then report what departed from it."""
    server = ScriptedModel(read_script(Path(sys.argv[1]).read_text()), port=int(sys.argv[2]) if sys.argv[2:] else 0)
    print(f"knapper run --base-url {server.base_url} --model scripted", flush=True)
    with suppress(KeyboardInterrupt):
        threading.Event().wait()
    server.close()
    for text in (*server.errors, *server.refusals):
        print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
