"""Pictures made byte by byte: whole PNG files, and headers of the others with a few bytes in the place of pixels."""

import struct
import zlib

GPS = b"GPS 50.73N 7.10E Camera-1234"


def chunk(kind: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG file."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    width: int = 4, height: int = 3, *, before: bytes = b"", color: tuple[int, int, int] = (9, 9, 9)
) -> bytes:
    """Return a PNG file of one color, with chunks `before` its pixels."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    rows = (b"\0" + bytes(color) * width) * height if width * height <= 1 << 22 else b"\0"
    pixels = chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + header + before + pixels + chunk(b"IEND", b"")


def segment(marker: int, data: bytes) -> bytes:
    """Return a segment of a JPEG file."""
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def exif(turned: int = 6) -> bytes:
    """Return the Exif segment of a photo that is turned, with a place."""
    tag = struct.pack(">HHIHH", 0x0112, 3, 1, turned, 0)
    return segment(0xE1, b"Exif\0\0MM\0*" + struct.pack(">IH", 8, 1) + tag + bytes(4) + GPS)


def jpeg(width: int = 4, height: int = 3, *, before: bytes = b"", components: int = 3) -> bytes:
    """Return the parts of a JPEG file, with segments `before` its size."""
    frame = struct.pack(">BHHB", 8, height, width, components) + b"\1\x11\0" * components
    scan = bytes([components]) + b"\1\0" * components + b"\0\x3f\0"
    pixels = b"\x12\xff\x00\x34\xff\xd0\x56"
    parts = before + segment(0xC0, frame) + segment(0xDA, scan) + pixels
    return b"\xff\xd8" + parts + b"\xff\xd9"


def gif(width: int = 4, height: int = 3, *, frames: int = 1, before: bytes = b"") -> bytes:
    """Return the parts of a GIF file, with blocks `before` its frames."""
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\2\2\x4c\1\0"
    screen = struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6)
    return b"GIF89a" + screen + before + frame * frames + b"\x3b"


def webp(width: int = 4, height: int = 3, *, flags: int = 0, after: bytes = b"") -> bytes:
    """Return the parts of a WebP file, with chunks `after` its pixels."""
    pixels = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + b"\0"
    parts = riff(b"VP8L", pixels) + after
    if flags:
        size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        parts = riff(b"VP8X", bytes([flags, 0, 0, 0]) + size) + parts
    return b"RIFF" + struct.pack("<I", 4 + len(parts)) + b"WEBP" + parts


def riff(kind: bytes, data: bytes) -> bytes:
    """Return a chunk of a WebP file."""
    return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
