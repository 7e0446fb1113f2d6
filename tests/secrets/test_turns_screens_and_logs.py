"""A whole turn with a secret in it: the model's requests, the events, the disk, the screens, the log, a crash."""

import logging
import os
from pathlib import Path

import pytest

from agent_core.access.secrets import REVEALED
from agent_core.access.secrets.session import LOGGERS, masked_logger
from agent_core.base.events import Progress
from agent_core.base.records import to_json
from agent_core.views.faults import report_crash
from agent_core.workspace.workspace import Workspace
from tests.broker.servers import serving
from tests.conftest import OpenDesk
from tests.interfaces.support import flags, leave, prompt
from tests.kit import Ask, Expect, Say, Script, Wanted, contains, scripted
from tests.kit.desk import answers
from tests.kit.program import knapper
from tests.secrets.support import KEY, MARK, files_with, put

TELLS = (
    'print("printed", self.secret("KEY"))\nself.progress(1, 2, "at " + '
    'self.secret("KEY"))\nreturn [self.secret("KEY")]'
)
PROGRAM = "told = tell()\nprint(told, [*each(tell, [{}, {}])])\nletters = [*told[0]]\ntold + [''.join(letters)]"
TURN: Script = [Ask(Wanted("tell", {})), Expect(Say("Done."), contains(MARK))]


def leaks(text: str) -> list[str]:
    return [piece for piece in ("7Qz", "3xY", "2Lm") if piece in text]


@pytest.mark.parametrize("wanted", [Wanted("tell", {}), Wanted("run_program", {"code": PROGRAM})])
async def test_a_turn_leaves_nothing_of_it_anywhere(
    at_desk: OpenDesk, key: str, config: Path, wanted: Wanted
) -> None:
    desk = await at_desk([Ask(wanted), *TURN[1:]])
    await put(desk.workspace, "tell", TELLS, "KEY")
    events = await desk.say("tell me")
    assert MARK in answers(events)[0]
    assert not leaks(repr([to_json(one) for one in events]))
    assert not leaks(repr([one.body for one in desk.model.requests]))
    assert not leaks(repr(await desk.workspace.functions.introspect("tell")))
    assert [*files_with("7Qz", desk.workspace.root, config.parent.parent)] == []


async def test_a_secret_at_the_cut_of_a_long_note_is_masked_before_it_is_cut(
    at_desk: OpenDesk, key: str
) -> None:
    desk = await at_desk([Ask(Wanted("tell", {})), Say("Done.")])
    await put(
        desk.workspace,
        "tell",
        'self.progress(1, 2, "x" * 391 + self.secret("KEY") + "y" * 10**6)',
        "KEY",
    )
    (progress,) = [one for one in await desk.say("tell me") if isinstance(one, Progress)]
    assert progress.note == "x" * 391 + MARK[:9] + "…"


@pytest.fixture
async def folder(tmp_path: Path, key: str) -> Path:
    """A workspace in which a function may print a secret and fails with one."""
    async with Workspace.open(tmp_path) as workspace:
        await put(workspace, "tell", TELLS, "KEY")
        await put(
            workspace,
            "fail",
            'held = {"a": self.secret("KEY")}\nraise ValueError(f"no {held}")',
            "KEY",
        )
    return tmp_path


def environment() -> dict[str, str]:
    kept = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "KNAPPER_SECRET_KEY")
    return {name: os.environ[name] for name in kept}


async def test_the_command_line_the_events_of_a_run_and_the_prompt_show_a_mask(
    folder: Path,
) -> None:
    for name, *form in (("tell",), ("tell", "--json"), ("fail",), ("fail", "--json")):
        done = knapper("functions", "call", name, *form, cwd=folder, environment=environment())
        assert MARK in done.stdout + done.stderr, (name, form)
        assert not leaks(done.stdout + done.stderr), (name, form)
    with scripted(TURN) as model:
        done = knapper(
            "run", *flags(model), "--json", "--message", "go", cwd=folder, environment=environment()
        )
    assert "secret KEY" in done.stdout
    assert not leaks(done.stdout + done.stderr)
    script: Script = [Ask(Wanted("tell", {})), Ask(Wanted("fail", {})), Say("Both are done.")]
    with prompt(script, folder, environment=environment()) as (screen, _model):
        screen.line("tell me")
        screen.wait_for("Both are done.")
        shown, sent = screen.scrolled(), screen.sent.decode()
        assert leave(screen) == 0
    assert "secret KEY" in shown
    assert not leaks(shown + sent)


async def test_the_brokers_log_has_no_secret_query_or_header(
    tmp_path: Path, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "knapper.broker")
    async with serving() as server:
        host = f"localhost:{server.port}"
        body = (
            "from urllib.parse import quote\nkey = quote(self.secret('KEY'), safe='')\n"
            f"return self.fetch(f'http://{host}/bot{{key}}/me?q=asked', headers={{'X-Key': 'headed' + key}}).status"
        )
        async with Workspace.open(tmp_path) as workspace:
            await put(workspace, "ask", body, "KEY", network=(host,))
            assert (await workspace.functions.call("ask", {})).value == 200
    assert f"GET {host}/bot{MARK}/me: 200" in caplog.text
    assert not [one for one in ("asked", "headed", *leaks(caplog.text)) if one in caplog.text]
    written = (tmp_path / ".knapper" / "requests.log").read_text()
    assert f"Z ask: GET {host}/bot{MARK}/me: 200, " in written
    assert not leaks(written)


async def test_every_record_of_our_loggers_is_masked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    REVEALED.note({("KEY", KEY)})
    async with Workspace.open(tmp_path):
        pass
    masked_logger("knapper.of_an_extension")
    for name in (*LOGGERS, "knapper.of_an_extension"):
        caplog.clear()
        try:
            int(KEY)
        except ValueError:
            logging.getLogger(name).exception("a %s and %r", KEY, {"b": KEY}, stack_info=True)
        assert not leaks(caplog.text), name
        assert f"a {MARK} and" in caplog.text, name
        assert "ValueError: invalid literal for int() with base 10: " in caplog.text, name
        assert caplog.records[0].exc_info is None, name


def test_the_file_of_a_crash_has_a_mask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    REVEALED.note({("KEY", KEY)})
    (tmp_path / ".knapper").mkdir()
    report_crash(RuntimeError(f"not foreseen: {KEY}"), tmp_path, as_json=False)
    assert not leaks("".join(capsys.readouterr()))
    (file,) = (tmp_path / ".knapper").iterdir()
    assert f"not foreseen: {MARK}" in file.read_text()
    assert not leaks(file.read_text())
