"""An outcome without secrets: every field of it that comes from a worker is masked, including future fields."""

from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar

from sandbox import Outcome

from .masks import Masks

MEASURED: Final = frozenset({"seconds", "memory", "cpu_s", "limit_s"})  # by the host
VALUE: Final = "value"
T = TypeVar("T")


def masked(outcome: Outcome, masks: Masks) -> Outcome:
    """Return the outcome without any of the secrets."""
    return _cleaned(outcome, masks) if masks else outcome


def _cleaned(part: T, masks: Masks) -> T:
    names = [field.name for field in fields(part) if field.name not in MEASURED]  # type: ignore[arg-type]  # a dataclass
    return replace(part, **{name: _field(name, getattr(part, name), masks) for name in names})  # type: ignore[type-var]


def _field(name: str, value: Any, masks: Masks) -> Any:  # Any: what a field of an outcome holds
    if name == VALUE:
        return masks.clean_value(value)
    if is_dataclass(value):
        return _cleaned(value, masks)
    match value:
        case tuple():
            return tuple(_field("", item, masks) for item in value)
        case int() | float() if masks.hides(value):
            return 0
        case _:
            return masks.clean_words(value)
