"""What each signal counts in a search: data, with its origin beside it in `weights.toml`."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TypeAlias

from sandbox.foreign import read_toml

Weights: TypeAlias = Mapping[str, float]


@cache
def weights(shelf: str, recipe: str) -> Weights:
    """The weights for a shelf and an embedding model; of the words alone where the model has none of its own."""
    tables = _tables()[shelf]
    return tables.get(recipe, tables["none"])


@cache
def pool(shelf: str) -> Mapping[str, int]:
    """How many rows a search gathers: by words, by vector, and how many places `around` the best `beside` of each."""
    return {name: int(value) for name, value in _tables()["pool"][shelf].items()}


@cache
def _tables() -> dict[str, dict[str, Weights]]:
    return read_toml(files(__package__).joinpath("weights.toml").read_text("utf-8"))
