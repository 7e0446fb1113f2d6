"""Pictures out: what a function returns, draws or writes is shown to the model, at terminals, over HTTP and MCP."""

import os
import re
import struct
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from agent_core import Decision, Question, Workspace, events
from agent_core.base.pictures import PICTURES, Picture
from agent_core.functions.answers import CallReport
from agent_core.storage.picture_files import PictureFiles
from agent_core.views.styled_lines import plain
from agent_core.views.verdicts import value_lines
from knapper.terminal.pictures import drawn_picture, protocol_of, shown_pictures
from sandbox import Returned
from sandbox.inside.channel import simplify
from tests.interfaces.support import flags
from tests.kit import Ask, Expect, Say, Script, Wanted, scripted
from tests.kit.pictures import chunk, jpeg, png
from tests.kit.program import knapper
from tests.knapper_ext.mcp.conftest import over_http
from tests.knapper_ext.server.conftest import Serve
from tests.knapper_ext.server.conftest import served as served
from tests.pictures.support import RED, URL, parts_of, sees

DRAW = (
    f'''
def draw() -> bytes:
    """Return a picture.

    >>> draw()[:4]
    b'\\\\x89PNG'
    """
    return {RED!r}


def album() -> list[object]:
    """Return a title and a picture.

    >>> album()[0]
    'red'
    """
    return ["red", draw()]


def noise(size: int) -> bytes:
    """Return a picture of many bytes.

    Args:
        size: Its width and height.

    >>> noise(1)[:4]
    b'\\\\x89PNG'
    """
    import random
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = random.Random(1).randbytes((1 + 3 * size) * size)
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0))
    return b"\\\\x89PNG\\\\r\\\\n\\\\x1a\\\\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
'''.replace("\\\\x", "\\x")
    .replace("\\\\r\\\\n", "\\r\\n")
    .replace("\\\\n", "\\n")
)
WRITE = f'''
def save(path: str) -> str:
    """Write a picture, and return its path.

    Args:
        path: Where to write it.
    """
    with open(path, "wb") as file:
        file.write({RED!r})
    return path
'''


def library(root: Path, text: str = DRAW) -> None:
    """Write functions into a workspace."""
    (root / "functions").mkdir(exist_ok=True)
    (root / "functions" / "drawn.py").write_text(text)


async def yes(_: Question) -> Decision:
    """Allow everything."""
    return Decision("yes")


@pytest.mark.parametrize("name", ["draw", "album"])
async def test_what_a_function_returns_is_shown_after_its_answer(tmp_path: Path, name: str) -> None:
    library(tmp_path)
    script: Script = [Ask(Wanted(name)), Expect(Say("Red."), sees(URL))]
    with scripted(script) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            told = [event async for event in agent.turn("Draw.")]
    (answered,) = [event for event in told if isinstance(event, events.CallAnswered)]
    (row,) = answered.detail[PICTURES]
    assert Picture.from_json(row).width == 40
    assert "PNG" in answered.text
    assert len(str(answered.detail["value"])) < 100
    *_, answer, shown = model.requests[1].messages
    assert (answer["role"], shown["role"]) == ("tool", "user")
    assert f"What `{name}` returned as pictures" in shown["content"][0]["text"]


async def test_a_large_picture_is_shown_too(tmp_path: Path) -> None:
    library(tmp_path)
    script: Script = [Ask(Wanted("noise", {"size": 900})), Say("Noise.")]
    with scripted(script) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            await (await workspace.agent()).ask("Draw.")
        (part,) = parts_of(model.requests[1])
    assert len(part["image_url"]["url"]) > 2_000_000


async def test_a_path_that_a_function_wrote_is_shown_and_no_other(tmp_path: Path) -> None:
    library(tmp_path, WRITE)
    (tmp_path / "other.png").write_bytes(RED)
    script: Script = [
        Ask(Wanted("save", {"path": "chart.png"})),
        Expect(Say("Saved."), sees(URL)),
    ]
    with scripted(script) as model:
        async with Workspace.open(
            tmp_path, environment=model.environment, approver=yes
        ) as workspace:
            agent = await workspace.agent()
            assert await agent.ask("Save.") == "Saved."
            files = PictureFiles(tmp_path / ".knapper")
            assert await files.written("other.png", ["chart.png"]) is None
            assert await files.written("../chart.png", ["chart.png"]) is None
    assert "chart.png: PNG" in model.requests[1].text


async def test_a_picture_that_holds_a_secret_is_shown_to_nobody(tmp_path: Path) -> None:
    key = "wk-29-Rivers-Zebra-4711"
    writes = WRITE.replace("(path: str)", "(self, path: str)")
    whole = f'file.write({RED!r} + self.secret("WORKS_KEY").encode())'
    library(tmp_path, writes.replace(f"file.write({RED!r})", whole))
    script: Script = [Ask(Wanted("save", {"path": "badge.png"})), Say("Saved.")]
    with scripted(script) as model:
        given = {**model.environment, "KNAPPER_SECRET_WORKS_KEY": key}
        async with Workspace.open(tmp_path, environment=given, approver=yes) as workspace:
            assert await (await workspace.agent()).ask("Save.") == "Saved."
    assert key.encode() in (tmp_path / "badge.png").read_bytes()
    assert "badge.png is not shown" in model.requests[1].text
    assert not parts_of(model.requests[1])
    assert not [*(tmp_path / ".knapper" / "pictures").glob("*")]


def test_a_figure_and_a_picture_of_pillow_become_png_in_the_worker() -> None:
    class Figure:
        def savefig(self, file: Any, **_: Any) -> None:
            file.write(RED)

    class Image:
        def save(self, file: Any, _: str) -> None:
            file.write(RED)

    Figure.__module__ = "matplotlib.figure"
    Image.__module__ = "PIL.Image"
    assert (simplify(Figure()), simplify(Image())) == (RED, RED)


def kept(root: Path, data: bytes) -> tuple[PictureFiles, Picture]:
    """Keep a picture."""
    files = PictureFiles(root / ".knapper")
    (root / ".knapper").mkdir(exist_ok=True)
    return files, files._keep(data, "a.png")


def test_kittys_protocol_reads_back(tmp_path: Path) -> None:
    files, picture = kept(tmp_path, png(300, 200, before=chunk(b"tEXt", os.urandom(9_000))))
    drawn = drawn_picture(picture, files, "kitty")
    parts = re.findall("\x1b_G([^;]*);([^\x1b]*)\x1b\\\\", drawn)
    assert "".join(f"\x1b_G{head};{text}\x1b\\" for head, text in parts) + "\n" == drawn
    assert parts[0][0] == "a=T,f=100,q=2,r=10,m=1"
    assert [head for head, _ in parts[1:]] == [*["m=1"] * (len(parts) - 2), "m=0"]
    assert max(len(text) for _, text in parts) == 4_096
    assert b64decode("".join(text for _, text in parts)) == files.content(picture.digest)
    assert drawn_picture(kept(tmp_path, jpeg())[1], files, "kitty") == ""


def test_iterm2s_protocol_reads_back(tmp_path: Path) -> None:
    files, picture = kept(tmp_path, jpeg())
    drawn = drawn_picture(picture, files, "iterm2")
    match = re.fullmatch("\x1b\\]1337;File=inline=1;size=(\\d+);height=1;[^:]*:([^\a]*)\a\n", drawn)
    assert match is not None
    assert (int(match[1]), b64decode(match[2])) == (picture.size, jpeg())


@pytest.mark.parametrize(
    ("variables", "protocol"),
    [
        pytest.param({"TERM": "xterm-kitty"}, "kitty", id="kitty"),
        pytest.param({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty", id="window"),
        pytest.param({"TERM_PROGRAM": "iTerm.app"}, "iterm2", id="iterm2"),
        pytest.param({"LC_TERMINAL": "iTerm2"}, "iterm2", id="iterm2-over-ssh"),
        pytest.param({"TERM": "xterm-kitty", "TMUX": "/tmp/x"}, "", id="tmux"),
        pytest.param({"TERM": "xterm-256color"}, "", id="plain"),
        pytest.param({}, "", id="nothing"),
    ],
)
def test_the_protocol_is_that_of_the_terminal(variables: dict[str, str], protocol: str) -> None:
    assert protocol_of(variables) == protocol


def test_without_a_protocol_the_path_is_shown(tmp_path: Path) -> None:
    library(tmp_path)
    assert knapper("init", cwd=tmp_path).returncode == 0
    with scripted([Ask(Wanted("draw")), Say("Red.")]) as model:
        done = knapper("run", *flags(model), "--message", "Draw.", cwd=tmp_path)
    (path,) = re.findall(r"99 bytes: (\S+)", done.stderr)
    assert Path(path).read_bytes() == RED
    assert "\x1b_G" not in done.stdout + done.stderr
    (row,) = shown_pictures([kept(tmp_path, RED)[1]], None, is_terminal=False)
    assert not isinstance(row, str)
    assert plain([row]) == "  a.png: PNG, 40 × 30, 99 bytes\n"


async def test_a_picture_over_http_runs_nothing_and_needs_a_token(served: Serve) -> None:
    server = await served([Ask(Wanted("draw")), Say("Red.")])
    await server.save("drawn.py", DRAW)
    body = {"model": "main", "messages": [{"role": "user", "content": "Draw."}]}
    answer = await server.client.post("/v1/chat/completions", json=body)
    happened = answer.json()["knapper"]["events"]
    (row,) = [row for event in happened for row in event.get("detail", {}).get(PICTURES, ())]
    path = f"/api/v1/pictures/{row['digest']}"
    picture = await server.client.get(path)
    assert (picture.status_code, picture.content) == (200, RED)
    assert picture.headers["content-type"] == "image/png"
    assert picture.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert picture.headers["x-content-type-options"] == "nosniff"
    assert (await server.client.get(f"{path[:-1]}g")).status_code == 404
    assert (await server.client.get(f"{path[:-4]}0000")).status_code == 404
    stranger = await server.client.get(path, headers={"Authorization": ""})
    assert stranger.status_code == 401
    approver = await server.as_("approver", "approve")
    assert (await approver.get(path)).status_code == 403


async def test_an_mcp_client_gets_a_picture_as_one(served: Serve) -> None:
    server = await served([])
    await server.save("drawn.py", DRAW)
    async with over_http(server, server.key) as client:
        result = await client.call_tool("call_function", {"function_name": "album"})
    text, image = result.content
    assert "(shown as a picture)" in text.text  # type: ignore[union-attr]  # the first part
    assert (image.type, image.mime_type) == ("image", "image/png")  # type: ignore[union-attr]
    assert b64decode(image.data) == RED  # type: ignore[union-attr]


def test_a_value_that_a_person_calls_for_is_its_caption() -> None:
    report = CallReport.of(Returned(RED, "", "", 0.0))
    assert plain(value_lines(report)) == "picture: PNG, 40 × 30, 99 bytes\n"


def test_a_png_of_noise_is_whole() -> None:
    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\1\2\3")
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels)
    assert data + chunk(b"IEND", b"") == png(1, 1, color=(1, 2, 3))
