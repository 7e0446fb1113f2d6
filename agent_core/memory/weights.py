"""The weight of each signal in a search. The data and its origin are in `weights.toml`."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TypeAlias

from sandbox.wire.foreign import read_toml

Weights: TypeAlias = Mapping[str, float]


@cache
def weights(shelf: str, recipe: str) -> Weights:
    """Return the weights for a shelf and an embedding model; a model without its own gets those of the words alone."""
    tables = _tables()[shelf]
    return tables.get(recipe, tables["none"])


@cache
def pool(shelf: str) -> Mapping[str, int]:
    """Return how many rows a search collects: by words, by vector, and how many positions `around` the best `beside` of
    each.
    """
    return {name: int(value) for name, value in _tables()["pool"][shelf].items()}


@cache
def _tables() -> dict[str, dict[str, Weights]]:
    return read_toml(files(__package__).joinpath("weights.toml").read_text("utf-8"))
