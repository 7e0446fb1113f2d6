"""Shared by the tests of the prompt and of the commands: programs in subprocesses, and a function to create."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.kit import Script, ScriptedModel, Wanted, scripted
from tests.kit.sources import function_text
from tests.kit.terminal import Terminal, terminal

HERE = str(Path(__file__).resolve().parents[2])
READY = "sandbox full", "sandbox apart", "sandbox core", "SANDBOX OFF"

COUNT_VOWELS = '''def count_vowels(text: str) -> int:
    """Count the vowels in a text.

    Args:
        text: What to look at.

    Examples:
        >>> count_vowels("queueing")
        5
        >>> count_vowels("xyz")
        0
    """
    return sum(letter in "aeiou" for letter in text.lower())
'''
SLOW = "import time\n\n\n" + function_text(
    "slow(self) -> str",
    "Go slowly.",
    'for n in range(4):\n    self.progress(n, 4, "part\\x1b[5m")\n    time.sleep(0.3)\nreturn "done"',
)
NOTHING_LEFT = "No turn of this conversation changed anything that is still there."
FLAWED = COUNT_VOWELS.replace("        0\n", "        7\n")


def create(code: str, name: str = "count_vowels") -> Wanted:
    """Return the model's call that creates a function."""
    arguments = {
        "function_name": name,
        "function_code_with_docstring": code,
        "module_name": "words",
        "reason": "asked",
    }
    return Wanted("create_function", arguments)


def flags(model: ScriptedModel) -> tuple[str, ...]:
    """Return the options that point a command to the scripted model."""
    return "--base-url", model.base_url, "--model", "scripted"


@contextmanager
def prompt(
    script: Script,
    cwd: Path,
    *,
    environment: Mapping[str, str] | None = None,
    columns: int = 80,
    rows: int = 24,
    first: str = "",
) -> Iterator[tuple[Terminal, ScriptedModel]]:
    """Yield a ready prompt and its model; on exit, everything must have followed the script."""
    with (
        scripted(script) as model,
        terminal(
            "run",
            *flags(model),
            cwd=cwd,
            environment=environment,
            columns=columns,
            rows=rows,
            first=first,
        ) as screen,
    ):
        screen.wait_for("/help lists")
        yield screen, model


def leave(screen: Terminal) -> int:
    """Press Ctrl-D and return the exit code."""
    screen.type("\x04")
    return screen.exit_code()
