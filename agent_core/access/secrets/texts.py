"""All texts in a nested value, collected fast: most values are large lists of one kind, and hold no secret."""

from typing import Any, Final

from sandbox.unhashed import Members, Pairs

PLAIN: Final = frozenset({type(None), bool, int, float})
_MANY: Final = frozenset({list, tuple, set, frozenset})
_CLAIMED: Final = frozenset({Members, Pairs})


def texts_of(value: Any, plain: frozenset[type]) -> tuple[list[str], bool]:  # Any: what `sandbox.values` carries
    """Return the texts, and whether everything else in the value is of the plain types."""
    texts: list[str] = []
    waiting: list[Any] = [[value]]
    is_plain = True
    while waiting:
        many = waiting.pop()
        kinds = set(map(type, many))
        if str in kinds:
            texts += many if len(kinds) == 1 else [item for item in many if type(item) is str]
        if dict in kinds:
            for item in many:
                if type(item) is dict:
                    waiting += [list(item), list(item.values())]
        waiting += [item for item in many if type(item) in _MANY] if kinds & _MANY else []
        waiting += [item.items for item in many if type(item) in _CLAIMED] if kinds & _CLAIMED else []
        is_plain = is_plain and kinds <= {str, dict} | _MANY | _CLAIMED | plain
    return texts, is_plain
