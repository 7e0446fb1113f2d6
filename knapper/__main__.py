"""The entry point of `knapper` and `python -m knapper`.

The version is answered before anything else is imported: scripts ask for it often, and must not
wait for a command line parser.
"""

import io
import os
import sys

from agent_core import __version__
from agent_core.base.own_environment import enter


class _NamedStream(io.TextIOWrapper):
    """A standard stream whose errors name it, as those of files do."""

    def __init__(self, stream: io.TextIOWrapper, errors: str) -> None:
        encoding, at_lines, at_once = stream.encoding, stream.line_buffering, stream.write_through
        super().__init__(
            stream.detach(), encoding, errors, line_buffering=at_lines, write_through=at_once
        )

    def write(self, text: str) -> int:
        """Write a text, of which a failed write may leave nothing in the buffer."""
        try:
            return super().write(text)
        except OSError as error:
            error.filename = self.name
            raise

    def flush(self) -> None:
        """Write what is in the buffer."""
        try:
            super().flush()
        except OSError as error:
            error.filename = self.name
            raise


def main() -> None:
    """Run the command line and exit with its exit code."""
    # Whoever starts a program without a standard stream means nothing by it; a file of ours must not get its number.
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(
                os.devnull, os.O_RDWR
            )  # takes the lowest number that is free, which is this one
            setattr(
                sys,
                name,
                os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False),
            )
    if isinstance(
        sys.stdout, io.TextIOWrapper
    ):  # a character that the locale does not have becomes a question mark
        sys.stdout = _NamedStream(sys.stdout, "replace")
        setattr(sys, "__stdout__", sys.stdout)  # noqa: B010 - final for type checkers; the terminal's size is asked there
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _NamedStream(sys.stderr, "backslashreplace")
        setattr(sys, "__stderr__", sys.stderr)  # noqa: B010 - as above
    if isinstance(
        sys.stdin, io.TextIOWrapper
    ):  # who reads a line that is not text in UTF-8 can say so
        sys.stdin.reconfigure(errors="surrogateescape")
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"knapper {__version__}\n")
        return
    enter()
    try:
        from knapper.shell.cli import main as run  # noqa: PLC0415  (the version must not pay for it)

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # while all is being loaded
        sys.exit("✗ Interrupted.")
    sys.exit(code)


if __name__ == "__main__":
    main()
