"""Facts of pictures that an example can state: they prove a function that draws, and tell one that draws otherwise."""

import struct
import zlib
from pathlib import Path

import pytest

from agent_core import Author, Workspace
from sandbox.inside.pictures import picture_facts
from tests.kit.pictures import chunk, jpeg, png

RED = (200, 0, 0)
BAR = '''
import struct
import zlib


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def bar(share: float, color: str) -> bytes:
    """Draw a bar on white, 20 pixels wide and 10 high, that is filled up to a share of its width.

    Args:
        share: How much is filled, from 0 to 1.
        color: The color of what is filled, in six hexadecimal digits.

    >>> facts = picture_facts(bar(0.5, "c80000"))
    >>> facts["type"], facts["width"], facts["height"]
    ('PNG', 20, 10)
    >>> picture_facts(bar(0.45, "c80000"))["colors"][:3]
    ['#c80000', '#ffffff', '#ffffff']
    >>> picture_facts(bar(1.0, "0000c8"))["colors"][6:]
    ['#0000c8', '#0000c8', '#0000c8']
    """
    filled = round(20 * share)
    row = bytes(1) + bytes.fromhex(color) * filled + bytes.fromhex("ffffff") * (20 - filled)
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", 20, 10, 8, 2, 0, 0, 0))
    pixels = _chunk(b"IDAT", zlib.compress(row * 10))
    return bytes.fromhex("89504e470d0a1a0a") + head + pixels + _chunk(b"IEND", b"")
'''


def filtered(way: int) -> bytes:
    """Return a picture of 3 × 3 pixels whose rows have this filter, which has no effect on the first column."""
    rows = b"".join(bytes([way]) + bytes(9) for _ in range(3))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 3, 8, 2, 0, 0, 0))
    return png()[:8] + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_a_png_has_its_size_and_nine_colors() -> None:
    facts = picture_facts(png(40, 30, color=RED))
    assert facts == {"type": "PNG", "width": 40, "height": 30, "colors": ["#c80000"] * 9}


@pytest.mark.parametrize("way", range(5))
def test_each_filter_of_png_is_read(way: int) -> None:
    assert picture_facts(filtered(way))["colors"] == ["#000000"] * 9


def test_other_files_have_a_size_or_are_no_pictures(tmp_path: Path) -> None:
    (path := tmp_path / "a.jpg").write_bytes(jpeg(40, 30))
    assert picture_facts(path) == {"type": "JPEG", "width": 40, "height": 30}
    with pytest.raises(ValueError, match="no PNG or JPEG"):
        picture_facts(b"GIF89a")


def test_a_large_picture_has_no_colors() -> None:
    assert picture_facts(png(2_000, 2_000)) == {"type": "PNG", "width": 2_000, "height": 2_000}


async def test_an_example_with_facts_proves_a_function_that_draws(tmp_path: Path) -> None:
    wrong = BAR.replace("color) * filled", "color) * (20 - filled)").replace("bar(", "rest(")
    async with Workspace.open(tmp_path) as workspace:
        create = workspace.functions.create
        verdict = await create("bar", BAR, reason="A test.", author=Author())
        assert (verdict.admitted, verdict.standing) == (True, "trial")
        refused = await create("rest", wrong, reason="A test.", author=Author())
        assert not refused.admitted
        assert "example-disagrees" in {problem.code for problem in refused.problems}
