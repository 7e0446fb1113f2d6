"""The result that an author expects of a call, as it was written, in the form of an example. Pure.

Somebody who predicts a result writes it as Python, as JSON, or without quotes; the promised type says what is meant.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from sandbox.wire.foreign import LOOSE, Malformed, read_json

from ..candidate import GivenExample
from .agreement import error_of, literal_value, promises_floats

_DECIMALS: Final = re.compile(r"\d\.(\d+)(?!\d)")
_LAST_DIGITS: Final = 1e-9
_FEWEST: Final = 2  # decimals of a rounded number


def predictions(calls: Sequence[str], texts: Sequence[str], returns: str) -> tuple[GivenExample, ...]:
    """Return the calls as examples with the expected results; `returns` is the promised type."""
    tolerance = [_tolerance(text) if promises_floats(returns) else None for text in texts]
    return tuple(map(GivenExample, calls, [_expected(text.strip(), returns) for text in texts], tolerance))


def _expected(text: str, returns: str) -> str:
    """Return the result as Python writes it."""
    if error := error_of(text):
        return error
    value = literal_value(text)
    is_literal = type(value) is not object
    if returns == "str":
        return text if isinstance(value, str) else repr(text)
    if is_literal:
        return repr(tuple(value)) if isinstance(value, list) and returns.startswith(("tuple", "Tuple")) else text
    value = _from_json(text)
    if type(value) is not object:
        return repr(value)
    return repr(text) if "str" in re.findall(r"\w+", returns) else text


def _from_json(text: str) -> Any:  # Any: JSON
    try:
        return read_json(text, LOOSE)
    except Malformed:
        return object()


def _tolerance(text: str) -> float:
    """Return how far a float may be off: half of the last decimal that was written, if there are two or more."""
    decimals = min(map(len, _DECIMALS.findall(text)), default=0)
    return 0.5 * 10.0**-decimals if decimals >= _FEWEST else _LAST_DIGITS
