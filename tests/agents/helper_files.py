"""What the tests of helpers share: a workspace with functions and a helper, and models that play both sides."""

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
    """A helper's file in the workspace, saved as an editor does it."""
    file = root / "helpers" / f"{name}.toml"
    file.parent.mkdir(exist_ok=True)
    beside = file.with_name(f".{name}.tmp")
    beside.write_text(text, "utf-8")
    beside.replace(file)
    return file


def put(root: Path, name: str = "vowel_finder", text: str = FINDER) -> None:
    """A workspace with two functions and one helper."""
    (root / "functions").mkdir(exist_ok=True)
    (root / "functions" / "words.py").write_text(VOWELS + SLUG, "utf-8")
    write(root, name, text)


def call(name: str = "vowel_finder", text: str = "queueing sky") -> Ask:
    """The primary calls a helper."""
    return Ask(Wanted(name, {"text": text}))


def give(result: object) -> Ask:
    """The helper gives its result."""
    return Ask(Wanted("give_result", {"result": result}))


def is_helper(seen: Seen) -> bool:
    """Whether a request comes from a run of a helper."""
    return "give_result" in seen.functions


def as_either(primary: Callable[[Seen], Step], helper: Callable[[Seen], Step]) -> Callable[[Seen], Step]:
    """A step of whoever asks."""
    return lambda seen: helper(seen) if is_helper(seen) else primary(seen)


def one_call(*helper: Step | Callable[[Seen], Step] | Expect, reply: str = "Done.") -> Script:
    """A turn in which the primary calls the helper once."""
    return [call(), *helper, Say(reply)]
