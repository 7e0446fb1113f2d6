"""`toolwright` and `python -m agent_core`: the way in.

The version is answered before anything else is imported: scripts ask for it often, and must not
wait for a command line parser.
"""

import sys

from . import __version__


def main() -> None:
    """Run the command line and leave with its exit code."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"toolwright {__version__}\n")
        return
    try:
        from .interfaces.cli import main as run  # noqa: PLC0415  (the version must not pay for it)

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # while all is being loaded
        sys.exit("✗ Interrupted.")
    sys.exit(code)


if __name__ == "__main__":
    main()
