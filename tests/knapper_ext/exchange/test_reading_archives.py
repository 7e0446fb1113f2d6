"""A library is read as texts, whatever its archive contains: no path escapes, no link is followed, all is limited."""

import gzip
import io
import os
import stat
import tarfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from agent_core.base.errors import UsageError
from knapper_ext.exchange.library_files import LibraryLimits, read_library

GOOD = "def f() -> int:\n    return 1\n"
SMALL = LibraryLimits(
    members=20, file_bytes=1_000, text_bytes=3_000, archive_bytes=200_000, unpacked_bytes=100_000
)


def a_zip(path: Path, members: dict[str, str], modes: dict[str, int] | None = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (modes or {}).get(name, 0) << 16
            archive.writestr(info, text)
    return path


def a_tar(path: Path, members: dict[str, str], kinds: dict[str, bytes] | None = None) -> Path:
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.type = (kinds or {}).get(name, tarfile.REGTYPE)
            content = text.encode() if info.isreg() else b""
            info.size, info.linkname = len(content), "" if info.isreg() else text
            archive.addfile(info, io.BytesIO(content))
    return path


def a_folder(path: Path, members: dict[str, str]) -> Path:
    for name, text in members.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path


MAKERS = [
    pytest.param(lambda folder, held: a_zip(folder / "lib.zip", held), id="zip"),
    pytest.param(lambda folder, held: a_tar(folder / "lib.tar", held), id="tar"),
    pytest.param(lambda folder, held: a_tar(folder / "lib.tar.gz", held), id="tar.gz"),
    pytest.param(lambda folder, held: a_folder(folder / "lib", held), id="folder"),
]
Maker = Callable[[Path, dict[str, str]], Path]


@pytest.mark.parametrize("make", MAKERS)
def test_every_form_of_a_library_gives_the_same_texts(tmp_path: Path, make: Maker) -> None:
    path = make(tmp_path, {"a.py": GOOD, "sub/b.py": GOOD, "README.md": "no", ".git/c.py": GOOD})
    found = read_library(path)
    assert found.files == {"a.py": GOOD, "sub/b.py": GOOD}
    assert found.problems == []


def test_a_folder_around_everything_is_taken_off_unless_it_is_a_package(tmp_path: Path) -> None:
    wrapped = read_library(
        a_zip(tmp_path / "w.zip", {"lib-1.0/src/a.py": GOOD, "lib-1.0/src/b.py": GOOD})
    )
    assert set(wrapped.files) == {"a.py", "b.py"}
    package = read_library(a_zip(tmp_path / "p.zip", {"pkg/__init__.py": "", "pkg/a.py": GOOD}))
    assert set(package.files) == {"pkg/__init__.py", "pkg/a.py"}


ESCAPES = ["../up.py", "/etc/evil.py", "a/../../b.py", "..\\up.py", "C:/x.py", "a\n.py"]


@pytest.mark.parametrize("make", [a_zip, a_tar], ids=["zip", "tar"])
def test_names_that_lead_out_are_told_and_not_taken(tmp_path: Path, make: Maker) -> None:
    found = read_library(
        make(tmp_path / "lib.archive", {**dict.fromkeys(ESCAPES, GOOD), "good.py": GOOD})
    )
    assert (set(found.files), [one.code for one in found.problems]) == (
        {"good.py"},
        ["unsafe-path"] * len(ESCAPES),
    )
    assert not any("\n" in str(one) for one in found.problems)


def test_links_and_devices_in_a_tar_are_not_followed(tmp_path: Path) -> None:
    kinds = {
        "a.py": tarfile.SYMTYPE,
        "b.py": tarfile.LNKTYPE,
        "c.py": tarfile.CHRTYPE,
        "d.py": tarfile.FIFOTYPE,
    }
    held = {"good.py": GOOD, **dict.fromkeys(kinds, "good.py"), "a.py": "/etc/passwd"}
    found = read_library(a_tar(tmp_path / "lib.tar", held, kinds))
    assert (set(found.files), [one.code for one in found.problems]) == ({"good.py"}, ["link"] * 4)


def test_links_in_a_zip_and_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    zipped = a_zip(
        tmp_path / "lib.zip",
        {"evil.py": "/etc/passwd", "good.py": GOOD},
        {"evil.py": stat.S_IFLNK | 0o777},
    )
    assert [one.code for one in read_library(zipped).problems] == ["link"]
    folder = a_folder(tmp_path / "lib", {"good.py": GOOD})
    (tmp_path / "secret.py").write_text("KEY = 1\n")
    (folder / "evil.py").symlink_to(tmp_path / "secret.py")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.py")
    found = read_library(folder)
    assert (set(found.files), [one.code for one in found.problems]) == (
        {"good.py"},
        ["link", "link"],
    )


def a_bomb(path: Path) -> Path:
    with gzip.open(path, "wb") as stream:
        stream.write(b"\1" * 300_000)
    return path


TOO_MUCH = [
    pytest.param(
        lambda at: a_zip(at / "l.zip", {f"{n}.py": GOOD for n in range(30)}),
        "members",
        id="zip-count",
    ),
    pytest.param(
        lambda at: a_tar(at / "l.tar", {f"{n}.txt": "" for n in range(30)}),
        "members",
        id="tar-count",
    ),
    pytest.param(
        lambda at: a_zip(at / "l.zip", {f"{n}.py": "#" * 900 for n in range(9)}),
        "MiB of Python",
        id="text",
    ),
    pytest.param(lambda at: a_bomb(at / "l.tar.gz"), "read as a library|unpacks to", id="noise"),
    pytest.param(
        lambda at: a_tar(at / "l.tar.gz", {"big": "\0" * 150_000, "z.py": GOOD}),
        "unpacks",
        id="bomb",
    ),
    pytest.param(
        lambda at: (at / "l.zip").write_bytes(b"x" * 300_000) and at / "l.zip",
        "larger than",
        id="size",
    ),
    pytest.param(
        lambda at: (at / "l.zip").write_bytes(b"no archive") and at / "l.zip",
        "read as a library",
        id="junk",
    ),
]


@pytest.mark.parametrize(("make", "said"), TOO_MUCH)
def test_a_library_that_is_far_too_much_is_a_wrong_use(
    tmp_path: Path, make: Callable[[Path], Path], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        read_library(make(tmp_path), SMALL)


@pytest.mark.parametrize(
    "says", [pytest.param(30_000_000, id="honest"), pytest.param(100, id="lying")]
)
def test_a_member_that_unpacks_to_far_too_much_is_read_no_further(
    tmp_path: Path, says: int
) -> None:
    path = a_zip(tmp_path / "lib.zip", {"bomb.py": "#" * 30_000_000, "good.py": GOOD})
    real, said = (30_000_000).to_bytes(4, "little"), says.to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(real, said))
    tracemalloc.start()
    found = read_library(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert set(found.files) == {"good.py"}
    assert [one.code for one in found.problems] in (["too-large"], ["unreadable"])
    assert peak < 5_000_000


def test_an_encrypted_member_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    path = a_zip(tmp_path / "lib.zip", {"closed.py": GOOD, "good.py": GOOD})
    content = bytearray(path.read_bytes())
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(magic) + at] |= 1
    path.write_bytes(bytes(content))
    found = read_library(path)
    assert (set(found.files), [one.code for one in found.problems]) == ({"good.py"}, ["unreadable"])


def header(kind: bytes, size: int, name: str = "x") -> bytes:
    """Return one block of a tar."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def blocks(content: bytes) -> bytes:
    """Return content in whole blocks."""
    return content + bytes(-len(content) % 512)


PAX, NAME = tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME
HOSTILE_TARS: dict[str, Callable[[], bytes]] = {  # made when they are tried: some are large
    "digits": lambda: header(PAX, 100_000) + blocks(b"1" * 100_000),
    "digits of a small header": lambda: (
        header(PAX, 60_000) + blocks(b"60000 a=" + b"1" * 59_991 + b"\n")
    ),
    "a global header": lambda: (
        header(tarfile.XGLTYPE, 60_000) + blocks(b"60000 a=" + b"1" * 59_991 + b"\n")
    ),
    "many small records": lambda: header(PAX, 60_000) + blocks(b"6 a=b\n" * 10_000),
    "many headers": lambda: (header(PAX, 60_000) + blocks(b"6 a=b\n" * 10_000)) * 200,
    "empty headers": lambda: header(PAX, 0) * 100_000,
    "a long name": lambda: header(NAME, 200 << 20) + bytes(200 << 20),
    "a long link": lambda: header(tarfile.GNUTYPE_LONGLINK, 200 << 20) + bytes(200 << 20),
    "a record of size 0": lambda: header(PAX, 6) + blocks(b"0 a=b\n"),
    "a record past the end": lambda: header(PAX, 6) + blocks(b"9999999999 a=b\n"),
    "a sparse file": lambda: header(tarfile.GNUTYPE_SPARSE, 1 << 30, "s.py") + bytes(4096),
    "a size that lies": lambda: header(tarfile.REGTYPE, 1 << 33, "big.py") + b"x" * 1024,
    "many members": lambda: header(tarfile.REGTYPE, 0, "a.txt") * 50_000,
    "a cut block": lambda: header(tarfile.REGTYPE, 10, "a.py")[:300],
}


@pytest.mark.parametrize("kind", HOSTILE_TARS)
def test_a_hostile_header_of_a_tar_costs_little_time_and_memory(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "lib.tar.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(HOSTILE_TARS[kind]())
    tracemalloc.start()
    began = time.process_time()
    with suppress(UsageError):
        read_library(path)
    seconds, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000
    assert seconds < 5


def test_long_names_of_both_kinds_are_read(tmp_path: Path) -> None:
    for kind in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        name = f"{'long' * 40}/é{'name' * 20}.py"
        with tarfile.open(tmp_path / "lib.tar", "w", format=kind) as archive:
            info = tarfile.TarInfo(name)
            info.size = len(GOOD)
            archive.addfile(info, io.BytesIO(GOOD.encode()))
        assert list(read_library(tmp_path / "lib.tar").files.values()) == [GOOD]
