"""A secret given to a function is masked in what the debugger shows, records and keeps."""

import json
from pathlib import Path

import pytest

from agent_core.base.records import to_json
from agent_core.functions.service.plan import USER, Author
from agent_core.workspace.workspace import Workspace
from tests.broker.servers import serving
from tests.kit.levels import lend
from tests.secrets.support import KEY, MARK, files_with, put

from .support import Typist, arm, room_of

BODY = """
held = self.secret("KEY")
around = [held, held.encode().hex()]
return len(around)
"""


@pytest.fixture(autouse=True)
def key(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    lend(home / "data")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("KNAPPER_SECRET_KEY", KEY)


async def test_a_human_and_a_model_see_its_mark_and_a_record_its_name(
    workspace: Workspace, tmp_path: Path
) -> None:
    await put(workspace, "leak", BODY, "KEY")
    arm(workspace, line=8, name="leak", expressions=("held",))
    recorded = await workspace.functions.call("leak", {})
    assert MARK in recorded.debugged
    room_of(workspace).slot.debugger = typist = Typist("p held", "pp around", "p held[2:]", "c")
    await workspace.functions.call("leak", {})
    seen = [*typist.said, repr([stop.locals for stop in typist.stops]), recorded.debugged]
    assert not any(piece in text for text in seen for piece in (KEY, KEY.encode().hex(), KEY[2:]))
    calls = [
        await workspace.functions.replays.show(one.call)
        for one in await workspace.functions.replays.calls()
    ]
    assert KEY not in json.dumps(to_json(calls), ensure_ascii=False)
    assert "the value of the secret KEY" in calls[0].call.lacking[0]
    assert [*files_with(KEY, tmp_path)] == []


FETCHING = """
sent = self.fetch("http://localhost:{port}/", headers={{"X-Key": self.secret("KEY").encode().hex()}})
return [sent.status, sent.text()]
"""


async def test_a_fetch_with_a_secret_is_answered_from_the_record(workspace: Workspace) -> None:
    async with serving() as server:
        place = f"localhost:{server.port}"
        await put(workspace, "ask", FETCHING.format(port=server.port), "KEY", network=(place,))
        first = await workspace.functions.call("ask", {})
        (call,) = await workspace.functions.replays.calls("ask")
        found = await workspace.functions.replays.replay(call.call)
        assert (first.outcome, found.same, len(server.asked)) == ("returned", True, 1)


SECRETS = """
held = self.secret("KEY")
turned = held[::-1]
for letter in held:
    count = len(held)
return count
"""


@pytest.mark.parametrize("line", [7, 8, 9, 10])
async def test_a_model_is_shown_no_value_where_a_secret_may_be(
    workspace: Workspace, line: int
) -> None:
    await put(workspace, "leak", SECRETS, "KEY")
    arm(
        workspace,
        line,
        "held > 'a'" if line > 7 else "",
        "leak",
        by="agent",
        expressions=("held[::-1]", "'a' + 'b'"),
    )
    text = (await workspace.functions.call("leak", {})).debugged
    assert "may hold a secret" in text
    assert not any(piece in text for piece in (KEY[::-1], "'ab'", f"'{KEY[0]}'", f"= {len(KEY)}"))


async def test_a_trace_for_a_model_has_the_lines_of_such_a_call_and_no_values(
    workspace: Workspace,
) -> None:
    await put(workspace, "leak", SECRETS, "KEY")
    for author, is_told in ((USER, True), (Author("agent"), False)):
        text = (await workspace.functions.trace("leak", {}, author)).text
        assert "turned = held[::-1]" in text
        assert (KEY[::-1] in text) is is_told


CALLING = """
held = self.secret("KEY")
return self.call("take", text=held)
"""


async def test_an_argument_may_be_a_secret_of_the_caller(workspace: Workspace) -> None:
    (workspace.root / "functions" / "taking.py").write_text(TAKING)
    await workspace.functions.reload()
    await put(workspace, "give", CALLING, "KEY")
    arm(workspace, 3, "text > 'a'", "take", by="agent", expressions=("text[::-1]",))
    alone = await workspace.functions.call("take", {"text": "zab"})
    assert "text[::-1] = 'baz'" in alone.debugged
    text = (await workspace.functions.call("give", {})).debugged
    assert "may hold a secret" in text
    assert KEY[::-1] not in text


TAKING = '''\
def take(text: str) -> int:
    """Take a text."""
    return len(text)
'''
