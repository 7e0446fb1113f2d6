"""The window size derived from the free memory."""

from pathlib import Path

import pytest

from agent_core.base.errors import ModelError
from agent_core.model.local.server import available, context_size

GB = 10**9
BIG, SMALL = 1_117_320_768, 491_400_064
MEMINFO = "MemTotal: 8000000 kB\nMemFree: 10 kB\nMemAvailable: 4000000 kB\nHugePages_Total: 0\n"


def test_the_window_is_as_large_as_the_memory_allows() -> None:
    rows: list[tuple[str, int | None, int, int | None, int]] = [
        ("unknown", None, BIG, None, 8_192),
        ("unknown-wanted", None, BIG, 20_000, 20_000),
        ("plenty", 24 * GB, BIG, None, 16_384),
        ("four-gigabyte-machine", int(3.1 * GB), BIG, None, 8_192),
        ("little", int(1.9 * GB), BIG, None, 4_096),
        ("little-wanted", int(1.9 * GB), BIG, 512, 512),
        ("small-weights", int(2.5 * GB), SMALL, None, 16_384),
        ("small-weights-little", int(1.1 * GB), SMALL, None, 4_096),
    ]
    for case, free, weights, wanted, size in rows:
        assert context_size(free, weights, wanted) == size, case


def test_too_little_memory_is_said_before_anything_is_loaded() -> None:
    rows: list[tuple[str, int, int | None, str, str]] = [
        ("any", GB, None, r"needs 1\.8 GB of memory, and 1\.0 GB are free", "Close other programs"),
        ("wanted", 2 * GB, 32_768, r"needs 2\.6 GB", "context_tokens` lower"),
    ]
    for case, free, wanted, said, fix in rows:
        with pytest.raises(ModelError, match=said) as caught:
            context_size(free, BIG, wanted)
        assert fix in caught.value.fix, case


@pytest.mark.parametrize(
    ("group", "free"),
    [
        pytest.param({}, 4_096_000_000, id="no-group"),
        pytest.param({"memory.max": "max\n", "memory.current": "5\n"}, 4_096_000_000, id="no-limit"),
        pytest.param({"memory.max": "3000\n", "memory.current": "2000\n"}, 1_000, id="limit"),
        pytest.param(
            {"memory.max": "3000\n", "memory.current": "2000\n", "memory.stat": "anon 1\ninactive_file 500\n"},
            1_500,
            id="cache-counts-as-free",
        ),
    ],
)
def test_free_memory_is_the_machines_within_the_limit_of_the_group(
    tmp_path: Path, group: dict[str, str], free: int
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text(MEMINFO)
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    for name, text in group.items():
        (tmp_path / "sys/fs/cgroup" / name).write_text(text)
    assert available(tmp_path) == free


def test_memory_that_nobody_tells_of_is_not_guessed(tmp_path: Path) -> None:
    assert available(tmp_path) is None
