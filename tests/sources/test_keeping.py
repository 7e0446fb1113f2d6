"""Sources are stored once per content, replaced when they change, and resumed where they stopped."""

import asyncio
import sys
from collections import Counter
from pathlib import Path

import pytest

from agent_core.base.errors import UsageError
from agent_core.memory.source_catalog import BATCH
from agent_core.memory.sources import Unreadable
from agent_core.memory.sources.kinds import read

from .support import desk

ADD = """
import asyncio, sys
from pathlib import Path
from tests.sources.support import desk
def hear(done, total, name):
    print(done, total, flush=True)
async def main():
    async with desk(Path(sys.argv[1])) as at:
        await at.sources.add(sys.argv[2], hear)
asyncio.run(main())
"""


def rows_of(folder: Path, rows: int = 18_000) -> Path:
    """Write a table that makes some thousand passages."""
    path = folder / "people.csv"
    path.write_text(
        "name,city\n" + "".join(f"Person number {n} of all,City {n % 97}\n" for n in range(rows))
    )
    return path


async def test_a_source_is_kept_with_its_name_and_places(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Herons\n\nThey fish at dusk.\n")
    async with desk(tmp_path) as at:
        (report,) = await at.sources.add(str(tmp_path / "a.md"), name="birds")
        (row,) = await at.passages()
        assert (report.outcome, report.passages, report.kind) == ("added", 1, "markdown")
        assert (row.source, row.place, row.document, row.n) == (
            "birds",
            "Herons, lines 1–3",
            report.hash,
            0,
        )
        assert "birds, Herons, lines 1–3" in str(await at.archival.search("when do herons fish"))


async def test_the_same_content_is_kept_once_whatever_its_name(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("Herons fish at dusk.")
    async with desk(tmp_path) as at:
        first, again = [
            (await at.sources.add(str(tmp_path / name)))[0] for name in ("a.txt", "b.txt")
        ]
        assert (first.outcome, again.outcome, again.name) == ("added", "there", first.name)
        assert len(await at.passages()) == 1


async def test_a_file_that_changed_takes_the_place_of_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    async with desk(tmp_path) as at:
        for text in ("Herons fish at dusk.", "Herons fish at dawn."):
            path.write_text(text)
            (report,) = await at.sources.add(str(path))
        assert report.outcome == "replaced"
        assert [row.text for row in await at.passages()] == ["Herons fish at dawn."]
        assert len(await at.sources.list()) == 1


async def test_a_folder_adds_its_files_and_tells_what_it_left_out(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    for name in (
        "a.txt",
        "deep/b.md",
        ".hidden",
        ".git/config",
        ".knapper/state",
        "__pycache__/c.txt",
        "d.bin",
    ):
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_bytes(b"\x00" * 99 if name == "d.bin" else name.encode())
    (docs / "link.txt").symlink_to("/etc/hostname")
    async with desk(tmp_path) as at:
        reports = await at.sources.add(str(docs), name="docs")
        found = {report.name: report.outcome for report in reports}
        assert found == {"docs/a.txt": "added", "docs/d.bin": "refused", "docs/deep/b.md": "added"}


async def test_a_source_is_removed_with_its_passages(tmp_path: Path) -> None:
    for name in ("docs/a.txt", "docs/deep/b.txt", "c.txt", "d.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"It is {name}.")
    async with desk(tmp_path) as at:
        await at.sources.add(str(tmp_path / "docs"), name="docs")
        (c,) = await at.sources.add(str(tmp_path / "c.txt"), name="c")
        await at.sources.add(str(tmp_path / "d.txt"), name="d")
        assert [row.name for row in await at.sources.remove("docs")] == [
            "docs/a.txt",
            "docs/deep/b.txt",
        ]
        assert [row.name for row in await at.sources.remove(c.hash[:8])] == ["c"]
        assert [row.source for row in await at.passages()] == ["d"]
        with pytest.raises(UsageError, match="has no source docs"):
            await at.sources.remove("docs")


async def test_vectors_are_made_for_all_of_a_source(tmp_path: Path) -> None:
    async with desk(tmp_path, meaning=True) as at:
        await at.sources.add(str(rows_of(tmp_path, 2_000)))
        assert await at.archival.vectors.embed() == 0


async def test_what_was_cancelled_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path, told = rows_of(tmp_path), list[int]()
    async with desk(tmp_path) as at:
        adding = asyncio.current_task()
        assert adding is not None
        with pytest.raises(asyncio.CancelledError):
            await at.sources.add(
                str(path), lambda done, *_: (adding.cancel(), None)[1] if done == BATCH else None
            )
        adding.uncancel()
        (row,) = await at.sources.list()
        assert (row.complete, row.done) == (False, BATCH)
        (report,) = await at.sources.add(str(path), lambda done, *_: told.append(done))
        assert (report.outcome, told[0]) == ("resumed", BATCH)
        assert [row.text for row in await at.passages()] == [
            chunk.text for chunk in read("a.csv", path.read_bytes()).chunks
        ]


@pytest.mark.slow
async def test_what_was_killed_goes_on_and_keeps_no_passage_twice(tmp_path: Path) -> None:
    path = rows_of(tmp_path)
    wanted = [chunk.text for chunk in read("a.csv", path.read_bytes()).chunks]
    for kill_at in (0, BATCH, BATCH):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", ADD, str(tmp_path), str(path), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        while line := await process.stdout.readline():
            if int(line.split()[0]) >= kill_at:
                break
        process.kill()
        await process.communicate()
    async with desk(tmp_path) as at:
        await at.sources.add(str(path))
        assert [row.text for row in await at.passages()] == wanted
        assert [row.complete for row in await at.sources.list()] == [True]


async def test_two_at_once_keep_no_passage_twice(tmp_path: Path) -> None:
    path = rows_of(tmp_path, 10_000)
    async with desk(tmp_path) as one, desk(tmp_path) as other:
        await asyncio.gather(one.sources.add(str(path)), other.sources.add(str(path)))
        (document,) = await one.sources.list()
        counted = Counter(row.n for row in await one.passages())
    assert (document.complete, document.done) == (True, document.total)
    assert counted == dict.fromkeys(range(document.total), 1)


@pytest.mark.parametrize(
    ("place", "says"),
    [
        pytest.param("missing.txt", "No such file", id="no file"),
        pytest.param("ftp://example.org/a", "not a URL that can be fetched", id="another scheme"),
        pytest.param("/dev/zero", "It is not a file", id="a device without end"),
        pytest.param("empty", "holds no file", id="an empty folder"),
    ],
)
async def test_a_place_that_cannot_be_read_is_an_error(
    tmp_path: Path, place: str, says: str
) -> None:
    (tmp_path / "empty").mkdir()
    async with desk(tmp_path) as at:
        with pytest.raises(Unreadable, match=says):
            await at.sources.add(place if "/" in place else str(tmp_path / place))
