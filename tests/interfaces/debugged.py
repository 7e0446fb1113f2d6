"""Shared by the tests of the debugger: functions that the model creates, and a prompt with a paused call."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.interfaces.support import prompt
from tests.kit import Script, Wanted
from tests.kit.terminal import Terminal

SCALE = '''def scale(numbers: list[int], factor: int) -> int:
    """Add numbers up, each multiplied by a factor, and end with the count of those that were even.

    Args:
        numbers: What to add.
        factor: By what each is multiplied.

    Examples:
        >>> scale([1, 2], 10)
        31
        >>> scale([], 3)
        0
    """
    total = 0
    even = 0
    for number in numbers:
        total += number * factor
        even += number % 2 == 0
    return total + even
'''
LOOP_LINE = 17
IF_THREE = f"scale:{LOOP_LINE} if number == 3"
CALL = Wanted("scale", {"numbers": [1, 2, 3, 4], "factor": 10})


def written(root: Path, *sources: str) -> None:
    """Write the functions in advance."""
    (root / "knapper.toml").touch()
    (root / "functions").mkdir(exist_ok=True)
    (root / "functions" / "words.py").write_text("\n\n".join(sources or (SCALE,)))


@contextmanager
def standing(
    script: Script,
    root: Path,
    *,
    where: str = IF_THREE,
    environment: Mapping[str, str] | None = None,
    columns: int = 100,
) -> Iterator[Terminal]:
    """Yield a prompt at which the model's call has reached a breakpoint."""
    if not (root / "functions").exists():
        written(root)
    with prompt(script, root, environment=environment, columns=columns) as (screen, _):
        screen.line(f"/break {where}")
        screen.wait_for("● 1: ")
        screen.line("use it")
        screen.wait_for("(debug)")
        yield screen


def does(screen: Terminal, typed: str, shows: str) -> None:
    """Type a command and wait until the screen shows the text below it."""
    screen.do(typed, shows)
