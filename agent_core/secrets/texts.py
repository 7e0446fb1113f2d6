"""All texts of a nested value, gathered fast: most values are large lists of one kind, and hold no secret."""

from typing import Any, Final

from sandbox.unhashed import Members, Pairs

PLAIN: Final = frozenset({type(None), bool, int, float})
_MANY: Final = frozenset({list, tuple, set, frozenset})
_CLAIMED: Final = frozenset({Members, Pairs})


def texts_of(value: Any, plain: frozenset[type]) -> tuple[list[str], bool]:  # Any: what `sandbox.values` carries
    """The texts, and whether beside them there are only values of the plain types."""
    found: list[str] = []
    waiting: list[Any] = [[value]]
    is_plain = True
    while waiting:
        many = waiting.pop()
        kinds = set(map(type, many))
        if str in kinds:
            found += many if len(kinds) == 1 else [one for one in many if type(one) is str]
        if dict in kinds:
            for one in many:
                if type(one) is dict:
                    waiting += [list(one), list(one.values())]
        waiting += [one for one in many if type(one) in _MANY] if kinds & _MANY else []
        waiting += [one.items for one in many if type(one) in _CLAIMED] if kinds & _CLAIMED else []
        is_plain = is_plain and kinds <= {str, dict} | _MANY | _CLAIMED | plain
    return found, is_plain
