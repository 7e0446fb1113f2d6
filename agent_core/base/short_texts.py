"""A cache of what is made from words and names: of strangers, too, who may send long ones."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar, TypeVarTuple, cast

More = TypeVarTuple("More")
T = TypeVar("T")


def kept_if_short(
    maxsize: int, most_chars: int = 200
) -> Callable[[Callable[[str, *More], T]], Callable[[str, *More], T]]:
    """Cache a function of a text as `lru_cache` does; what is made from a longer text is made each time."""

    def cached(work: Callable[[str, *More], T]) -> Callable[[str, *More], T]:
        kept = cast("Callable[[str, *More], T]", lru_cache(maxsize=maxsize)(work))

        @wraps(work)
        def use(text: str, *more: *More) -> T:
            return (kept if len(text) <= most_chars else work)(text, *more)

        return use

    return cached
