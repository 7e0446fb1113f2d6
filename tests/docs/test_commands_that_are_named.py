"""Each command in a page or a hint exists in the program, with its options and the right number of words."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from knapper.shell.cli import knapper

ROOT: Final = Path(__file__).parents[2]
ROOMS: Final = ("agent_core", "knapper", "knapper_ext", "meta_functions", "sandbox")
PAGES: Final = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "examples").rglob("*.md"),
]
BLOCK: Final = re.compile(r"^ *```[a-z]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
IN_BLOCK: Final = re.compile(r"^ *(?:\$ |[A-Z_]+=\S+ |.*(?:&& |\| |\$\())*(knapper .*)$")
QUOTED: Final = re.compile(r"`(knapper [^`]+)`")
IN_HINT: Final = re.compile(r"(?:^|[:,] |\n)(knapper [a-z].*?)(?=$|\n|[;`]|, | \(|\. |: )")
ENDS: Final = {"&&", "|", "||", ">", ">>", "<", ";", "&", "2>"}
PLACE: Final = re.compile(r"[^a-z]*[A-Z…][A-Z_…]*[^a-z]*|.*[…{].*")
UNFOLLOWED: Final = {
    "CHANGELOG.md",
    "reference.md",
}  # of the past; generated from the commands themselves
MISTAKEN: Final = (
    "knapper function list",
    "knapper functions lst",
    "knapper run --modl local",
    "knapper helpers show one two",
    "knapper functions grant weather --hosts api.example.org",
    "knapper agents import",
)


def of_page(page: Path) -> Iterator[tuple[str, bool]]:
    """Yield the commands of a page, and whether each is there to be typed."""
    text = page.read_text("utf-8")
    for block in BLOCK.findall(text):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            if found := IN_BLOCK.match(line):
                yield found[1], True
    for quoted in QUOTED.findall(BLOCK.sub("", text)):
        yield " ".join(quoted.split()), False


def of_module(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the commands in the strings of a module, with `{}` for placeholders."""
    source = path.read_text("utf-8")
    nodes = [*ast.walk(ast.parse(source))] if "knapper " in source else []
    apart = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    apart |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # docstrings
    for node in nodes:
        if id(node) in apart:
            continue
        text = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
            )
        if "knapper " in text:
            quoted = QUOTED.findall(text)
            yield from ((" ".join(command.split()), False) for command in quoted)
            yield from ((command, True) for command in IN_HINT.findall(QUOTED.sub("", text)))


def words_of(command: str) -> list[str]:
    """Return the words of one command, without shell redirections and comments."""
    command = (
        re.sub(r"\[([^][]*)\]", "", command)
        if "[OPTIONS]" in command or " [" in command
        else command
    )
    command = command.rstrip(".,:)")
    try:
        words = shlex.split(command, comments=True)
    except ValueError:  # a string that continues elsewhere
        words = shlex.split(command.replace('"', "").replace("'", ""), comments=True)
    words = words[:-1] if command.endswith(" …") else words
    ends = [
        at for at, word in enumerate(words) if word in ENDS or word.startswith((">", "2>", "<"))
    ]
    return words[1 : min(ends, default=len(words))]


def wrong_with(command: str, *, is_typed: bool) -> str:
    """Return why the program would not accept a command; "" if it does, perhaps without its optional placeholders."""
    words = words_of(command)
    filled = sum(word == "{}" for word in words)
    reasons = [reason(_less(words, count), is_typed=is_typed) for count in range(filled + 1)]
    return reasons[0] if all(reasons) else ""


def _less(words: list[str], count: int) -> list[str]:
    """Return the words without the last `count` placeholders."""
    places = [at for at, word in enumerate(words) if word == "{}"]
    return [word for at, word in enumerate(words) if at not in places[len(places) - count :]]


def reason(words: list[str], *, is_typed: bool) -> str:
    """Return why the program would not accept these words."""
    group: click.Command = knapper
    parent: click.Context | None = None
    try:
        while isinstance(group, click.Group):
            with group.make_context(group.name, list(words), parent=parent) as parent:
                words = [*parent._protected_args, *parent.args]
                if not words or PLACE.fullmatch(words[0]):
                    break  # a group, or any of its subcommands
                _, next_one, words = group.resolve_command(parent, words)
                assert next_one is not None
                group = next_one
        else:
            group.make_context(group.name, list(words), parent=parent)
    except click.MissingParameter as error:
        return (
            str(error) if is_typed else ""
        )  # a page may mention a command by its name, or an option
    except click.BadOptionUsage as error:
        return error.format_message() if is_typed else ""
    except click.BadParameter as error:
        given = next((word for word in words if word in str(error)), "")
        is_place = PLACE.fullmatch(given) or "does not exist" in str(error)
        return "" if is_place else f"{error.param and error.param.name}: {error.format_message()}"
    except (click.exceptions.NoArgsIsHelpError, click.exceptions.Exit):
        return ""  # like `--help`
    except click.ClickException as error:
        return error.format_message()
    return ""


def test_each_command_of_a_page_or_a_hint_is_taken() -> None:
    pages = [page for page in PAGES if page.name not in UNFOLLOWED]
    modules = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    named = {(path.name, text) for path in pages for text in of_page(path)}
    hinted = {(path.name, text) for path in modules for text in of_module(path)}
    assert len(named) > 100
    assert len(hinted) > 100
    rows = sorted(named | hinted)
    assert [
        (name, text, why)
        for name, (text, whole) in rows
        if (why := wrong_with(text, is_typed=whole))
    ] == []
    for text in MISTAKEN:
        assert wrong_with(text, is_typed=True), text
