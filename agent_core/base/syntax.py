"""Source text: its parsing, and the characters that it may contain, so that it reads as it runs.

`parse` is the only way from a text to a tree in the host. It holds a text to limits within which each later step is
quick: no tree is so deep that a recursive walk fails, and none so large that reading it blocks the event loop for long.
`read` is `parse` for what somebody else wrote: a file, a candidate, a program. It also rejects hidden characters.

Python is parsed one text at a time: CPython 3.11 counts the depth of a tree for all threads together, and two
concurrent parses can raise `SystemError: AST constructor recursion depth mismatch` (python/cpython#106905).

Rejected in a source, unless escaped in a string, and in the names of files and grants: line ends that Python does not
recognize, control, format and bidirectional characters, invisible blanks, variation selectors that follow no symbol,
private-use characters, and lone surrogates. Letters of every script, signs and emoji are plain text; so is a joiner
where Unicode makes it a part of an emoji or of a word, because its neighbors look different without it. Elsewhere, as
between Latin letters, it hides, and Python takes none in a name.
"""

import ast
import gc
import re
import symtable
import threading
import tokenize
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypeVar, cast, overload

from sandbox.wire.lines import bare_lines, first_lines, place_of, reader_of

from .late import LateModule
from .records import dataclass
from .untrusted import CONTROLS, UNSEEN, one_line

if TYPE_CHECKING:
    import regex
else:
    regex = LateModule("regex")

P = ParamSpec("P")
T = TypeVar("T")
MAX_TOKENS: Final = 40_000
"""The limit of tokens in a parsed text, with statements and fields weighted; this many take 0.06 s."""
MAX_DEPTH: Final = 100
"""The levels of a tree: of 3,000 files of the standard library and of packages, none has more than 86.

A link of a chain of operators, `elif`s or conditional expressions is half a level: tables of strings and long decisions
are written so. No walk needs more than three frames for a link (six for a level), of the thousand that Python allows.
"""
MAX_PARAMETERS: Final = 255
"""The parameters of one function."""
MAX_MODULE_NAME: Final = 1_000
"""The characters of the name of a module that is imported; each name that is imported from it is shown with it."""
# Strings and comments, which the parser skips quickly, then the tokens that take time.
# Before Python 3.11.5, `*+` around a lookahead ends too early.
_TOKEN: Final = re.compile(
    r'''"""(?:[^"\\]++|\\.|"(?!""))*(?:""")?|"(?:[^"\\\n]|\\.)*+"?'''
    r"""|'''(?:[^'\\]++|\\.|'(?!''))*(?:''')?|'(?:[^'\\\n]|\\.)*+'?|#[^\n]*+|\s++|(\w++|[^\w\s])""",
    re.DOTALL,
)
_FIELDS: Final = re.compile(r"\b[rR]?[fF][rR]?['\"]")
# In tokens: a statement adds nodes, and a field of an f-string is parsed separately.
_OF_A_STATEMENT, _OF_A_FIELD = 2, 12
# Python refuses decimal numbers of more than 4,300 digits; in another notation, they fail when they are shown.
_HUGE_NUMBER: Final = re.compile(r"0[xXoObB][0-9a-fA-F_]{3500}")
_SCOPE: Final = re.compile(r"\b(?:def|class|lambda|for)\b")
_WORD: Final = re.compile(r"\w+")
_FEW_SCOPES, _MAX_NAMES_IN_SCOPES = 300, 4_000_000
_ONE_AT_A_TIME = threading.Lock()


class TreeRoom:
    """The memory for trees and for what is derived from them, which caches keep.

    A node takes about 700 bytes. Once trees with more nodes than there is room for were parsed, all these caches begin
    anew: how many texts somebody hands in, and how dense they are, does not matter.
    """

    def __init__(self, most_nodes: int) -> None:
        self._most_nodes = most_nodes
        self._nodes = 0
        self._caches: list[Callable[[], None]] = []

    def kept(self, maxsize: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Cache a function whose arguments or results hold parts of trees, as `lru_cache` does."""

        def cached(work: Callable[P, T]) -> Callable[P, T]:
            cache = lru_cache(maxsize=maxsize)(work)
            self._caches.append(cache.cache_clear)
            return cast("Callable[P, T]", cache)

        return cached

    def take(self, nodes: int) -> None:
        """Count the nodes of a tree that was parsed, and make room for them."""
        self._nodes += nodes
        if self._nodes > self._most_nodes:
            self._nodes = nodes
            for clear in self._caches:
                clear()


tree_room: Final = TreeRoom(most_nodes=150_000)


class BeyondLimits(SyntaxError):
    """A text beyond a limit of `parse`: `code` names the limit, `fix` says what to do."""

    def __init__(self, code: str, message: str, fix: str, line: int = 0) -> None:
        super().__init__(message, (None, line, 0, None))
        self.code = code
        self.fix = fix


@overload
def parse(text: str, filename: str = ..., mode: Literal["exec"] = ...) -> ast.Module: ...
@overload
def parse(text: str, filename: str = ..., *, mode: Literal["eval"]) -> ast.Expression: ...
@overload
def parse(text: str, filename: str, mode: str) -> ast.Module | ast.Expression: ...
def parse(text: str, filename: str = "<unknown>", mode: str = "exec") -> ast.AST:
    """Return the tree of a text within the limits, without printing warnings about bad escapes.

    Raises:
        SyntaxError: it is not Python; `BeyondLimits` if it is beyond a limit.
    """
    _check_size(text)
    tree: ast.AST = _without_warnings(lambda: ast.parse(text, filename, mode))
    if len(text) > MAX_DEPTH:  # each level takes a character
        tree_room.take(_check_shape(tree))
    return tree


def symbols(text: str) -> symtable.SymbolTable:
    """Return the symbol table of a module's text within the limits.

    Raises:
        SyntaxError: it is not Python; `BeyondLimits` if it is beyond a limit.
    """
    _check_size(text)
    # Python copies the names around a scope for each scope, in one step: 7,000 classes in a function took 0.5 s.
    scopes = sum(1 for _ in _SCOPE.finditer(text))
    if scopes > _FEW_SCOPES and scopes * len({*_WORD.findall(text)}) > _MAX_NAMES_IN_SCOPES:
        raise BeyondLimits(
            "too-large", f"it has {scopes:,} inner scopes with too many names", "split it"
        )
    return _without_warnings(lambda: symtable.symtable(text, "source", "exec"))


def _without_warnings(work: Callable[[], T]) -> T:
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A collection in the middle would scan all the new nodes, in one step with the parser.
        was_on = gc.isenabled()
        gc.disable()
        try:
            return work()
        except (RecursionError, MemoryError) as error:
            raise _too_deep() from error
        except ValueError as error:  # a NUL, or half of a character
            raise SyntaxError(str(error)) from error
        finally:
            if was_on:
                gc.enable()


def _check_size(text: str) -> None:
    """Raise if a text has too many tokens, or a number that cannot be shown."""
    if huge := _HUGE_NUMBER.search(text):
        line, _column = place_of(text, huge.start())
        message = "a number of thousands of digits cannot be shown"
        raise BeyondLimits("huge-number", message, "compute it: `2**20_000`, say", line)
    if 3 * len(text) <= MAX_TOKENS:
        return
    tokens = sum(1 for token in _TOKEN.finditer(text) if token.lastindex)
    ends = text.count(";") + text.count("\n")
    fields = text.count("{") if _FIELDS.search(text) else 0
    if tokens + _OF_A_STATEMENT * ends + _OF_A_FIELD * fields > MAX_TOKENS:
        message = f"it has more than {MAX_TOKENS:,} names, numbers and signs"
        raise BeyondLimits("too-large", message, "split it, or keep data out of code")


LEAF_FIELDS: Final = frozenset(
    {
        "ctx",
        "op",
        "ops",
        "id",
        "attr",
        "arg",
        "kind",
        "type_comment",
        "rest",
        "kwd_attrs",
        "asname",
        "module",
        "level",
        "simple",
        "conversion",
        "is_async",
        "lineno",
        "tag",
        "str",
    }
)
"""The fields of nodes that never hold nodes with parts: names, values, operators and contexts."""
_WITHOUT_PARTS: Final = LEAF_FIELDS | {"name", "names", "type_ignores"}


# Where the next link of a chain is. The first operator of `a + b + c` is the innermost one.
_LINKS: Final[dict[type, str]] = {ast.BinOp: "left", ast.If: "orelse", ast.IfExp: "orelse"}


@cache
def _look_at(kind: type) -> tuple[tuple[str, ...], str, Callable[[Any], None] | None]:
    """Return how a type of node is looked at: its fields that may hold nodes with parts, its link, and its check.

    There are no fields of a leaf, or of what is no node.
    """
    if not issubclass(kind, ast.AST) or issubclass(kind, ast.Constant):
        return (), "", None
    fields = tuple(name for name in kind._fields if name not in _WITHOUT_PARTS)
    return fields, _LINKS.get(kind, ""), _CHECKS.get(kind)


def _check_shape(tree: ast.AST) -> int:
    """Return how many nodes a tree has at most. Raise if it is too deep, or a function has too many parameters."""
    count = 0
    here: list[ast.AST] = [tree]
    linked: list[ast.AST] = []  # half a level below
    line = 0
    for _half_level in range(2 * MAX_DEPTH):
        count += len(here)
        below: list[ast.AST] = []  # a whole level below
        # Each file that is saved passes here: a node takes no more steps than it must.
        for node in here:
            kind: type = type(node)  # of any class, as the cache takes them
            fields, link, check = _look_at(kind)
            if check is not None:
                check(node)
            for name in fields:
                value = getattr(node, name)
                if not value:
                    continue
                if name == link and _is_one_of(value, kind):
                    linked += _listed(value)
                elif value.__class__ is list:
                    below += value
                else:
                    below.append(value)
        here, linked = linked, below
        if not (here or linked):
            return count
        line = getattr(here[0], "lineno", line) if here else line
    raise _too_deep(line)


def _is_one_of(value: ast.AST | list[ast.AST], kind: type) -> bool:
    listed = _listed(value)
    return len(listed) == 1 and listed[0].__class__ is kind


def _listed(value: ast.AST | list[ast.AST]) -> list[ast.AST]:
    return value if isinstance(value, list) else [value]


def _check_parameters(node: ast.arguments) -> None:
    named = [*node.posonlyargs, *node.args, *node.kwonlyargs]
    if len(named) > MAX_PARAMETERS:
        message = f"a function has {len(named):,} parameters, and at most {MAX_PARAMETERS} are read"
        raise BeyondLimits("too-large", message, "give it one list or dictionary", named[0].lineno)


def _check_import(node: ast.Import | ast.ImportFrom) -> None:
    if any(
        len(name) > MAX_MODULE_NAME or name.count(".") >= MAX_DEPTH for name in imported_names(node)
    ):
        message = f"a module that is imported has a name of more than {MAX_DEPTH} parts or {MAX_MODULE_NAME:,} letters"
        raise BeyondLimits("too-large", message, "give it a shorter name", node.lineno)


_CHECKS: Final[Mapping[type, Callable[[Any], None]]] = {  # Any: a node of the type
    ast.arguments: _check_parameters,
    ast.Import: _check_import,
    ast.ImportFrom: _check_import,
}


def imported_names(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the names of the modules that an import names; that of `from . import` is empty."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""]


def _too_deep(line: int = 0) -> BeyondLimits:
    message = (
        f"the code is nested more than {MAX_DEPTH} levels deep, where a link of a chain is a level, and one of `elif`s,"
        " operators or conditional expressions half a level"
    )
    return BeyondLimits("too-deep", message, "split long expressions and nested blocks", line)


_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)
_UTF8 = frozenset({"utf-8", "utf8", "u8", "utf", "utf8-ucs2", "utf8-ucs4", "cp65001", "utf-8-sig"})
_ASCII = frozenset({"ascii", "us-ascii", "646", "ansi-x3.4-1968", "iso646-us"})

_BREAKS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_TURNS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_JOINERS = "\u200c\u200d"
# Format characters with a visible shape, such as signs before Arabic and Syriac numbers.
_SHAPED = "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
_SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f"
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_NEVER = "\ufdd0-\ufdef" + "".join(
    f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(17)
)
_STRAY = re.compile(f"(?!\r)[{CONTROLS}{UNSEEN}{_JOINERS}{_SHAPED}{_SELECTORS}{_PRIVATE}{_NEVER}]")
_STRAY_ASCII = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SYMBOLS = frozenset("‼⁉〰ℹ")  # emoji whose Unicode category is not a symbol
_KEYCAP = re.compile("[0-9#*]\ufe0f\u20e3")
# Joiners within emoji (UTS #51, ED-16) of which one is drawn as such, between letters that would join otherwise, after
# a virama (RFC 5892, appendix A.1 and A.2), and before the virama of a Bengali or Kannada RA. The letters are groups:
# they must be of one script.
_JOINED: Final = (
    r"(?<=(?:\p{Emoji_Presentation}|\p{Extended_Pictographic}\ufe0f)[\p{Emoji_Modifier}\ufe0f]?)\u200d"
    r"(?=\p{Extended_Pictographic})"
    r"|(?<=\p{Extended_Pictographic}[\p{Emoji_Modifier}\ufe0f]?)\u200d"
    r"(?=\p{Emoji_Presentation}|\p{Extended_Pictographic}\ufe0f)"
    r"|(?<=([\p{jt=L}\p{jt=D}])\p{Mn}{0,5})\u200c(?=\p{Mn}{0,5}([\p{jt=R}\p{jt=D}]))"
    r"|(?<=(\p{L})\p{M}{0,2}(\p{ccc=Virama}))(?:\u200c(?=(\p{L}))|\u200d(?![\p{M}\u200c\u200d]))"
    r"|(?<=([\u09b0\u0cb0]))\u200d(?=(\p{ccc=Virama})\p{L})"
)
_WHY = (
    (_BREAKS, "ends a line for editors and not for Python"),
    (CONTROLS, "is a control character"),
    (_TURNS, "turns the direction of what is read"),
    (_PRIVATE, "looks different on every machine"),
    (_NEVER, "is no character"),
    ("", "cannot be seen, or changes what stands next to it"),
)
_CONTROL_NAMES = MappingProxyType(
    {
        0x00: "NULL",
        0x07: "BELL",
        0x08: "BACKSPACE",
        0x09: "TAB",
        0x0A: "LINE FEED",
        0x0B: "VERTICAL TAB",
        0x0C: "FORM FEED",
        0x0D: "CARRIAGE RETURN",
        0x1A: "SUBSTITUTE",
        0x1B: "ESCAPE",
        0x1C: "FILE SEPARATOR",
        0x1D: "GROUP SEPARATOR",
        0x1E: "RECORD SEPARATOR",
        0x1F: "UNIT SEPARATOR",
        0x7F: "DELETE",
        0x85: "NEXT LINE",
    }
)
_KINDS = MappingProxyType(
    {"Cc": "CONTROL", "Cs": "half of a character (a lone surrogate)", "Co": "for private use"}
)
_NAME = re.compile(r"[^\x00-/:-@\[-^`{-\x7f\s]+")
_BLANKED = frozenset({tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.COMMENT)})


FLAWS = frozenset({"hidden-characters", "nul-byte", "encoding", "name-spelling"})
"""The codes of the flaws of characters."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """A reason why a text does not read as it runs: the code, message, fix and place of the problem."""

    code: str
    description: str
    fix: str
    line: int
    column: int


def flaw_of(text: str) -> Flaw | None:
    """Return the first character that a source must not contain, or an encoding other than UTF-8."""
    if strays := stray_characters(text):
        at, char = strays[0], text[strays[0]]
        why = next(why for kind, why in _WHY if not kind or re.match(f"[{kind}]", char))
        description = f"the text holds {named(char)}, which {why}"
        more = f", and {len(strays) - 1} more such characters" if len(strays) > 1 else ""
        fix = f'remove it; in a string that needs it, write it as "{escaped(char)}"'
        return Flaw(
            "hidden-characters" if char != "\0" else "nul-byte",
            description + more,
            fix,
            *place_of(text, at),
        )
    for number, line in enumerate(first_lines(text, 2) if "coding" in text else [], 1):
        if cookie := _COOKIE.match(line):
            name = cookie[1].lower().replace("_", "-")
            if name in _UTF8 or name.startswith("utf-8-") or (name in _ASCII and text.isascii()):
                return None
            description = f"the file says that its encoding is {cookie[1]}, but only UTF-8 is read"
            fix = "save it as UTF-8 and remove that comment"
            return Flaw("encoding", description, fix, number, cookie.start(1) + 1)
        if line.strip() and not line.lstrip().startswith("#"):
            return None  # Python reads no further
    return None


def read(text: str, max_bytes: int) -> "ast.Module | Flaw":
    """Return the tree of a text that somebody else wrote, or why it is not read. Trees must not be changed."""
    if len(text) > max_bytes or len(text.encode("utf-8", "surrogatepass")) > max_bytes:
        message = f"it is larger than {max_bytes // 1024} KiB"
        return Flaw("too-large", message, "split it, or keep data out of code", 0, 0)
    if flaw := flaw_of(text):
        return flaw
    try:
        tree = tree_of(text)
    except SyntaxError as error:
        return flaw_of_error(error)
    return name_flaw_of(text, tree) or tree


def flaw_of_error(error: SyntaxError) -> "Flaw":
    """Return the flaw of a text that `parse` did not take."""
    line, column = error.lineno or 0, max(error.offset or 0, 0)
    if isinstance(error, BeyondLimits):
        return Flaw(error.code, error.msg, error.fix, line, column)
    quoted = one_line((error.text or "").strip(), _MAX_QUOTED)
    message = error.msg or "invalid syntax"
    return Flaw(
        "syntax", f"{message}, in `{quoted}`" if quoted else message, "fix the syntax", line, column
    )


_LARGE: Final = 16_000
_MAX_QUOTED: Final = 160


def tree_of(text: str) -> ast.Module:
    """Return the tree of a module's text, as `parse` does. Trees are cached and must not be changed.

    Raises:
        SyntaxError: it is not Python; `BeyondLimits` if it is beyond a limit.
    """
    return _tree_of(text) if len(text) < _LARGE else _large_tree_of(text)


_tree_of = tree_room.kept(64)(parse)
_large_tree_of = tree_room.kept(2)(parse)  # one may take 40 MB


def stray_characters(text: str) -> list[int]:
    """Return the positions of the characters that a source cannot contain unescaped."""
    if text.isascii():
        if text.replace(
            "\n", ""
        ).isprintable():  # nearly every source; several times as fast as a pattern
            return []
        return [match.start() for match in _STRAY_ASCII.finditer(text)]
    strays = []
    plain = _joiners_in(text) if "\u200c" in text or "\u200d" in text else set()
    plain |= {match.start() + 1 for match in _KEYCAP.finditer(text)}
    for at in (match.start() for match in _STRAY.finditer(text)):
        if at in plain:
            continue
        # After an emoji, a variation selector is plain text.
        symbol = text[at - 1] if at and text[at] in "\ufe0e\ufe0f" else ""
        if symbol not in _SYMBOLS and not (
            symbol > "\x7f" and unicodedata.category(symbol) in ("So", "Sm")
        ):
            strays.append(at)
    return strays


def _joiners_in(text: str) -> set[int]:
    """Return the positions of the joiners that are part of an emoji or a word."""
    joined = set[int]()
    for match in regex.finditer(_JOINED, text):
        scripts = {
            unicodedata.name(letter, "").partition(" ")[0] for letter in match.groups() if letter
        }
        if len(scripts) < 2:
            joined.add(match.start())
    return joined


def odd_in_name(text: str) -> str:
    """Return the first character that no file name or grant may contain, with its place; "" if there is none.

    Names are stricter than sources: U+0020 is their only blank, and variation selectors are forbidden.
    """
    if _is_plain(text):
        return ""
    at = next((at for at, char in enumerate(text) if _is_odd(char)), None)
    return "" if at is None else f"{named(text[at])} at column {at + 1}"


def name_shown(text: str) -> str:
    """Return a name with its forbidden characters written as escapes."""
    if _is_plain(text):
        return text
    return "".join(escaped(char) if _is_odd(char) else char for char in text)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _is_odd(char: str) -> bool:
    return not char.isprintable() or _STRAY.match(char) is not None


def named(char: str) -> str:
    """Return a character's code point and name."""
    name = unicodedata.name(char, "") or _CONTROL_NAMES.get(ord(char), "")
    return f"U+{ord(char):04X} {name or _KINDS.get(unicodedata.category(char), 'without a name')}"


def escaped(text: str) -> str:
    """Return a text in ASCII, with other characters as Python escapes."""
    return text.encode("unicode_escape").decode("ascii")


def name_flaw_of(text: str, tree: ast.Module) -> Flaw | None:
    """Return the first name in a source that Python normalizes to a different one: it reads `ｏpen` as `open`."""
    if text.isascii():
        return None
    changed = {word for word in set(_NAME.findall(text)) if _normalized(word) != word}
    names = {part for name in _names_in(tree) for part in name.split(".")} if changed else set()
    changed = {word for word in changed if _normalized(word) in names}
    for number, line in enumerate(_code_lines(text) if changed else (), 1):
        for match in _NAME.finditer(line):
            if match[0] in changed:
                description = (
                    f"`{match[0]}` (spelled {match[0]!a}) is {_normalized(match[0])!a} to Python"
                )
                return Flaw(
                    "name-spelling",
                    description,
                    f"write `{_normalized(match[0])}`",
                    number,
                    match.start() + 1,
                )
    return None


def _normalized(word: str) -> str:
    """Return a name as Python reads it."""
    return unicodedata.normalize("NFKC", word)


def _names_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        for _, value in ast.iter_fields(node):
            if isinstance(value, str) and not isinstance(node, ast.Constant):
                yield value
            elif isinstance(value, list):
                yield from (item for item in value if isinstance(item, str))


def _code_lines(text: str) -> list[str]:
    """Return the lines with comments and strings blanked out; before Python 3.12 an f-string stays whole."""
    lines = bare_lines(text)
    spans = []
    try:
        for token in tokenize.generate_tokens(reader_of(text)):
            is_plain = (
                token.type == tokenize.STRING
                and "f" not in token.string[: token.string.find(token.string[-1])]
            )
            if is_plain or token.type in _BLANKED:
                spans.append((token.start, token.end))
    except (tokenize.TokenError, SyntaxError):
        return lines  # then comments and strings count too
    for (first, start), (last, end) in spans:
        for number in range(first, last + 1):
            line = lines[number - 1]
            low, high = start if number == first else 0, end if number == last else len(line)
            lines[number - 1] = line[:low] + " " * (high - low) + line[high:]
    return lines
