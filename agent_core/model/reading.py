"""Readers for calls that a model writes as text: bare, fenced, tagged, as JSON or as Python, in any form. Pure.

A call is read only if the reply consists of calls: as the whole text, or in tags after a short sentence; and only if
every call names a known function. Otherwise the text remains text: it may be an example, or a quotation of a stranger's
text. Wording cannot decide that, so the model is asked. Python is parsed but never executed. The forms are the data of
`reading.toml`.
"""

import ast
import builtins
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache, cached_property, partial
from itertools import chain
from typing import Any, Final, Protocol, TypeAlias

from agent_core.base import syntax
from agent_core.base.records import dataclass
from agent_core.base.short_texts import kept_if_short
from sandbox.wire.lines import bare_lines, lines_of
from sandbox.wire.strict_json import (
    LOOSE,
    MAX_VALUES,
    Malformed,
    has_more_values,
    read_json,
    read_next,
)

from .dialect import as_kind, parsed_toml
from .marked import (
    ELEMENT,
    MAX_PARTS,
    SPECIAL,
    ElementReader,
    mark_pattern,
    marked_name,
    read_pairs,
    read_sequence,
    skip_marks,
)


@dataclass(frozen=True, slots=True)
class TemplateFamily:
    """The marks of calls in a family of templates; `whole` accepts them only at the beginning of the text."""

    name: str
    source: str
    opens: tuple[str, ...]
    inner: tuple[str, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class ReasoningMarks:
    """Marks around reasoning that is left in the text."""

    open: str
    close: str
    source: str


@dataclass(frozen=True, slots=True)
class ReplyEnds:
    """The names of ways in which a reply ends, in lower case."""

    good: frozenset[str]
    length: frozenset[str]
    filter: frozenset[str]


@dataclass(frozen=True, slots=True)
class ReplyForms:
    """The data of `reading.toml`, except for the fields that go back."""

    name_keys: tuple[str, ...]
    argument_keys: tuple[str, ...]
    several_keys: tuple[str, ...]
    idle_keys: tuple[str, ...]
    namespaces: tuple[str, ...]
    families: tuple[TemplateFamily, ...]
    mark_words: tuple[str, ...]
    reasoning_marks: tuple[ReasoningMarks, ...]
    before_answer: tuple[str, ...]
    after_answer: tuple[str, ...]
    object_fences: tuple[str, ...]
    python_fences: tuple[str, ...]
    lead_in_chars: int
    ends: ReplyEnds


@cache
def forms() -> ReplyForms:
    """Return the forms that this version knows."""
    data = parsed_toml("reading.toml")
    return as_kind({field.name: data[field.name] for field in fields(ReplyForms)}, ReplyForms)


@cache
def _opens() -> tuple[tuple[re.Pattern[str], str, bool], ...]:
    """Return the marks at which calls begin: the pattern, the mark, and whether it counts only at the beginning.

    A mark in angle brackets may have a name before it, as in `<minimax:tool_call>`.
    """
    opens: list[tuple[re.Pattern[str], str, bool]] = []
    for family in forms().families:
        for mark in family.opens:
            pattern = re.escape(mark)
            if re.match(r"<[a-z]", mark):
                pattern = rf"<(?:[\w.-]{{1,30}}:)?{re.escape(mark[1:])}"
            opens.append((re.compile(pattern), mark, family.whole))
    return tuple(opens)


@cache
def marks() -> re.Pattern[str]:
    """Return the pattern of any mark of a template."""
    known = [mark for family in forms().families for mark in (*family.opens, *family.inner)]
    known = [mark for mark in known if not mark.startswith(("<", "to="))]
    return mark_pattern((*known, *forms().after_answer))


KnownNames: TypeAlias = Mapping[str, Sequence[str]]
"""The names of functions, each with the names of its parameters."""


class HasParameters(Protocol):
    """A function, as far as its parameters are concerned."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON Schema of its parameters. Any: JSON."""


class KnownFunctions(Mapping[str, Sequence[str]]):
    """The functions that can be called, by name, and `more` of them; their parameters are looked up when needed."""

    def __init__(
        self, functions: Mapping[str, HasParameters], more: "KnownFunctions | None" = None
    ) -> None:
        self._functions = functions
        self._more: Mapping[str, Sequence[str]] = {} if more is None else more

    def __getitem__(self, name: str) -> Sequence[str]:
        if (function := self._functions.get(name)) is None:
            return self._more[name]
        return tuple(function.parameters.get("properties", ()))

    def __contains__(self, name: object) -> bool:
        return name in self._functions or name in self._more

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(chain(self._functions, self._more)))

    def __len__(self) -> int:
        return len({*self._functions, *self._more})

    def __bool__(self) -> bool:
        return bool(self._functions or self._more)

    @cached_property
    def beginnings(self) -> frozenset[str]:
        """The names as they are compared while text arrives."""
        return frozenset(map(_beginning, self._functions)) | beginnings_of(self._more)


def beginnings_of(known: KnownNames) -> frozenset[str]:
    """Return the names of functions as they are compared while text arrives."""
    return (
        known.beginnings if isinstance(known, KnownFunctions) else frozenset(map(_beginning, known))
    )


def _beginning(name: str) -> str:
    return name.lower().replace("_", "")


_MARK: Final = re.compile(
    r"[<(\[{|].*", re.DOTALL
)  # what some servers leave of a template, or a call's brackets
_AROUND_NAME: Final = " \t\r\n`'\",;:[{("
_TO: Final = re.compile(r"\bto=([\w.\-]+)")
_NUMBER: Final = re.compile(r"[:#]\d+$")
_JOINTS: Final = re.compile(r"[_\-\s]")
_LONGEST_ODD_NAME: Final = 300


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call: the name of a known function, and its arguments as the JSON text of an object."""

    name: str
    arguments: str


def meant(name: str, known: KnownNames) -> str | None:
    """Return the one function that a name can mean: exactly, without its namespace or what was left of a template, or
    in another case.
    """
    if name in known:
        return name
    bare = _bare_name(name[:_LONGEST_ODD_NAME])
    last = re.split(r"[.:/]", bare)[-1]
    spaces = [space for space in forms().namespaces if bare.startswith(f"{space}_")]
    candidates = [bare, last, *(bare.removeprefix(space).lstrip("_") for space in spaces)]
    exact = next((candidate for candidate in candidates if candidate in known), None)
    if exact is not None or not bare:
        return exact
    wanted = {_plain(bare), _plain(last)}
    alike = [known_name for known_name in known if _plain(known_name) in wanted]
    return alike[0] if len(alike) == 1 else None


def _bare_name(name: str) -> str:
    """Return a name without marks, brackets, quotes and a number at its end."""
    if address := _TO.search(name):
        name = address[1]
    elif name.lstrip()[:1] == "<":  # a mark before the name
        name = re.sub(r"^\s*(?:<[^<>]*>\s*)+", "", name)
    return _NUMBER.sub("", _MARK.sub("", name.lstrip(_AROUND_NAME)).strip(_AROUND_NAME))


def parsed_call(name: str, arguments: Mapping[str, Any]) -> ParsedCall | None:  # Any: JSON values
    """Return the call with these arguments; None if they cannot be written as JSON."""
    try:
        return ParsedCall(name, json.dumps(arguments, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None


def unwrapped(arguments: str) -> str:
    """Return the object's JSON text for arguments that were encoded more than once; anything else unchanged."""
    if arguments.lstrip()[:1] != '"':
        return arguments
    inner: Any = arguments
    try:
        while isinstance(inner, str) and inner.lstrip()[:1] == '"':
            inner = read_json(inner, LOOSE, most_values=MAX_VALUES)
        if isinstance(inner, str) and isinstance(
            read_json(inner, LOOSE, most_values=MAX_VALUES), dict
        ):
            return inner
    except Malformed:
        pass
    return arguments


@kept_if_short(maxsize=8192)  # an odd name is compared with that of every function
def _plain(name: str) -> str:
    return _JOINTS.sub("", name.lower())


_OBJECT: Final = re.compile(r"[\[{]\s*(?:$|[\[{\"'])")
_PYTHON: Final = re.compile(r"\[?\s*(?:([A-Za-z_][\w.]*)\s*)?(\(|$)")
_FENCE: Final = re.compile(r"```[ \t]*(\w*)(\s*)")
_PRINT: Final = "print("  # around a call, as Gemma 3 writes it
_BEGUN_ELEMENT: Final = re.compile(r"<[\w:.-]*(?:[\s=][^<>\n]{0,300})?")
_DECIDED_CHARS: Final = 600


class Holder:
    """A filter that releases text as soon as it can no longer be a call; text before a call is its lead-in."""

    def __init__(self, known: KnownNames) -> None:
        self._known = known
        self._held = ""
        self._waiting: list[str] = []  # pieces after that, joined at the end
        self._passed = ""  # the lead-in so far
        self._open = not known

    @cached_property
    def _names(self) -> frozenset[str]:
        return beginnings_of(self._known)

    def feed(self, text: str) -> str:
        """Return the text that can be shown now."""
        if self._open:
            return text
        if self._waiting or len(self._held) + len(text) > _DECIDED_CHARS:
            self._waiting.append(text)  # still undecided after this much text: wait for the end
            return ""
        self._held += text
        place = 0  # of the first line that may open a call, or the end
        for line in lines_of(self._held):
            before = self._passed + self._held[:place]
            begins = not before or before.endswith("\n")
            if begins and self._may_open(self._held[place:].lstrip(), before.strip()):
                break
            place += len(line)
        ready, self._held = self._held[:place], self._held[place:]
        self._passed += ready
        if len(self._passed.strip()) > forms().lead_in_chars:
            self._open = True
            ready += self.rest()
        return ready

    def rest(self) -> str:
        """Return the text still held back at the end of the stream."""
        buffered = "".join([self._held, *self._waiting])
        self._held, self._waiting = "", []
        return buffered

    def _may_open(self, start: str, lead_in: str) -> bool:
        if start and self._may_open_mark(start, lead_in):
            return True
        if "```".startswith(start[:3]):
            return self._may_open_fence(start, lead_in)
        return not lead_in and (bool(_OBJECT.match(start)) or self._may_open_python(start))

    def _may_open_mark(self, start: str, lead_in: str) -> bool:
        opens = [mark for _, mark, is_whole in _opens() if not (is_whole and lead_in)]
        if any(mark.startswith(start[: len(mark)]) for mark in opens) or start.startswith(
            ("<|", "<｜")
        ):
            return True
        return bool(_BEGUN_ELEMENT.fullmatch(start)) or opens_at(start, 0, self._known, lead_in)

    def _may_open_python(self, start: str) -> bool:
        match = _PYTHON.match(start)
        if match is None:
            return False
        name = match[1] or ""  # of a list, perhaps only the bracket arrived so far
        written = _beginning(name)
        last = written.rpartition(".")[2]
        if match[2]:
            return not {written, last}.isdisjoint(self._names)
        spaces = any(space.startswith(name) or name == f"{space}." for space in forms().namespaces)
        return spaces or any(known.startswith(last) for known in self._names)

    def _may_open_fence(self, start: str, lead_in: str) -> bool:
        if lead_in:
            return False
        fence = _FENCE.match(start)
        if fence is None or fence.end() == len(start):
            return True
        language, inside = fence[1].lower(), start[fence.end() :]
        if language in forms().object_fences and _OBJECT.match(inside):
            return True
        is_python = language in forms().python_fences or not language
        if is_python and _PRINT.startswith(inside[: len(_PRINT)]):
            inside = inside[len(_PRINT) :]
        return is_python and self._may_open_python(inside)


_MOST_CHARS: Final = 20_000


def read_python(text: str, known: KnownNames) -> tuple[ParsedCall, ...]:
    """Return the calls that make up the whole text; empty if a statement is no call or an argument no literal."""
    calls: list[ParsedCall] = []
    for expression in expressions(text):
        node = expression
        match expression:
            case ast.Call(func=ast.Name("print"), args=[ast.Call() as inner], keywords=[]) if (
                "print" not in known
            ):
                node = inner  # as Gemma 3 writes it
        if not isinstance(node, ast.Call):
            return ()
        try:
            space, _, last = (
                ast.unparse(node.func).removesuffix(".call").rpartition(".")
            )  # `.call`: Llama 3.1
            name = meant(last, known) if not space or space in forms().namespaces else None
            if name is None or len(node.args) > len(known[name]):
                return ()
            arguments = {
                name: ast.literal_eval(value)
                for name, value in zip(known[name], node.args, strict=False)
            }
            named = {
                keyword.arg: ast.literal_eval(keyword.value)
                for keyword in node.keywords
                if keyword.arg
            }
        except (ValueError, TypeError, MemoryError, RecursionError):
            return ()
        is_plain = len(named) == len(node.keywords) and not named.keys() & arguments
        call = parsed_call(name, arguments | named) if is_plain else None
        if call is None:
            return ()
        calls.append(call)
    return tuple(calls)


def expressions(text: str) -> Sequence[ast.expr | None]:
    """Return the expressions in a Python text, with None for other statements; empty if it is not Python."""
    text = text.strip()
    name = text.partition("(")[
        0
    ]  # Python normalizes other letters to ASCII, which no model intends
    if len(text) > _MOST_CHARS or not text.endswith((")", "]", ";")) or not name.isascii():
        return ()
    try:
        with warnings.catch_warnings(action="ignore"):  # about invalid escapes in foreign text
            body = syntax.parse(text).body
    except SyntaxError:
        return ()
    nodes = [node.value if isinstance(node, ast.Expr) else None for node in body]
    if len(nodes) == 1 and isinstance(nodes[0], ast.List):
        return nodes[0].elts
    return nodes


_MOST_LITERAL_CHARS: Final = 20_000


def read_objects(text: str, known: KnownNames, *, marked: bool) -> tuple[ParsedCall, ...]:
    """Return the calls that make up the whole text; empty if any part is not a call.

    Unless `marked`, an object must have only the keys of a call.
    """
    opened: list[
        Any
    ] = []  # lists of calls, and objects that contain such a list, expanded one level deep
    for value in _values(text):
        opened += _opened(value)
    if len(opened) > MAX_PARTS:
        return ()
    calls = [_object_call(value, known, marked=marked) for value in opened]
    whole = tuple(call for call in calls if call is not None)
    return whole if len(whole) == len(calls) else ()


def _values(text: str) -> list[Any]:  # Any: foreign JSON
    """Return consecutive JSON values, or one Python dictionary or list; empty if the text contains anything else."""
    values = list[Any]()
    place, text = 0, text.strip()
    try:
        if len(text) > MAX_VALUES and has_more_values(
            text.encode("utf-8", "surrogatepass"), MAX_VALUES
        ):
            return []
        while place < len(text):
            if len(values) == MAX_PARTS:
                return []
            value, place = read_next(text, place, LOOSE)
            values.append(value)
            while place < len(text) and text[place] in " \t\r\n,;":
                place += 1
    except Malformed:
        if len(text) > _MOST_LITERAL_CHARS or text[:1] not in {"{", "["}:
            return []
        try:  # as Python writes it: single quotes, True, None
            with warnings.catch_warnings(action="ignore"):  # about invalid escapes in foreign text
                return [ast.literal_eval(syntax.parse(text, mode="eval"))]
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return []
    return values


def _object_call(value: Any, known: KnownNames, *, marked: bool) -> ParsedCall | None:
    if not isinstance(value, dict):
        return None
    if value.get("type", "function") == "function" and isinstance(
        inner := value.get("function"), dict
    ):
        return (
            _object_call(inner, known, marked=marked)
            if value.keys() <= {"function", *forms().idle_keys}
            else None
        )
    names = [(key, value[key]) for key in forms().name_keys if isinstance(value.get(key), str)]
    key, name = next(((key, name) for key, text in names if (name := meant(text, known))), ("", ""))
    if not name and marked and len(value) == 1:  # the name is the key, as Apertus writes it
        key, inner = next(iter(value.items()))
        named = meant(key, known) if isinstance(inner, dict) else None
        return parsed_call(named, inner) if named else None
    if not name:
        return None
    fields = {field: inner for field, inner in value.items() if field != key}
    arguments = None
    place = next((key for key in forms().argument_keys if key in fields), None)
    if place is not None and (marked or fields.keys() <= {place, *forms().idle_keys}):
        inner = {} if fields[place] is None else fields[place]
        with suppress(Malformed):
            while isinstance(inner, str):  # they may be encoded once more
                inner = read_json(inner.strip() or "{}", LOOSE)
        arguments = inner if isinstance(inner, dict) else None
    if arguments is None:  # or next to the name, if each one is a parameter of the function
        arguments = {
            key: fields[key] for key in fields if key in known[name] or key not in forms().idle_keys
        }
        if not arguments.keys() <= {*known[name]} or not (arguments or marked):
            return None
    return parsed_call(name, arguments)


def opens_at(text: str, place: int, known: KnownNames, lead_in: str = "") -> bool:
    """Check whether a mark of calls stands at a place: of a known family, or one that shows by its form what it is."""
    for pattern, _, is_whole in _opens():
        if not (is_whole and lead_in.strip()) and pattern.match(text, place):
            return True
    if SPECIAL.match(text, place):
        return True
    element = ELEMENT.match(text, place)
    if element is None or element["close"]:
        return False
    name = element["element"]
    return any(word in name.lower() for word in forms().mark_words) or bool(known.get(name))


def has_call_mark(text: str) -> bool:
    """Check whether a mark with which calls begin in a family of templates is anywhere in a text."""
    return any(pattern.search(text) for pattern, _, is_whole in _opens() if not is_whole)


_LEAD_IN_CHARS: Final = 4_000  # of a text before calls that is looked through
_BEGINNING_CHARS: Final = 2 * _LEAD_IN_CHARS  # of a text with a call, with the beginning of that


def split_marked(text: str, known: KnownNames) -> tuple[str, str] | None:
    """Return what is before the first line that begins with a mark of calls, and the rest; None if there is none."""
    place = 0
    for line in lines_of(text):
        start = place + len(line) - len(line.lstrip(" \t"))
        if place > _LEAD_IN_CHARS:
            return None
        if opens_at(text, start, known, text[:place]):
            return text[:place], text[start:]
        place += len(line)
    return None


_LAST_MARK: Final = re.compile(r"(?:<[^<>\n]*>|\[[^\[\]\n]*\])\Z")


def read_marked(text: str, known: KnownNames) -> tuple[ParsedCall, ...]:
    """Return the calls that make up a text which begins with a mark, in any of the structures that families have."""
    resolve = partial(meant, known=known)
    found = ElementReader(text, known, resolve, marks()).read() or read_pairs(
        text, resolve, marks()
    )
    found = found or read_sequence(text, resolve, marks(), partial(_calls_of, known=known))
    if found:
        calls = [parsed_call(name, arguments) for name, arguments in found]
        whole = tuple(call for call in calls if call is not None)
        return whole if len(whole) == len(calls) else ()
    inner = text[skip_marks(text, 0, marks()) :].rstrip()
    for _ in range(MAX_PARTS):
        last = _LAST_MARK.search(inner, max(0, len(inner) - _LONGEST_ODD_NAME))
        if last is None or not marks().fullmatch(last[0]):
            break
        inner = inner[: last.start()].rstrip()
    return read_python(inner, known)


def _opened(value: Any) -> list[Any]:  # Any: foreign JSON
    """Return the members of a list of calls, also of one in an object; what is neither is the only one."""
    inner = value
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in forms().several_keys:
        inner = next(iter(value.values()))
    return inner if isinstance(inner, list) else [inner]


def _calls_of(
    value: Any, known: KnownNames
) -> list[tuple[str, Mapping[str, Any]]]:  # Any: foreign JSON
    """Return the calls that a value is: an object, a list of them, or an object that has such a list."""
    calls = [_object_call(each, known, marked=True) for each in _opened(value)[: MAX_PARTS + 1]]
    return (
        [(call.name, read_json(call.arguments, LOOSE)) for call in calls if call]
        if all(calls)
        else []
    )


def exact_name(word: str, known: KnownNames) -> str | None:
    """Return the function that a word names exactly, or behind a namespace and before a number."""
    bare = _bare_name(word[:_LONGEST_ODD_NAME])
    return next((name for name in (bare, re.split(r"[.:/]", bare)[-1]) if name in known), None)


_IN_MARKS: Final = re.compile(r"<|\[[A-Z/]|Action:")


def marked_function(text: str, known: KnownNames) -> str:
    """Return the function whose name stands between a template's marks somewhere in a text; "" if there is none."""
    if not _IN_MARKS.search(text):
        return ""
    return marked_name(text, partial(exact_name, known=known), marks(), forms().mark_words)


_OPEN: Final = re.compile(r"^[ \t]*```", re.MULTILINE)
_CLOSE: Final = re.compile(r"```[ \t]*$", re.MULTILINE)
_LANGUAGE: Final = re.compile(r"[ \t]*(\w*)[ \t]*\n?")


def split_fenced(text: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """Return the lead-in, and the language and content of each fence; None if other text is between or after them."""
    opening = _OPEN.search(text)
    fences: list[tuple[str, str]] = []
    remaining = text[opening.start() :].strip() if opening else ""
    while remaining:
        closing = _CLOSE.search(remaining, 3)
        if closing is None or not remaining.startswith("```") or len(fences) == MAX_PARTS:
            return None
        head = _LANGUAGE.match(remaining, 3, closing.start())
        begins = head.end() if head else 3
        fences.append((head[1].lower() if head else "", remaining[begins : closing.start()]))
        remaining = remaining[closing.end() :].strip()
    return (text[: opening.start()], tuple(fences)) if opening and fences else None


def read_fence(language: str, text: str, known: KnownNames) -> tuple[ParsedCall, ...]:
    """Return the calls in a fence."""
    objects = read_objects(text, known, marked=False) if language in forms().object_fences else ()
    return objects or (read_python(text, known) if language in {"", *forms().python_fences} else ())


_IN_CALLS: Final = re.compile(r"[({<]")
"""Whatever its form, a call has one of these characters; a text without them is not searched for calls."""


@dataclass(frozen=True, slots=True)
class ReadText:
    """The result of reading a text: its lead-in, which remains text, and the calls after it."""

    lead_in: str
    calls: tuple[ParsedCall, ...]


def read_text(text: str, known: KnownNames) -> ReadText | None:
    """Return the calls in the text; None if it contains anything else or names a function that is not known."""
    if not known or not _IN_CALLS.search(text):
        return None
    if bare := read_objects(text, known, marked=False) or read_python(text, known):
        return ReadText("", bare)
    marked = split_marked(text, known)
    if marked and is_lead_in(marked[0]) and (calls := read_marked(marked[1], known)):
        return ReadText(marked[0].strip(), calls)
    fenced = split_fenced(text)
    if fenced is None or fenced[0].strip():
        return None
    parts = [read_fence(*fence, known) for fence in fenced[1]]
    return ReadText("", tuple(call for part in parts for call in part)) if all(parts) else None


def attached_call(text: str, known: KnownNames) -> str:
    """Return the function whose complete or incomplete call follows a few words; "" if there is none.

    It may be intended or an example; the words are not interpreted.
    """
    if not _IN_CALLS.search(text):
        return ""
    found = list[tuple[str, list[tuple[ParsedCall, ...]]]]()
    if marked := split_marked(text, known):
        found.append((marked[0], [read_marked(marked[1], known)]))
    if fenced := split_fenced(text):
        found.append((fenced[0], [read_fence(*fence, known) for fence in fenced[1]]))
    for lead_in, parts in found:
        if lead_in.strip() and _is_short(lead_in) and all(parts):
            return parts[0][0].name
    begun = _call_pattern().search(text, 0, _BEGINNING_CHARS)
    return (
        begun["name"]
        if begun and text[: begun.start()].strip() and _is_short(text[: begun.start()])
        else ""
    )


def is_lead_in(text: str) -> bool:
    """Check whether tags after a text can be calls: the text is empty, or a short finished sentence and no quotation.

    A lead-up such as "Its author wrote" may introduce a stranger's text.
    """
    return not text.strip() or (_is_short(text) and bool(_SENTENCE.fullmatch(text.strip())))


_SENTENCE: Final = re.compile(r"[^>\[{].*[.!…。！]", re.DOTALL)


def _is_short(lead_in: str) -> bool:
    return len(lead_in.strip()) <= forms().lead_in_chars and all(
        map(str.strip, bare_lines(lead_in.strip()))
    )


class _AnyName(Mapping[str, Sequence[str]]):
    """A mapping that accepts every valid function name, for calls of functions that are not known."""

    def __getitem__(self, name: str) -> Sequence[str]:
        if not _NAME.fullmatch(name):
            raise KeyError(name)
        return ()

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


_NAME: Final = re.compile(r"[A-Za-z_][\w.:/-]{0,80}")
_PYTHON_CALL: Final = re.compile(r"([A-Za-z_]\w{0,80})\(\s*(\w+\s*=)?")
_ANY: Final = _AnyName()


def written_calls(text: str) -> tuple[str, ...]:
    """Return the names of the calls that make up a text, even broken or unknown ones; empty if it is not calls.

    In Python, only a call with named arguments of a function that is not a builtin counts: anything else may be an
    answer.
    """
    if not _IN_CALLS.search(text):
        return ()
    calls = read_objects(text, _ANY, marked=False)
    if not calls and (split := split_marked(text, _ANY)) and is_lead_in(split[0]):
        calls = read_marked(split[1], _ANY)
    if calls:
        return tuple(call.name for call in calls)
    begun = _call_pattern().search(text, 0, _BEGINNING_CHARS)
    if begun and not text[: begun.start()].strip():
        return (begun["name"],)
    bare = _TOOL_CODE.sub("", text).strip().removesuffix(";").removeprefix("[").removesuffix("]")
    space, _, call_text = (
        bare.partition(".") if bare.partition(".")[0] in forms().namespaces else ("", "", bare)
    )
    match = _PYTHON_CALL.match(call_text)
    is_call = (
        match and not hasattr(builtins, match[1]) and (space or match[2]) and expressions(call_text)
    )
    return (match[1],) if match and is_call else ()


_TOOL_CODE: Final = re.compile(r"\A\s*```(?:tool_code)?[ \t]*\n|```\s*\Z")


@cache
def _call_pattern() -> re.Pattern[str]:
    """Return the pattern of an object at the start of the text, a fence or a tag that begins like a call."""
    opening = "|".join(pattern.pattern for pattern, _, _ in _opens())
    names, values = "|".join(forms().name_keys), "|".join(forms().argument_keys)
    call = rf"[\"'](?:{names})[\"']\s*:\s*[\"'](?P<name>[A-Za-z_][\w.-]{{0,80}})[\"']\s*,\s*[\"'](?:{values})[\"']\s*:"
    wrapped = (
        r"(?:[\"']thought[\"']\s*:\s*\"(?:[^\"\\]|\\.){0,400}\"\s*,\s*)?"
        r"(?:[\"'](?:call|function)[\"']\s*:\s*\{\s*)?"
    )
    return re.compile(
        rf"(?:\A|^[ \t]*(?:```\w*|{opening}))\s*(?:\[\s*)?\{{\s*{wrapped}{call}", re.MULTILINE
    )
