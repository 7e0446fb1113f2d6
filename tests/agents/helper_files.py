"""Shared by the tests of helpers: a workspace with functions and a helper, and models that play both sides."""

from collections.abc import Callable
from pathlib import Path

from tests.kit import Ask, Expect, Say, Script, Seen, Wanted
from tests.kit.desk import VOWELS
from tests.kit.steps import Step

FINDER = """\
purpose = "Say which words of a text have many vowels."
inputs = { text = "str", most = "int = 3" }
result = "list[str]"
functions = ["count_vowels"]
budget = { steps = 4, tokens = 40000, seconds = 60 }
"""
SLUG = '''\


def slug(text: str) -> str:
    """Make a slug of a title.

    Args:
        text: The title.

    >>> slug("A title")
    'a-title'
    >>> slug("One")
    'one'
    """
    return "-".join(text.lower().split())
'''


def write(root: Path, name: str, text: str) -> Path:
    """Save a helper's file in the workspace the way an editor does: write a temporary file and rename it."""
    file = root / "helpers" / f"{name}.toml"
    file.parent.mkdir(exist_ok=True)
    beside = file.with_name(f".{name}.tmp")
    beside.write_text(text, "utf-8")
    beside.replace(file)
    return file


def put(root: Path, name: str = "vowel_finder", text: str = FINDER) -> None:
    """Create the files of a workspace with two functions and one helper."""
    (root / "functions").mkdir(exist_ok=True)
    (root / "functions" / "words.py").write_text(VOWELS + SLUG, "utf-8")
    write(root, name, text)


def call(name: str = "vowel_finder", text: str = "queueing sky") -> Ask:
    """Return the primary agent's call of a helper."""
    return Ask(Wanted(name, {"text": text}))


def give(result: object) -> Ask:
    """Return the helper's result."""
    return Ask(Wanted("give_result", {"result": result}))


def is_helper(seen: Seen) -> bool:
    """Check whether a request comes from a run of a helper."""
    return "give_result" in seen.functions


def one_call(*helper: Step | Callable[[Seen], Step] | Expect, reply: str = "Done.") -> Script:
    """Return the script of a turn in which the primary agent calls the helper once."""
    return [call(), *helper, Say(reply)]
