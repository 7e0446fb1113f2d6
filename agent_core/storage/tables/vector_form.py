"""The form of vectors: little-endian float32, with the same number of components throughout a lane."""

from array import array
from collections.abc import Iterable
from math import isfinite
from typing import Final

from agent_core.base.errors import StorageError

FLOAT: Final = 4  # bytes
WIDEST: Final = 8_192  # components, the limit of sqlite-vec


def check_vectors(space: str, size: int, vectors: Iterable[tuple[int, bytes]]) -> None:
    """Reject vectors that a search cannot compare: it compares all vectors of a lane with one vector.

    `size` is that of the existing vectors in bytes; 0 if there are none.

    Raises:
        StorageError: a vector is invalid or has another size.
    """
    for seq, vector in vectors:
        components = array("f", vector) if len(vector) % FLOAT == 0 else ()
        if not (0 < len(components) <= WIDEST and isfinite(sum(components))):
            raise StorageError(f"The vector of row {seq} is none.")
        size = size or len(vector)
        if len(vector) != size:
            raise StorageError(
                f"Vectors of the space `{space}` have {size // FLOAT} components, and some of these have not.",
                fix="Give the vectors of each model and size a space of their own.",
            )
