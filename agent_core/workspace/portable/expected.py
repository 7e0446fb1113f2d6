"""The validator's errors in the words of this program: a path, and what was expected there."""

from collections.abc import Sequence
from typing import Any

from agent_core.base.untrusted import one_line

_TAGS = ("told", "assistant", "call", "result", "summary", "other")
_FORMS = ("constrained-str", "list[constrained-str]")
_KINDS = {
    "string_type": "a text",
    "string_unicode": "a text of whole characters",
    "string_too_long": "a text of at most {max_length} characters",
    "string_pattern_mismatch": "a text of the form {pattern}",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "literal_error": "{expected}",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "too_long": "at most {max_length} items",
    "too_short": "at least {min_length} item",
}


def path_of(place: Sequence[int | str]) -> str:
    """Return a position in the file, such as `turns[3].entries[0].kind`."""
    path = ""
    for at, part in enumerate(place):
        if isinstance(part, int):
            path += f"[{part}]"
        elif not _is_shape(part, place[:at]):
            path += f".{one_line(part, 60)}" if path else one_line(part, 60)
    return path


def _is_shape(part: str, before: Sequence[int | str]) -> bool:
    """Check whether a part names a shape that was tried instead of a position in the file."""
    return part in _FORMS or (part in _TAGS and len(before) > 1 and before[-2] == "entries")


def sentence(error: Any) -> str:  # Any: one of pydantic's error details
    """Return what was expected there, and what was found."""
    if error["type"] == "missing":
        return "expected it, and it is missing"
    if error["type"] == "extra_forbidden":
        return "expected no such field"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    form = _KINDS.get(error["type"])
    expected = form.format(**error.get("ctx", {})) if form else str(error["msg"])
    return f"expected {expected}, got {_describe_value(error['input'])}"


def _describe_value(value: Any) -> str:  # Any: whatever stands in the file
    if isinstance(value, str):
        return f"the text `{one_line(value, 40)}`" if value else "an empty text"
    if isinstance(value, list | dict):
        return f"a list of {len(value)}" if isinstance(value, list) else "an object"
    if isinstance(value, int) and abs(value) >= 1 << 64:
        return "a very large number"
    return {None: "null", True: "true", False: "false"}.get(value, str(value))
