"""What a picture's own header says of it, what is refused with a sentence, and what of it leaves this machine."""

import struct
import tracemalloc
import zlib

import pytest

from agent_core.base.picture_formats import without_metadata
from agent_core.base.pictures import (
    MAX_BYTES,
    UnusablePicture,
    is_picture,
    read_picture,
)
from tests.kit.pictures import GPS, chunk, exif, gif, jpeg, png, riff, segment, webp

WHOLE = {
    "png": (png(), "image/png"),
    "jpeg": (jpeg(), "image/jpeg"),
    "gif": (gif(), "image/gif"),
    "webp": (webp(), "image/webp"),
}
PRIVATE = {
    "png-exif": png(before=chunk(b"eXIf", GPS)),
    "png-text": png(before=chunk(b"tEXt", b"Comment\0" + GPS) + chunk(b"tIME", bytes(7))),
    "png-compressed": png(before=chunk(b"zTXt", b"Comment\0\0" + zlib.compress(GPS))),
    "png-unicode": png(before=chunk(b"iTXt", b"Comment\0\0\0\0\0" + GPS)),
    "jpeg-exif": jpeg(before=exif()),
    "jpeg-xmp": jpeg(before=segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + GPS)),
    "jpeg-iptc": jpeg(before=segment(0xED, b"Photoshop 3.0\0" + GPS)),
    "jpeg-comment": jpeg(before=segment(0xFE, GPS)),
    "jpeg-second-picture": jpeg() + jpeg(before=exif()),
    "gif-comment": gif(before=b"\x21\xfe" + bytes([len(GPS)]) + GPS + b"\0"),
    "gif-xmp": gif(before=b"\x21\xff\x0bXMP DataXMP" + bytes([len(GPS)]) + GPS + b"\0"),
    "webp-exif": webp(flags=0x08, after=riff(b"EXIF", GPS)),
    "webp-xmp": webp(flags=0x04, after=riff(b"XMP ", GPS)),
    "after-its-end": png() + GPS,
}
BAD = [
    pytest.param(b"BM" + bytes(60), "is a BMP picture", id="bmp"),
    pytest.param(b"\0\0\0\x18ftypheic" + bytes(60), "is a HEIC picture", id="heic"),
    pytest.param(b"no picture at all", "is no picture", id="text"),
    pytest.param(png(60_000, 60_000), "60,000 × 60,000 pixels", id="bomb-png"),
    pytest.param(jpeg(65_535, 65_535), "65,535 × 65,535 pixels", id="bomb-jpeg"),
    pytest.param(gif(65_535, 65_535), "65,535 × 65,535 pixels", id="bomb-gif"),
    pytest.param(webp(16_384, 16_384), "16,384 × 16,384 pixels", id="bomb-webp"),
    pytest.param(png(7_000, 7_000), "25,000,000 in all", id="too-many-pixels"),
    pytest.param(png(0, 5), "0 × 5 pixels", id="no-width"),
    pytest.param(jpeg(5, 0), "5 × 0 pixels", id="no-height"),
    pytest.param(png().replace(b"IHDR\0\0\0\4", b"IHDR\0\0\0\5"), "checksum", id="header-lies"),
    pytest.param(
        gif().replace(
            struct.pack("<HHHHB", 0, 0, 4, 3, 0), struct.pack("<HHHHB", 0, 0, 9_000, 3, 0)
        ),
        "9,000 × 3 pixels",
        id="frame-larger-than-its-screen",
    ),
    pytest.param(
        webp(9_000, 3, flags=0x10).replace(
            b"VP8X\x0a\0\0\0\x10\0\0\0\x27\x23\0", b"VP8X\x0a\0\0\0\x10\0\0\0\3\0\0"
        ),
        "9,000 × 3 pixels",
        id="canvas-smaller-than-its-pixels",
    ),
    *(pytest.param(data[:-1], "cut off", id=f"cut-{kind}") for kind, (data, _) in WHOLE.items()),
    *(
        pytest.param(data[: len(data) // 2], "broken", id=f"half-{kind}")
        for kind, (data, _) in WHOLE.items()
    ),
    pytest.param(b"\x89PNG\r\n\x1a\n" + chunk(b"IEND", b""), "its header", id="png-of-nothing"),
    pytest.param(b"\xff\xd8\xff\xd9", "no pixels", id="jpeg-of-nothing"),
    pytest.param(gif(frames=0), "no pixels", id="gif-of-nothing"),
    pytest.param(b"RIFF\4\0\0\0WEBP", "no pixels", id="webp-of-nothing"),
    pytest.param(png() + bytes(MAX_BYTES), "more than 5,000,000 bytes", id="too-large"),
]


@pytest.mark.parametrize("kind", WHOLE)
def test_the_header_says_type_and_size(kind: str) -> None:
    data, media_type = WHOLE[kind]
    picture = read_picture(data, "a.bin")
    assert (picture.media_type, picture.width, picture.height) == (media_type, 4, 3)
    assert is_picture(data[:16])
    assert picture.caption == f"a.bin: {kind.upper()}, 4 × 3, {len(data)} bytes"


@pytest.mark.parametrize(
    ("data", "remark"),
    [
        pytest.param(png(before=chunk(b"acTL", bytes(8))), "animated", id="png"),
        pytest.param(gif(frames=2), "animated", id="gif"),
        pytest.param(webp(flags=0x02), "animated", id="webp"),
        pytest.param(jpeg(components=4), "CMYK", id="cmyk"),
        pytest.param(jpeg(before=exif(6)), "turned", id="turned"),
    ],
)
def test_what_a_model_may_see_otherwise_is_in_the_caption(data: bytes, remark: str) -> None:
    assert remark in read_picture(data).caption


@pytest.mark.parametrize(("data", "says"), BAD)
def test_what_cannot_be_sent_is_a_sentence(data: bytes, says: str) -> None:
    with pytest.raises(UnusablePicture) as refused:
        read_picture(data, "photo.png")
    assert refused.value.message.startswith("photo.png ")
    assert says in refused.value.message
    assert refused.value.fix


@pytest.mark.parametrize("kind", PRIVATE)
def test_places_and_devices_are_not_sent(kind: str) -> None:
    data = PRIVATE[kind]
    before = read_picture(data)
    sent = without_metadata(data, before.media_type)
    after = read_picture(sent)
    assert b"GPS" in data or b"zTXt" in data
    assert GPS not in sent
    assert b"zTXt" not in sent
    assert (after.width, after.height, after.remark) == (before.width, before.height, before.remark)


@pytest.mark.parametrize("kind", WHOLE)
def test_a_picture_without_metadata_is_sent_as_it_is(kind: str) -> None:
    data, media_type = WHOLE[kind]
    assert without_metadata(data, media_type) == data


@pytest.mark.parametrize("kind", WHOLE)
def test_no_bytes_make_more_than_a_sentence(kind: str) -> None:
    data = WHOLE[kind][0]
    for place in range(len(data)):
        for byte in (0, 0x7F, 0xFF):
            changed = data[:place] + bytes([byte]) + data[place + 1 :]
            try:
                picture = read_picture(changed)
            except UnusablePicture:
                continue
            without_metadata(changed, picture.media_type)


def test_a_bomb_takes_no_memory() -> None:
    text = zlib.compress(bytes(64 << 20), 9)
    bomb = png(before=chunk(b"zTXt", b"Comment\0\0" + text))
    tracemalloc.start()
    without_metadata(bomb, read_picture(bomb).media_type)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20
