"""Pictures in: each way to a model with sight, without and over Responses; kept once, counted, forgotten, bounded."""

import json
import os
import sqlite3
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

import pytest

from agent_core import Workspace
from agent_core.api.page_operations import step_parts, steps
from agent_core.base.pictures import MAX_PICTURES, PictureFile, UnusablePicture
from tests.interfaces.support import flags
from tests.kit import Ask, Expect, Fail, Repeat, Say, Script, Seen, Wanted, scripted
from tests.kit.pictures import GPS, exif, jpeg, png
from tests.kit.program import knapper, surroundings
from tests.pictures.support import BLUE, CAPTION, RED, URL, parts_of, sees


def blind(seen: Seen) -> str | None:
    """Expect a request that tells of a picture in words."""
    is_told = "You are not shown: photo.png: PNG, 40 × 30" in seen.text
    return None if is_told and not parts_of(seen) else seen.text[-400:]


def kept(root: Path) -> list[str]:
    """Return the names of the pictures that are kept."""
    folder = root / ".knapper" / "pictures"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def test_a_file_is_sent_as_a_picture_and_kept_once_in_private(tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(RED)
    assert knapper("init", cwd=tmp_path).returncode == 0
    asked = ("--message", "What is it?", "--file", "photo.png")
    script = [Expect(Say("Red."), sees(URL)), Expect(Say("Red."), sees(URL, URL))]
    with scripted(script) as model:
        for _ in range(2):
            done = knapper("run", *flags(model), *asked, cwd=tmp_path)
            assert (done.returncode, done.stdout) == (0, "Red.\n"), done.stderr
        assert f"What is it?\n{CAPTION}" in model.requests[0].text
    (name,) = kept(tmp_path)
    assert (tmp_path / ".knapper" / "pictures" / name).stat().st_mode & 0o777 == 0o600
    log = knapper("log", cwd=tmp_path)
    assert CAPTION in log.stdout


async def test_a_picture_is_in_recall_in_the_window_and_in_what_is_forgotten(
    tmp_path: Path,
) -> None:
    with scripted([Say("Red."), Say("Blue.")]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            empty = (await agent.prompt()).tokens
            await agent.ask("What is it?", pictures=[PictureFile(png(1_000, 750), "large.png")])
            assert (await agent.prompt()).tokens > empty + 1_000
            await agent.ask("And this?", pictures=[tmp_path_file(tmp_path, BLUE)])
    found = knapper("memory", "search", "large.png", cwd=tmp_path)
    assert "large.png: PNG, 1,000 × 750" in found.stdout
    assert len(kept(tmp_path)) == 2
    done = knapper("memory", "forget", "--turn", "last", "-y", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(kept(tmp_path)) == 1


def tmp_path_file(folder: Path, data: bytes) -> Path:
    """Write a picture, and return its path."""
    path = folder / "photo.png"
    path.write_bytes(data)
    return path


async def test_a_model_without_sight_is_told_and_later_pictures_are_tried_again(
    tmp_path: Path,
) -> None:
    refusal = Fail(400, "no such content")
    script: Script = [
        refusal,
        Expect(Say("I cannot see it."), blind),
        Expect(Say("Still not."), blind),
        Expect(refusal, sees(URL.replace(b64encode(RED).decode(), b64encode(BLUE).decode()))),
        Say("Nor this."),
    ]
    with scripted(script) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            warned = [
                event
                async for event in agent.turn(
                    "What is it?", pictures=[PictureFile(RED, "photo.png")]
                )
                if event.type == "warning"
            ]
            assert "did not take the pictures" in warned[0].message  # type: ignore[union-attr]
            await agent.ask("Sure?")
            assert await agent.ask("This?", pictures=[BLUE]) == "Nor this."


async def test_a_refusal_for_another_reason_does_not_blame_the_pictures(tmp_path: Path) -> None:
    script: Script = [Fail(400, "bad"), Fail(400, "bad"), Expect(Say("Red."), sees(URL))]
    with scripted(script) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            with pytest.raises(Exception, match="bad"):
                await agent.ask("What is it?", pictures=[RED])
            assert await agent.ask("Again?") == "Red."


async def test_what_is_sent_has_no_place_and_what_is_kept_is_the_original(tmp_path: Path) -> None:
    photo = jpeg(before=exif())
    with scripted([Say("A house.")]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            await (await workspace.agent()).ask("What is it?", pictures=[photo])
        (part,) = parts_of(model.requests[0])
    assert b64encode(GPS).decode()[:20] not in part["image_url"]["url"]
    (name,) = kept(tmp_path)
    assert (tmp_path / ".knapper" / "pictures" / name).read_bytes() == photo


async def test_a_request_without_pictures_has_plain_texts(tmp_path: Path) -> None:
    with scripted([Say("Hello.")]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            await (await workspace.agent()).ask("Hello?")
        assert all(isinstance(row["content"], str) for row in model.requests[0].messages)
    assert kept(tmp_path) == []


async def test_of_many_pictures_the_newest_are_in_sight_and_memory_is_bounded(
    tmp_path: Path,
) -> None:
    with scripted([Repeat(Say("Seen."))]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            for number in range(50):
                await agent.ask("And this?", pictures=[png(40 + number, 30)])
        counts = [len(parts_of(seen)) for seen in model.requests]
    assert max(counts) == MAX_PICTURES
    assert min(counts[MAX_PICTURES:]) >= MAX_PICTURES // 2
    assert "You are not shown: picture: PNG, 40 × 30" in model.requests[-1].text
    assert len(kept(tmp_path)) == 50


async def test_a_hundred_at_once_are_a_sentence(tmp_path: Path) -> None:
    with scripted([]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            with pytest.raises(UnusablePicture, match="100 pictures, and at most 20"):
                await agent.ask("What?", pictures=[RED] * 100)
            assert await agent.waiting() == []


MEMORY_LIMIT_KIB: Final = 300_000


def test_files_that_cannot_be_sent_are_a_sentence_each_within_bounds(tmp_path: Path) -> None:
    with (tmp_path / "huge.png").open("wb") as file:
        file.write(RED)
        file.truncate(200 << 20)
    (tmp_path / "half.png").write_bytes(RED[:40])
    (tmp_path / "photo.heic").write_bytes(b"\0\0\0\x18ftypheic" + bytes(60))
    with scripted([]) as model:
        for name, says in (
            ("huge.png", "has more than 5,000,000 bytes"),
            ("half.png", "cut off"),
            ("photo.heic", "is a HEIC picture"),
        ):
            asked = ("--message", "What?", "--file", name)
            command = [sys.executable, "-m", "knapper", "run", *flags(model), *asked]
            said = tmp_path / "said"
            with said.open("wb") as stream:
                run = subprocess.Popen(
                    command,
                    cwd=tmp_path,
                    env=surroundings({}),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=stream,
                )
            _, status, used = os.wait4(run.pid, 0)
            run.returncode = os.waitstatus_to_exitcode(status)
            assert (run.returncode, says in said.read_text()) == (2, True), said.read_text()
            assert used.ru_maxrss < MEMORY_LIMIT_KIB
    assert kept(tmp_path) == []


async def test_a_picture_that_is_gone_or_changed_is_told_in_words(tmp_path: Path) -> None:
    with scripted([Say("Red."), Expect(Say("I cannot see it."), blind)]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            await agent.ask("What is it?", pictures=[tmp_path_file(tmp_path, RED)])
            (name,) = kept(tmp_path)
            (tmp_path / ".knapper" / "pictures" / name).write_bytes(BLUE)
            await agent.models.aclose()
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            await (await workspace.agent()).ask("Sure?")


async def test_responses_take_pictures_in_messages_and_in_outputs(tmp_path: Path) -> None:
    draw = '''
def draw() -> bytes:
    """Return a picture.

    >>> draw()[:4]
    b'\\x89PNG'
    """
    return PICTURE
'''.replace("PICTURE", repr(RED))

    def output(seen: Seen) -> str | None:
        outputs = [row for row in seen.raw["input"] if row.get("type") == "function_call_output"]
        parts = outputs[-1]["output"]
        is_shown = isinstance(parts, list) and parts[1]["type"] == "input_image"
        return None if is_shown and parts[1]["image_url"] == URL else f"it was sent {parts}"[:300]

    script: Script = [Ask(Wanted("draw")), Expect(Say("Red."), output)]
    with scripted(script) as model:
        options = {"model.api": "responses"}
        async with Workspace.open(
            tmp_path, environment=model.environment, flags=options
        ) as workspace:
            (tmp_path / "functions").mkdir(exist_ok=True)
            (tmp_path / "functions" / "drawn.py").write_text(draw)
            await workspace.functions.reload()
            assert await (await workspace.agent()).ask("Draw.") == "Red."


async def test_a_picture_travels_with_its_agents_file_and_is_shown_there(tmp_path: Path) -> None:
    (here := tmp_path / "here").mkdir()
    (there := tmp_path / "there").mkdir()
    with scripted([Say("Red."), Expect(Say("It was red."), sees(URL))]) as model:
        async with Workspace.open(here, environment=model.environment) as workspace:
            agent = await workspace.agent()
            await agent.ask("What is it?", pictures=[PictureFile(RED, "photo.png")])
            document = await workspace.export_agent()
        async with Workspace.open(there, environment=model.environment) as workspace:
            copy = await workspace.import_agent(document, "twin")
            assert await copy.ask("What was it?") == "It was red."
            assert await workspace.export_agent("twin") != ""
    assert kept(here) == kept(there)


async def test_a_file_shows_no_picture_of_the_workspace_that_reads_it(tmp_path: Path) -> None:
    with scripted([Say("Red."), Expect(Say("I see none."), sees())]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            await agent.ask("What is it?", pictures=[PictureFile(RED, "photo.png")])
            document = json.loads(await workspace.export_agent())
            document["texts"] = {
                name: text
                for name, text in document["texts"].items()
                if not text.startswith("iVBO")
            }
            stranger = await workspace.import_agent(json.dumps(document), "stranger")
            assert await stranger.ask("What was it?") == "I see none."


@pytest.mark.parametrize(
    "lie",
    [
        {"media_type": "image/gif"},
        {"media_type": "image/jpeg"},
        {"media_type": "image/webp"},
        {"media_type": "image/svg+xml"},
        {"width": -(10**9), "height": 10**6},
        {"size": -1},
        {"size": 2**62, "width": 2**62},
        {"remark": "not a picture at all"},
    ],
)
async def test_a_picture_in_a_file_is_what_its_own_header_says(
    tmp_path: Path, lie: dict[str, object]
) -> None:
    with scripted([Say("Red."), Expect(Say("It was red."), sees(URL))]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            await agent.ask("What is it?", pictures=[PictureFile(RED, "photo.png")])
            document = await workspace.export_agent()
            told = json.loads(document)
            (row,) = _rows(told)
            truth = {**row}
            row |= lie
            stranger = await workspace.import_agent(json.dumps(told), "stranger")
            (row,) = _rows(json.loads(await workspace.export_agent("stranger")))
            assert row == truth
            assert await stranger.ask("What was it?") == "It was red."


async def test_a_picture_is_sent_as_what_it_is_also_if_its_stored_row_says_otherwise(
    tmp_path: Path,
) -> None:
    with scripted([Say("Red."), Expect(Say("It was red."), sees(URL))]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            await agent.ask("What is it?", pictures=[PictureFile(RED, "photo.png")])
        with sqlite3.connect(tmp_path / ".knapper" / "state.db") as state:
            lied = "update entry set payload = replace(payload, 'image/png', 'image/gif')"
            assert state.execute(lied).rowcount
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            assert await agent.ask("What was it?") == "It was red."


def _rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pictures in an agent's file."""
    entries = [entry for turn in document["turns"] for entry in turn["entries"]]
    return [row for entry in entries for row in entry["payload"].get("pictures", ())]


async def test_steps_say_what_the_model_was_shown_and_told(tmp_path: Path) -> None:
    script: Script = [Say("Red."), Fail(400, "no"), Say("Blind.")]
    with scripted(script) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            await agent.ask("What is it?", pictures=[PictureFile(RED, "photo.png")])
            await agent.ask("And this?", pictures=[PictureFile(BLUE, "sea.png")])
            texts = [
                {part["part"]: part["text"] for part in parts["parts"]}
                for parts in [await _parts(workspace, number) for number in (0, 1)]
            ]
    assert texts[0]["pictures"].startswith("photo.png: PNG")
    assert "pictures" not in texts[1]
    told = texts[1]["pictures told in words"]
    assert [line.partition(":")[0] for line in told.splitlines()] == ["photo.png", "sea.png"]


async def _parts(workspace: Workspace, number: int) -> dict[str, Any]:
    store = workspace.store
    rows = await steps(store, "main", 10)
    parts = await step_parts(store, "main", rows[number]["seq"], {})
    assert parts is not None
    return parts
