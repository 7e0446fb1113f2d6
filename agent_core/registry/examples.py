"""The doctest examples of a docstring, as data: nothing runs.

Reads what `doctest.DocTestParser` reads, by the same rules, without importing `doctest`, which imports `pdb` and
`unittest` and takes 40 ms. A test compares the two.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from types import MappingProxyType

from agent_core.base import syntax
from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass, replace

from .source import bound_names

_EXAMPLE = re.compile(
    r"""
    (?P<source>
        (?:^(?P<indent> [ ]*) >>>    .*)
        (?:\n           [ ]*  \.\.\. .*)*)
    \n?
    (?P<want> (?:(?![ ]*$)
                 (?![ ]*>>>)
                 .+$\n?
              )*)
    """,
    re.MULTILINE | re.VERBOSE,
)
_TRACEBACK = re.compile(
    r"""
    ^(?P<head> Traceback\ \( (?: most\ recent\ call\ last | innermost\ last ) \) : ) [^\S\n]*+ $
    (?P<stack> .*?)
    ^ (?P<message> \w+ .*)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_OPTION = re.compile(r"#\s*doctest:\s*([^\n\'\"]*)$", re.MULTILINE)
_BLANK = re.compile(r"^[ ]*(#.*)?$")
_SAID = re.compile(r"\w")
_MOST = 1_000  # prompts that are read, because each example holds all of the setup before it
_FAR = 1_000  # lines after the last prompt that are searched for the next one
_NO_OPTIONS: Mapping[str, bool] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Example:
    """A call and its expected result; `raises` holds the last line of an expected traceback."""

    setup: tuple[str, ...]
    call: str
    expected: str
    line: int
    raises: str = ""
    options: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class DoctestEntry:
    """One `>>>` entry as in doctest; `line` counts from 0 in the docstring."""

    source: str
    want: str
    line: int
    raises: str
    options: Mapping[str, bool]


def find(docstring: str) -> Iterator[DoctestEntry]:
    """Yield every `>>>` entry of a docstring, in order.

    Raises:
        ValueError: prompts have different indentation, or no space after them; the message says where.
    """
    text = docstring.expandtabs()
    line, position = 0, 0
    for match in _EXAMPLE.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        indent, shown = len(match["indent"]), match["source"].split("\n")
        for number, text_line in enumerate(shown, line + 1):
            if len(text_line) >= indent + 4 and text_line[indent + 3] != " ":
                prompt = text_line[indent : indent + 3]
                raise ValueError(f"line {number} of the docstring has no space after `{prompt}`")
        _check_indent(shown[1:], " " * indent + ".", line + 1)
        output = match["want"].rstrip().split("\n") if match["want"].strip() else []
        _check_indent(output, " " * indent, line + len(shown))
        source = "\n".join(text_line[indent + 4 :] for text_line in shown)
        want = "".join(f"{text_line[indent:]}\n" for text_line in output)
        if not _BLANK.match(source):
            error = _TRACEBACK.match(want)
            message = error["message"].strip() if error else ""
            words = [
                word
                for option in _OPTION.finditer(source)
                for word in option[1].replace(",", " ").split()
            ]
            options = {word[1:]: word[0] == "+" for word in words if word[0] in "+-"}
            yield DoctestEntry(source, want, line, message, options or _NO_OPTIONS)
        line += text.count("\n", position, match.end())
        position = match.end()


def without_examples(docstring: str) -> str:
    """Return the docstring's text without `>>>` entries and their output."""
    return _EXAMPLE.sub("", docstring.expandtabs()) if ">>>" in docstring else docstring


def read(docstring: str, lines: list[str], start: int, path: str) -> tuple[Example, ...] | Problem:
    """Return the examples of a docstring that begins on line `start` of a file's `lines`.

    An example is an expression or statement with its expected output. Code before it without output is its setup, and
    stays the setup of later examples, as names do in doctest; so do examples that may consume or change the value of
    such a name, or a file. Entries with the directive SKIP are left out; one that leaves its whole output open is only
    setup.
    """
    if ">>>" not in docstring:
        return ()
    try:
        prompts = list(islice(find(docstring), _MOST))
    except ValueError as error:
        fix = "write `>>> call(…)` with a space after each prompt, and its output under it, indented alike"
        if r"\n" in "".join(lines[start - 1 : start - 1 + docstring.count("\n") + 1]):
            fix += r"; a `\n` in a docstring is a line break: write `\\n` in an example"
        return Problem("malformed-example", str(error), Place(path, start), fix, "warns")
    line = start - 1
    found: list[Example] = []
    setup: list[tuple[str, _Shape]] = []
    bound: frozenset[str] = frozenset()
    for index, prompt in enumerate(prompts):
        # Escapes and continued lines shift the docstring's own count of lines.
        guess, shown = start + prompt.line, ">>> " + prompt.source.split("\n", 1)[0].strip()
        nearby = [guess, *range(line + 1, min(guess + 50, line + 1 + _FAR, len(lines) + 1))]
        line = next((at for at in nearby if 0 < at <= len(lines) and shown in lines[at - 1]), guess)
        if prompt.options.get("SKIP"):
            continue
        shape = _shape(prompt.source)
        is_last = index == len(prompts) - 1
        is_shown = bool(prompt.want) or (shape.is_expression and is_last)
        if is_shown and not _is_open(prompt):
            expected = "" if prompt.raises else prompt.want
            options = tuple(sorted(prompt.options.items()))
            before = _before(setup, shape, bound)
            found.append(
                Example(before, prompt.source.strip(), expected, line, prompt.raises, options)
            )
            if prompt.raises or not (shape.binds or shape.changes & bound or shape.acts):
                continue
        setup.append((prompt.source, replace(shape, changes=shape.changes & bound)))
        bound = (bound | shape.binds) - shape.fixes
    return tuple(found)


def _is_open(entry: DoctestEntry) -> bool:
    """Check whether an entry agrees with any output of its form: what its ellipses leave says nothing."""
    return bool(entry.options.get("ELLIPSIS")) and not _SAID.search(entry.want.replace("...", ""))


def _before(
    setup: list[tuple[str, "_Shape"]], shape: "_Shape", bound: frozenset[str]
) -> tuple[str, ...]:
    """Return the setup of an example: code that binds names, and examples that may have changed what it uses.

    Changes through another name count as well, as when a `writer` changes its `buffer`.
    """
    ties = [(earlier.binds | earlier.uses) & bound for _, earlier in setup if earlier.binds]
    used = shape.uses & bound
    while (more := used.union(*(tie for tie in ties if tie & used))) != used:
        used = more
    return tuple(
        source
        for source, earlier in setup
        if not earlier.is_expression
        or earlier.binds
        or earlier.acts
        or not earlier.changes.isdisjoint(used)
    )


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a source is and does: whether it is an expression, and the names that it uses and binds.

    `fixes` are bound names with immutable values (text, numbers); `changes` are names of values that it may change.
    It `acts` if it may also change what has no name, as `Path("a.txt").write_text("x")` does.
    """

    is_expression: bool = False
    uses: frozenset[str] = frozenset()
    binds: frozenset[str] = frozenset()
    fixes: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    acts: bool = False


@lru_cache(maxsize=4096)
def _shape(source: str) -> _Shape:
    try:
        tree = syntax.parse(source.strip())
    except SyntaxError:
        return _Shape()
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    binds = set().union(*map(bound_names, tree.body))
    is_expression = len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr)
    fixes = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    changes = {node.id for call in calls for node in ast.walk(call) if isinstance(node, ast.Name)}
    uses = {node.id for node in names}
    acts = any(
        isinstance(call.func, ast.Attribute) and not isinstance(call.func.value, ast.Constant)
        for call in calls
    )
    return _Shape(
        is_expression, frozenset(uses), frozenset(binds), frozenset(fixes), frozenset(changes), acts
    )


def _check_indent(lines: list[str], prefix: str, line: int) -> None:
    for number, text in enumerate(lines, line + 1):
        if text and not text.startswith(prefix):
            raise ValueError(
                f"line {number} of the docstring is indented less than its `>>>`: `{text}`"
            )
