"""Describes the value that a field expected, in our own words instead of pydantic's."""

from typing import Any, Final

from .untrusted import one_line

_KINDS: Final = {
    "string_type": "a text",
    "string_unicode": "a text of whole characters",
    "string_too_long": "a text of at most {max_length} characters",
    "string_pattern_mismatch": "a text of the form {pattern}",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "literal_error": "{expected}",
    "greater_than": "more than {gt}",
    "less_than": "less than {lt}",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "too_long": "at most {max_length} items",
    "too_short": "at least {min_length} item",
}


def expected(error: Any) -> str:  # Any: one of pydantic's error details
    """Return the kind of value that the field accepts."""
    form = _KINDS.get(error["type"])
    return form.format(**error.get("ctx", {})) if form else str(error["msg"])


def sentence(error: Any) -> str:  # Any: one of pydantic's error details
    """Return a sentence with the expected and the actual value."""
    if error["type"] == "missing":
        return "expected it, and it is missing"
    if error["type"] == "extra_forbidden":
        return "expected no such field"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    return f"expected {expected(error)}, got {_describe_value(error['input'])}"


def _describe_value(value: Any) -> str:  # Any: a value from a file
    if isinstance(value, str):
        return f"the text `{one_line(value, 40)}`" if value else "an empty text"
    if isinstance(value, list | tuple | dict):
        return "an object" if isinstance(value, dict) else f"a list of {len(value)}"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, int) and abs(value) >= 1 << 64:
        return "a very large number"
    return one_line(str(value), 40)
