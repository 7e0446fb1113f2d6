"""A secrets file must be private to its owner; values come only from a prompt or standard input."""

import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_core.access.secrets import Secrets
from agent_core.access.secrets.source import refusal
from agent_core.base.errors import KnapperError, UsageError, WorkspaceError
from agent_core.base.settings import load
from agent_core.workspace.workspace import Workspace
from tests.kit.program import knapper
from tests.kit.terminal import terminal
from tests.secrets.support import KEY, files_with, put

FOLDERS = ("XDG_CONFIG_HOME", "XDG_DATA_HOME")


def run(
    *arguments: str, cwd: Path, given: str = "", **variables: str
) -> "subprocess.CompletedProcess[str]":
    folders = {name: os.environ[name] for name in FOLDERS}
    return knapper(
        "secrets", *arguments, cwd=cwd, given=given, environment={**folders, **variables}
    )


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.text(min_size=8).filter(lambda text: not refusal(text)), other=st.just(KEY))
def test_what_is_set_is_what_is_read_again(value: str, other: str) -> None:
    held = Secrets()
    held.put("KEY", value)
    held.put("OTHER", other)
    assert (held.value("KEY"), held.value("OTHER")) == (value, other)


def test_the_file_and_its_folder_are_for_their_owner_alone(config: Path) -> None:
    before = os.umask(0)
    try:
        Secrets().put("KEY", KEY)
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (config, config / "secrets.toml")]
    assert modes == [0o700, 0o600]
    assert [one.name for one in config.iterdir()] == ["secrets.toml"]


def is_a_link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


def folder_is_a_link(file: Path) -> None:
    file.parent.rename(file.parent.with_name("elsewhere"))
    file.parent.symlink_to("elsewhere")


def is_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def is_somebody_elses(file: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(file, 12345, 12345)


SPOILED = [
    pytest.param(lambda file: file.chmod(0o640), "chmod 600 ", id="others-read-it"),
    pytest.param(
        lambda file: file.parent.chmod(0o777), "chmod 700 ", id="others-change-its-folder"
    ),
    pytest.param(is_a_link, "a link, which is not followed", id="a-link"),
    pytest.param(folder_is_a_link, "a link, which is not followed", id="its-folder-is-a-link"),
    pytest.param(is_a_pipe, "is not a file of secrets", id="a-pipe"),
    pytest.param(lambda file: file.write_text(f"KEY = {KEY}"), "is not understood", id="no-toml"),
    pytest.param(is_somebody_elses, "is not yours", id="of-somebody-else"),
]


@pytest.mark.parametrize(("spoil", "says"), SPOILED)
def test_a_file_that_cannot_be_trusted_gives_nothing(
    config: Path, spoil: Callable[[Path], None], says: str
) -> None:
    held = Secrets(environment={"KNAPPER_SECRET_OTHER": "from-the-environment"})
    held.put("KEY", KEY)
    spoil(config / "secrets.toml")
    for attempt in (lambda: held.value("KEY"), lambda: held.put("NEW", "a new value"), held.places):
        with pytest.raises(WorkspaceError) as refused:
            attempt()
        assert says in str(refused.value)
        assert KEY not in str(refused.value)
    assert held.value("OTHER") == "from-the-environment"
    assert held.pairs(["KEY", "OTHER"]) == {("OTHER", "from-the-environment")}


def test_a_folder_within_the_workspace_keeps_no_secrets(config: Path) -> None:
    with pytest.raises(WorkspaceError, match="never kept in a workspace"):
        Secrets(config.parent.parent).put("KEY", KEY)
    assert not list(config.parent.rglob("secrets*"))


def test_what_cannot_be_a_secret_is_not_set(config: Path) -> None:
    short = ("short77", "e\u0301" * 7, "ababababab")  # the second in another form
    values = (*short, "abcdefgh\0i", "abcdefgh\udc80", "abcdefgh" * 4096)
    for name, value in [
        *(("KEY", value) for value in values),
        *((name, KEY) for name in ("A-KEY", "", "1KEY")),
    ]:
        with pytest.raises(UsageError) as refused:
            Secrets().put(name, value)
        assert value not in str(refused.value)
        assert not config.exists()
        with pytest.raises(KnapperError):
            Secrets(environment={f"KNAPPER_SECRET_{name}": value}).value(name)


def test_a_variable_goes_before_the_file_and_is_no_setting(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Secrets().put("KEY", "what the file has")
    assert Secrets().value("KEY") == key
    assert Secrets(environment={}).value("KEY") == "what the file has"
    assert key not in repr(load(tmp_path))
    monkeypatch.setenv("KNAPPER_SECRETS_KEY", KEY)
    with pytest.raises(UsageError, match="not a setting"):
        load(tmp_path)


def test_a_secret_is_set_by_standard_input_listed_by_name_and_removed(
    tmp_path: Path, config: Path
) -> None:
    assert run("set", "KEY", KEY, cwd=tmp_path).returncode == 2, (
        "a value as an argument is not taken"
    )
    assert not config.exists()
    done = run("set", "KEY", cwd=tmp_path, given=f"{KEY}\n")
    assert (done.returncode, "✓ KEY is set" in done.stdout) == (0, True)
    listed = run("list", cwd=tmp_path, KNAPPER_SECRET_OTHER="of the environment")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["KEY", "OTHER"]
    assert "KNAPPER_SECRET_OTHER" in listed.stdout
    assert [*files_with(KEY, config, tmp_path)] == [config / "secrets.toml"]
    (config / "secrets.toml").chmod(0o644)
    open_to_others = run("list", "--json", cwd=tmp_path, KNAPPER_SECRET_OTHER="of the environment")
    found = json.loads(open_to_others.stdout)
    assert (open_to_others.returncode, found["problem"]["fix"]) == (
        1,
        f"Type: chmod 600 {config}/secrets.toml",
    )
    assert [one["name"] for one in found["secrets"]] == ["OTHER"]
    (config / "secrets.toml").chmod(0o600)
    assert run("remove", "KEY", cwd=tmp_path).returncode == 0
    assert run("remove", "KEY", cwd=tmp_path).returncode == 2
    assert "No secret is set" in (last := run("list", cwd=tmp_path)).stderr
    assert not [
        one for one in (done, listed, open_to_others, last) if KEY in one.stdout + one.stderr
    ]


def test_nothing_is_seen_of_a_value_that_is_typed(tmp_path: Path) -> None:
    folders = {name: os.environ[name] for name in FOLDERS}
    with terminal("secrets", "set", "KEY", cwd=tmp_path, environment=folders) as screen:
        screen.wait_for("not shown as you type")
        screen.line(KEY)
        screen.wait_for("KEY is set")
        assert KEY not in screen.sent.decode()
    assert Secrets().value("KEY") == KEY


async def test_the_list_says_who_may_read_and_what_is_not_set(tmp_path: Path, key: str) -> None:
    async with Workspace.open(tmp_path) as workspace:
        await put(
            workspace,
            "reader",
            'return len(self.secret("KEY")) + len(self.secret("GONE"))',
            "KEY",
            "GONE",
        )
    done = run("list", "--json", cwd=tmp_path, KNAPPER_SECRET_KEY=key)
    assert json.loads(done.stdout)["secrets"] == [
        {"name": "GONE", "from": None, "functions": ["reader"]},
        {"name": "KEY", "from": "KNAPPER_SECRET_KEY", "functions": ["reader"]},
    ]
