"""The calls in a reply that consists of calls: the readers, tried one after another.

Calls are written as JSON objects, as Python dictionaries or as Python calls (parsed, never run); bare, in a code fence
that ends the text, or between tags such as `<tool_call>…</tool_call>`.
"""

import ast
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from agent_core.base import syntax
from sandbox.wire.foreign import LOOSE, Malformed, read_json, read_next

from .forms import MOST_PARTS, ParsedCall, Shown, Tag, announces, forms, meant, parsed_call

_MOST_CHARS: Final = 20_000


def read_python(text: str, shown: Shown) -> tuple[ParsedCall, ...]:
    """Return the calls that make up the whole text; none if a statement is something else or an argument is no
    literal.
    """
    calls = [_python_call(node, shown) for node in expressions(text)]
    whole = tuple(call for call in calls if call is not None)
    return whole if len(whole) == len(calls) else ()


def expressions(text: str) -> Sequence[ast.expr | None]:
    """Return the expressions that a text in Python consists of, None for another statement; none if it is no Python."""
    text = text.strip()
    name = text.partition("(")[0]  # Python takes other letters for these, and nobody writes them so
    if len(text) > _MOST_CHARS or not text.endswith((")", "]", ";")) or not name.isascii():
        return ()
    try:
        with warnings.catch_warnings(action="ignore"):  # of odd escapes in somebody else's text
            body = syntax.parse(text).body
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    nodes = [node.value if isinstance(node, ast.Expr) else None for node in body]
    if len(nodes) == 1 and isinstance(nodes[0], ast.List):
        return nodes[0].elts
    return nodes


def _python_call(node: ast.expr | None, shown: Shown) -> ParsedCall | None:
    if not isinstance(node, ast.Call):
        return None
    space, _, last = _dotted(node.func).rpartition(".")
    name = meant(last, shown) if not space or space in forms().namespaces else None
    if name is None or len(node.args) > len(shown[name]):
        return None
    try:
        arguments = _arguments(node, shown[name])
    except (ValueError, TypeError, MemoryError, RecursionError):
        return None
    return parsed_call(name, arguments) if arguments is not None else None


def _arguments(node: ast.Call, parameters: Sequence[str]) -> dict[str, Any] | None:  # Any: literals
    arguments = {name: ast.literal_eval(value) for name, value in zip(parameters, node.args, strict=False)}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in arguments:
            return None
        arguments[keyword.arg] = ast.literal_eval(keyword.value)
    return arguments


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


_MOST_LITERAL_CHARS: Final = 20_000


def read_objects(text: str, shown: Shown, *, marked: bool) -> tuple[ParsedCall, ...]:
    """Return the calls that make up the whole text; none if any part is something else.

    Where nothing marks the text as a call, an object must have a call's keys and no others.
    """
    values = _values(text)
    calls = [_object_call(value, shown, marked=marked) for value in _flat(values)]
    whole = tuple(call for call in calls if call is not None)
    return whole if len(whole) == len(calls) else ()


def _values(text: str) -> list[Any]:  # Any: foreign JSON
    """Return consecutive JSON values; none if the text holds anything else."""
    values, place, text = [], 0, text.strip()
    try:
        while place < len(text):
            value, place = read_next(text, place, LOOSE)
            values.append(value)
            while place < len(text) and text[place] in " \t\r\n,;":
                place += 1
    except Malformed:
        return _literal(text)
    return values


def _literal(text: str) -> list[Any]:
    """Return a Python dictionary or list: single quotes, True, None."""
    if len(text) > _MOST_LITERAL_CHARS or text[:1] not in {"{", "["}:
        return []
    try:
        with warnings.catch_warnings(action="ignore"):  # of odd escapes in somebody else's text
            return [ast.literal_eval(text)]
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return []


def _flat(values: Sequence[Any]) -> list[Any]:
    """Expand lists of calls, and objects that hold such a list, one level deep."""
    opened: list[Any] = []
    for value in values:
        inner = value
        if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in forms().several_keys:
            inner = next(iter(value.values()))
        opened += inner if isinstance(inner, list) else [inner]
    return opened


def _object_call(value: Any, shown: Shown, *, marked: bool) -> ParsedCall | None:
    if not isinstance(value, dict):
        return None
    if value.get("type", "function") == "function" and isinstance(inner := value.get("function"), dict):
        return _object_call(inner, shown, marked=marked) if value.keys() <= {"function", *forms().idle_keys} else None
    key, name = _named(value, shown)
    if name is None:
        return None
    fields = {field: inner for field, inner in value.items() if field != key}
    arguments = _inside(fields, marked=marked) or _adjacent_arguments(fields, shown[name], marked=marked)
    return parsed_call(name, arguments[0]) if arguments else None


def _named(value: dict[Any, Any], shown: Shown) -> tuple[str, str | None]:
    """Return the key under which a shown function is named, and the function."""
    names = [(key, value[key]) for key in forms().name_keys if isinstance(value.get(key), str)]
    return next(((key, name) for key, text in names if (name := meant(text, shown))), ("", None))


def _inside(fields: dict[Any, Any], *, marked: bool) -> tuple[dict[str, Any]] | None:
    """Return arguments that are under a key of their own, possibly encoded once more."""
    key = next((key for key in forms().argument_keys if key in fields), None)
    if key is None or not (marked or fields.keys() <= {key, *forms().idle_keys}):
        return None
    value = fields[key]
    for _ in range(2):
        if isinstance(value, str):
            try:
                value = read_json(value.strip() or "{}", LOOSE)
            except Malformed:
                return None
    value = {} if value is None else value
    return (value,) if isinstance(value, dict) and all(isinstance(name, str) for name in value) else None


def _adjacent_arguments(
    fields: dict[Any, Any], parameters: Sequence[str], *, marked: bool
) -> tuple[dict[str, Any]] | None:
    """Return arguments that are next to the name: every one a parameter of the function."""
    arguments = {key: value for key, value in fields.items() if key in parameters or key not in forms().idle_keys}
    if any(key not in parameters for key in arguments) or not (arguments or marked):
        return None
    return (arguments,)


_FUNCTION: Final = re.compile(r"<function=([^>\s]{1,80})>(.*?)</function>", re.DOTALL)
_FUNCTION_LINE: Final = re.compile(r"^[ \t]*<function=", re.MULTILINE)
_PARAMETER: Final = re.compile(r"<parameter=([^>\s]{1,80})>\n?(.*?)\n?</parameter>", re.DOTALL)


def split_tagged(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the lead-in and the contents of the tags; None if the text does not end in tags that open a line."""
    starts = [(place, tag) for tag in forms().tags if (place := _opening(text, tag)) is not None]
    function = _FUNCTION_LINE.search(text)
    if function and all(function.start() < place for place, _ in starts):
        return text[: function.start()], (text[function.start() :],)
    if not starts:
        return None
    place, tag = min(starts, key=lambda start: start[0])
    parts = _between(text[place:], tag)
    return (text[:place], parts) if parts else None


def read_tagged(part: str, shown: Shown) -> tuple[ParsedCall, ...]:
    """Return the calls between two tags."""
    return _read_xml(part, shown) or read_objects(part, shown, marked=True) or read_python(part, shown)


def _opening(text: str, tag: Tag) -> int | None:
    """Return the position at which the tag first opens a line."""
    found_at = _opens(tag).search(text) if tag.open in text else None
    return found_at.start() if found_at else None


@cache
def _opens(tag: Tag) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*{re.escape(tag.open)}", 0 if tag.whole else re.MULTILINE)


def _between(text: str, tag: Tag) -> tuple[str, ...]:
    """Return the contents of the tags if they hold the whole text; the last may be unclosed, as servers cut it off."""
    parts: list[str] = []
    remaining = text.strip()
    while remaining:
        if not remaining.startswith(tag.open) or len(parts) == MOST_PARTS:
            return ()
        inner, closed, remaining = _cut(remaining.removeprefix(tag.open), tag)
        parts.append(inner)
        remaining = remaining.strip() if closed else ""
    return tuple(parts)


def _cut(text: str, tag: Tag) -> tuple[str, str, str]:
    if tag.close:
        return text.partition(tag.close)
    inner, _, tail = text.partition(tag.open)
    return inner, tag.open if tail else "", tag.open + tail


def _read_xml(part: str, shown: Shown) -> tuple[ParsedCall, ...]:
    """Read `<function=f><parameter=x>1</parameter></function>`, or the same with a JSON object inside."""
    if not 0 < part.count("<function=") == part.count("</function>") <= MOST_PARTS:
        return ()
    calls = [_xml_call(name, inside, shown) for name, inside in _FUNCTION.findall(part)]
    whole = tuple(call for call in calls if call is not None)
    complete = len(whole) == len(calls) and not _FUNCTION.sub("", part).strip()
    return whole if complete else ()


def _xml_call(name: str, inside: str, shown: Shown) -> ParsedCall | None:
    function_name = meant(name, shown)
    if function_name is None:
        return None
    if not inside.count("<parameter=") == inside.count("</parameter>") <= MOST_PARTS:
        return None
    parameters = dict(_PARAMETER.findall(inside))
    if not _PARAMETER.sub("", inside).strip():
        return parsed_call(function_name, parameters)
    written = f'{{"name": "{function_name}", "arguments": {inside}}}'
    return next(iter(read_objects(written, shown, marked=True)), None)


_OPEN: Final = re.compile(r"^[ \t]*```", re.MULTILINE)
_CLOSE: Final = re.compile(r"```[ \t]*$", re.MULTILINE)
_LANGUAGE: Final = re.compile(r"[ \t]*(\w*)[ \t]*\n?")


@dataclass(frozen=True, slots=True)
class Fence:
    """A block of code, and the language that it declares."""

    language: str
    text: str


def split_fenced(text: str) -> tuple[str, tuple[Fence, ...]] | None:
    """Return the lead-in and the fences, if nothing stands between or after them."""
    opening = _OPEN.search(text)
    fences: list[Fence] = []
    remaining = text[opening.start() :].strip() if opening else ""
    while remaining:
        closing = _CLOSE.search(remaining, 3)
        if closing is None or not remaining.startswith("```") or len(fences) == MOST_PARTS:
            return None
        head = _LANGUAGE.match(remaining, 3, closing.start())
        begins = head.end() if head else 3
        fences.append(Fence(head[1].lower() if head else "", remaining[begins : closing.start()]))
        remaining = remaining[closing.end() :].strip()
    return (text[: opening.start()], tuple(fences)) if opening and fences else None


def read_fence(fence: Fence, shown: Shown, *, alone: bool) -> tuple[ParsedCall, ...]:
    """Return the calls in a fence; Python after a lead-in is taken for an example."""
    if fence.language in forms().object_fences:
        calls = read_objects(fence.text, shown, marked=False)
        return calls or (read_python(fence.text, shown) if alone and not fence.language else ())
    return read_python(fence.text, shown) if alone and fence.language in forms().python_fences else ()


@dataclass(frozen=True, slots=True)
class ReadText:
    """The result of reading a text: its lead-in, which stays text, and the calls after it."""

    lead_in: str
    calls: tuple[ParsedCall, ...]


def read_text(text: str, shown: Shown) -> ReadText | None:
    """Return the calls in the text; None if it is anything else, or names a function that is not shown."""
    if not shown or not text.strip():
        return None
    bare = read_objects(text, shown, marked=False) or read_python(text, shown)
    return ReadText("", bare) if bare else _tagged(text, shown) or _fenced(text, shown)


def _tagged(text: str, shown: Shown) -> ReadText | None:
    split = split_tagged(text)
    if split is None or not is_lead_in(split[0]):
        return None
    return _all(split[0], [read_tagged(part, shown) for part in split[1]])


def _fenced(text: str, shown: Shown) -> ReadText | None:
    split = split_fenced(text)
    if split is None or not (_is_short(split[0]) and announces(split[0].strip())):
        return None
    alone = not split[0].strip()
    return _all(split[0], [read_fence(fence, shown, alone=alone) for fence in split[1]])


def _all(lead_in: str, parts: Sequence[tuple[ParsedCall, ...]]) -> ReadText | None:
    """Return the calls of all parts; None if any part is not calls."""
    return ReadText(lead_in.strip(), tuple(call for part in parts for call in part)) if parts and all(parts) else None


def is_lead_in(text: str) -> bool:
    """Check whether a text may stand before the tags of a call: short, and no explanation of it."""
    return _is_short(text) and not forms().explains.search(text.strip())


def _is_short(lead_in: str) -> bool:
    return len(lead_in.strip()) <= forms().lead_in_chars and not re.search(r"\n\s*\n\s*\S", lead_in.strip())
