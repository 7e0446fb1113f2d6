"""The largest window that fits this machine's memory. `context_size` is pure; `available` asks the kernel."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent_core.base.errors import ModelError

SIZES: Final = (16_384, 8_192, 4_096)
"""Windows in tokens, the one to take first."""

# For each token: 28 layers, 2 heads of 128 numbers, a key and a value, 2 bytes each. A smaller model needs less.
_TOKEN_BYTES: Final = 28 * 2 * 128 * 2 * 2
_ENGINE_BYTES: Final = 256 << 20
_SPARE: Final = 1 << 30
"""Left to everybody else before a window is made larger than the smallest."""

_LOWER: Final = "Set `model.context_tokens` lower, or "
_CLOSE: Final = "Close other programs, or "


def needed(weights: int, context: int) -> int:
    """Return the bytes that weights of this size need with such a window: they are in memory, and partly a second
    time.
    """
    return weights * 5 // 4 + _ENGINE_BYTES + context * _TOKEN_BYTES


def context_size(free: int | None, weights: int, requested: int | None = None) -> int:
    """Return the window for this much free memory (None: unknown); a requested size is used if it fits at all.

    Raises:
        ModelError: there is not even room for the smallest.
    """
    if free is None:
        return requested or SIZES[1]
    least = requested or SIZES[-1]
    if free < needed(weights, least):
        raise ModelError(
            f"The local model needs {needed(weights, least) / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free.",
            fix=(_LOWER if least > SIZES[-1] else _CLOSE) + "take a smaller model: toolwright models list",
        )
    if requested:
        return requested
    return next((size for size in SIZES[:-1] if free >= needed(weights, size) + _SPARE), SIZES[-1])


def available(root: Path = Path("/")) -> int | None:
    """Return the bytes available without swapping, within this control group's limit; None if unknown."""
    free = _fields(root / "proc/meminfo").get("MemAvailable")
    if free is None:
        return None
    return min([free << 10, *_left_in_group(root / "sys/fs/cgroup")])


def _left_in_group(group: Path) -> list[int]:
    try:
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        used = int((group / "memory.current").read_text(encoding="ascii"))
        cached = _fields(group / "memory.stat").get("inactive_file", 0)
    except (OSError, ValueError):  # no limit is the word `max`
        return []
    return [max(limit - used + cached, 0)]


def _fields(file: Path) -> Mapping[str, int]:
    try:
        lines = [line.replace(":", " ").split() for line in file.read_text(encoding="ascii").splitlines()]
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in lines if len(words) > 1}
