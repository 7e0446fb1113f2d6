"""A secret reaches the one function that was granted it, in a real worker, and no part of it comes out."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from agent_core.access.grants import Grants
from agent_core.access.secrets import Secrets
from agent_core.workspace.workspace import Workspace
from sandbox import Sandbox
from tests.broker.servers import serving
from tests.grants.support import human
from tests.secrets.support import KEY, MARK, put


@pytest_asyncio.fixture
async def here(tmp_path: Path, key: str, one_sandbox: Sandbox) -> AsyncIterator[Workspace]:
    async with Workspace.open(tmp_path, sandbox=one_sandbox) as opened:
        yield opened


async def call(here: Workspace, name: str) -> dict[str, Any]:
    return (await here.functions.call(name, {})).to_json()


async def test_a_function_is_given_the_very_value_until_it_is_revoked(here: Workspace) -> None:
    await put(
        here, "size", 'return [len(self.secret("KEY")), sum(map(ord, self.secret("KEY")))]', "KEY"
    )
    assert (await call(here, "size"))["value"] == [len(KEY), sum(map(ord, KEY))]
    await here.functions.grants.revoke("size", Grants(secrets=("KEY",)))
    assert (await call(here, "size"))["outcome"] != "returned"


async def test_its_own_requests_carry_it_unmasked_to_a_granted_host(here: Workspace) -> None:
    async with serving() as server:
        url = f"http://localhost:{server.port}/"
        body = f'return self.fetch("{url}", headers={{"X-Key": self.secret("KEY").encode().hex()}}).status'
        await put(here, "ask", body, "KEY", network=(f"localhost:{server.port}",))
        assert (await call(here, "ask"))["value"] == 200
        assert KEY.encode().hex() in repr(server.asked)


async def test_without_the_grant_nobody_learns_whether_it_is_set_and_a_human_may_be_asked(
    here: Workspace,
) -> None:
    for name, says in (
        ("KEY", "knapper functions grant ask --secret KEY"),
        ("GONE", "knapper functions grant ask --secret GONE"),
        ("no name", "letters, digits and _"),
    ):
        await put(here, "ask", f'return self.secret("".join(["{name}"]))', "?", "OTHER")
        error = (await call(here, "ask"))["error"]
        assert (error["type"], says in error["message"]) == ("PermissionError", True), name
        assert "not set" not in error["message"]
    computed = 'names = ["KE" + "Y"]\nreturn [len(self.secret(names[0])), self.secret(names[0])]'
    await put(here, "asks", computed, "?", "OTHER")
    here.functions.granting.approver = asked = human("yes")
    assert (await call(here, "asks"))["value"] == [len(KEY), MARK]
    assert [one.missing.secrets for one in asked.asked] == [("KEY",)]


async def test_a_missing_secret_is_named_with_how_to_set_it_and_a_short_one_is_not_given(
    here: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(here, "ask", 'return self.secret("GONE")', "GONE")
    message = (await call(here, "ask"))["error"]["message"]
    for part in ("`GONE` is not set", "knapper secrets set GONE", "KNAPPER_SECRET_GONE"):
        assert part in message
    monkeypatch.setenv("KNAPPER_SECRET_PIN", "48abc12")
    await put(here, "short", 'return self.secret("PIN")', "PIN")
    found = await call(here, "short")
    assert "fewer than 8 characters" in found["error"]["message"]
    assert "48abc12" not in repr(found)
    await put(here, "remember", 'return self.memory.read("human")', memory=("human",))
    assert "no agent's memory is at hand here" in (await call(here, "remember"))["error"]["message"]


async def test_another_function_gets_a_mark_as_the_result_and_as_the_argument(
    here: Workspace,
) -> None:
    told: list[str] = []
    await put(
        here,
        "inner",
        'self.progress(1, 2, self.secret("KEY"))\nreturn "it is " + self.secret("KEY")',
        "KEY",
    )
    await put(
        here,
        "outer",
        'found = self.call("inner")\nreturn [found[::-1], list(found)]',
        functions=("inner",),
    )
    found = await here.functions.call("outer", {}, lambda done, total, note: told.append(note))
    assert (found.value, told) == ([f"it is {MARK}"[::-1], list(f"it is {MARK}")], [MARK])
    shout = 'def shout(self, text: str) -> str:\n    """Shout."""\n'
    (here.root / "functions" / "s.py").write_text(
        f"{shout}    self.progress(1, 2, text)\n    return text + '!'\n"
    )
    await here.functions.reload()
    await put(
        here,
        "ask",
        'loud = self.call("shout", text=self.secret("KEY"))\nreturn [len(loud), loud]',
        "KEY",
    )
    told.clear()
    found = await here.functions.call("ask", {}, lambda done, total, note: told.append(note))
    assert (found.value, told) == ([len(MARK) + 1, f"{MARK}!"], [MARK])


async def test_no_worker_has_it_in_its_environment_or_files(here: Workspace, config: Path) -> None:
    Secrets().put("KEPT", "kept-in-the-file-1")
    look = (
        "import os, pathlib, sys\nfound = [repr(dict(os.environ)), repr(sys.argv)]\n"
        f"for path in ('/proc/self/environ', '/proc/self/cmdline', '{config}/secrets.toml', '/proc/1/environ'):\n"
        "    try:\n        found.append(pathlib.Path(path).read_text())\n"
        "    except OSError:\n        pass\nreturn '|'.join(found)[::-1]"
    )
    await put(here, "look", look, "OTHER", read=("data/",))
    seen = str((await call(here, "look"))["value"])[::-1]
    assert "HOME" in seen
    assert not [one for one in (KEY, "KNAPPER", "kept-in-the-file") if one in seen]
