"""Names with the old name, Toolwright, are changed to Knapper once, with a message; nothing is lost or asked again."""

import asyncio
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_core import Workspace
from agent_core.access.grants.permit import UNWRITTEN
from agent_core.access.grants.repositories import repository_in, state_in
from agent_core.base import old_name
from agent_core.base.errors import StorageError, WorkspaceError
from agent_core.base.seal import Sealer
from agent_core.storage import open_store
from tests.kit import Repeat, Say, scripted
from tests.kit.postgres import Server, name_of
from tests.kit.program import knapper
from tests.kit.sources import function_text

OF_HOME = {"data": "grants.key", "config": "secrets.toml", "cache": "prefixes"}
READS = function_text(
    "first_line(path: str) -> str",
    "Return the first line of a text file.",
    "with open(path) as file:\n    return file.readline().strip()",
) + function_text("length_of_secret(self) -> int", "Return how long the secret is.", 'return len(self.secret("MINE"))')


def homes(folder: Path) -> dict[str, str]:
    """Return variables for the folders of a new user."""
    return {f"XDG_{kind.upper()}_HOME": str(folder / kind) for kind in OF_HOME}


def old(root: Path, home: Path) -> None:
    """Give a workspace and a home their old names, with the contents of that time."""
    (root / ".knapper").rename(root / ".toolwright")
    (root / "knapper.toml").rename(root / "toolwright.toml")
    for kind in OF_HOME:
        if (home / kind / "knapper").exists():
            (home / kind / "knapper").rename(home / kind / "toolwright")


def test_a_seal_of_the_old_program_still_holds(tmp_path: Path) -> None:
    (tmp_path / "grants.key").write_bytes(bytes(range(32)))
    (tmp_path / "grants.key").chmod(0o600)
    sealed = "5fd5090d2198d8a80d51eef0b27ef0e8bc39c8af5b49bfa7893e249f8bffe351"  # as that program wrote it
    assert Sealer(None, tmp_path).holds(sealed, "a", "b")


def test_a_workspace_goes_on_under_the_new_name_without_asking_again(tmp_path: Path) -> None:
    root, home = tmp_path / "work", tmp_path / "home"
    there = homes(home)
    knapper("init", str(root), cwd=tmp_path, environment=there)
    (root / "functions" / "mine.py").write_text(READS)
    (root / "data.txt").write_text("hello\nthere\n")
    knapper("secrets", "set", "MINE", cwd=root, given="s3cret-4711", environment=there)
    for function, items in {"first_line": ("--read", "data.txt"), "length_of_secret": ("--secret", "MINE")}.items():
        assert knapper("functions", "grant", function, *items, "-y", cwd=root, environment=there).returncode == 0
    with scripted([Repeat(Say("Hm."))]) as model:
        says = ("run", "--base-url", model.base_url, "--model", "scripted", "--message", "I have a dog.")
        assert knapper(*says, cwd=root, environment=there).returncode == 0
    grants = root / "functions" / "grants.toml"
    grants.write_text(old_name.formerly(grants.read_text()))
    old(root, home)

    said = knapper("log", cwd=root, environment=there)
    assert "I have a dog." in said.stdout
    data, config = (home / kind for kind in ("data", "config"))
    assert said.stderr.splitlines() == [
        "Moved .toolwright/ and toolwright.toml to .knapper/ and knapper.toml.",
        f"Moved {data}/toolwright/ to {data}/knapper/.",
        f"Moved {config}/toolwright/ to {config}/knapper/.",
    ]
    called = knapper("functions", "call", "first_line", "--args", '{"path": "data.txt"}', cwd=root, environment=there)
    assert (called.stdout, "Moved" in called.stderr) == ("hello\n", False)
    assert knapper("functions", "call", "length_of_secret", cwd=root, environment=there).stdout == "11\n"
    knapper("functions", "grant", "first_line", "--seconds", "20", "-y", cwd=root, environment=there)
    assert "toolwright" not in grants.read_text().lower(), "the words at its head are not kept as a person's"
    assert not any(path.name.startswith((".toolwright", "toolwright")) for path in root.iterdir())


def test_it_is_found_and_moved_from_a_folder_below(tmp_path: Path) -> None:
    (tmp_path / "toolwright.toml").write_text("[repl]\nplain = true\n")
    (tmp_path / "src/deep").mkdir(parents=True)
    done = knapper("functions", "list", cwd=tmp_path / "src/deep", environment=homes(tmp_path / "home"))
    assert done.stderr.splitlines()[0] == f"Moved toolwright.toml to knapper.toml in {tmp_path}."
    assert (done.returncode, (tmp_path / "knapper.toml").read_text()) == (0, "[repl]\nplain = true\n")


async def test_a_library_moves_the_workspace_that_it_opens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "toolwright.toml").write_text('agent = "other"\n')
    async with Workspace.open(tmp_path) as workspace:
        assert workspace.settings.agent == "other"
    assert f"Moved toolwright.toml to knapper.toml in {tmp_path}." in capsys.readouterr().err


async def test_a_workspace_that_cannot_be_moved_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "toolwright.toml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(WorkspaceError, match="is a link"):
        async with Workspace.open(tmp_path):
            pass


def test_what_has_the_new_name_already_is_left_alone_and_so_is_the_old(tmp_path: Path) -> None:
    for name in ("toolwright.toml", "knapper.toml"):
        (tmp_path / name).write_text(f"# {name}\n")
    done = knapper("functions", "list", cwd=tmp_path, environment=homes(tmp_path / "home"))
    assert (done.returncode, "Moved" in done.stderr) == (0, False)
    assert {(tmp_path / name).read_text() for name in ("toolwright.toml", "knapper.toml")} == {
        "# toolwright.toml\n",
        "# knapper.toml\n",
    }


def test_files_of_the_other_program_of_that_name_are_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (tmp_path / "toolwright.toml").write_text('[project]\nowner = "somebody"\n')
    (tmp_path / ".toolwright").mkdir()
    (tmp_path / ".toolwright" / "cache.bin").touch()
    (home / "config" / "toolwright").mkdir(parents=True)
    (home / "config" / "toolwright" / "config.yaml").touch()
    done = knapper("init", cwd=tmp_path, environment=homes(home))
    assert "Moved" not in done.stderr
    assert (tmp_path / ".toolwright" / "cache.bin").exists()
    assert (tmp_path / "toolwright.toml").exists()
    assert (home / "config" / "toolwright" / "config.yaml").exists()


@pytest.mark.parametrize("file", ["agents/main.lock", "state.db-shm"])
def test_nothing_moves_while_a_process_of_the_old_program_is_in_it(tmp_path: Path, file: str) -> None:
    (tmp_path / "functions").mkdir()
    (lock := tmp_path / ".toolwright" / file).parent.mkdir(parents=True)
    lock.write_text("4711\n")
    (tmp_path / ".toolwright" / ".gitignore").write_text("*\n")
    (kept := tmp_path / "home" / "cache" / "toolwright" / "prefixes").mkdir(parents=True)
    with lock.open("r+") as held:
        (fcntl.flock if file.endswith(".lock") else fcntl.lockf)(held, fcntl.LOCK_EX)
        done = knapper("functions", "list", cwd=tmp_path, environment=homes(tmp_path / "home"))
        assert done.returncode == 1
        who = "Process 4711" if file.endswith(".lock") else "A process"
        assert f"{who} still uses" in done.stderr
        assert "End it" in done.stderr
        assert not (tmp_path / ".knapper").exists()
        assert kept.exists(), "which that process needs"
    assert knapper("functions", "list", cwd=tmp_path, environment=homes(tmp_path / "home")).returncode == 0
    assert (tmp_path / ".knapper" / file).exists() or file.endswith("-shm")


@pytest.mark.parametrize("name", [".toolwright", "toolwright.toml"])
def test_a_link_is_not_moved(tmp_path: Path, name: str) -> None:
    (tmp_path / "functions").mkdir()
    (target := tmp_path / "elsewhere").mkdir()
    (target / ".gitignore").touch()
    (tmp_path / name).symlink_to(target / ".gitignore" if name.endswith("toml") else target)
    done = knapper("-C", ".", "functions", "list", cwd=tmp_path, environment=homes(tmp_path / "home"))
    assert (done.returncode, "is a link" in done.stderr) == (1, True)
    assert (tmp_path / name).is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_what_belongs_to_somebody_else_is_not_moved(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "toolwright.toml").touch()
    os.chown(tmp_path / "toolwright.toml", 4711, 4711)
    done = knapper("functions", "list", cwd=tmp_path, environment=homes(tmp_path / "home"))
    assert (done.returncode, "belongs to user 4711" in done.stderr) == (1, True)
    assert (tmp_path / "toolwright.toml").exists()


def test_old_variables_are_named_once_with_the_new_ones_and_reach_no_child(tmp_path: Path) -> None:
    variables = {"TOOLWRIGHT_MODEL_NAME": "m", "TOOLWRIGHT_SECRET_A": "s3cret-4711", "TOOLWRIGHT_TOKEN": "t0ken-4711"}
    environment = {**os.environ, **variables, "TOOLWRIGHT_OF_ANOTHER": "1"}
    done = knapper("models", "list", cwd=tmp_path, environment=variables | {"TOOLWRIGHT_OF_ANOTHER": "1"})
    lines = [line for line in done.stderr.splitlines() if "TOOLWRIGHT" in line]
    assert lines == [
        "Not read any more: TOOLWRIGHT_MODEL_NAME, TOOLWRIGHT_SECRET_A, TOOLWRIGHT_TOKEN."
        " The new name: KNAPPER_MODEL_NAME, KNAPPER_SECRET_A, KNAPPER_TOKEN."
    ]
    code = "from agent_core.base.own_environment import enter; enter(); import os; print(sorted(os.environ))"
    left = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "TOOLWRIGHT_SECRET_A" not in left.stdout
    assert "TOOLWRIGHT_TOKEN" not in left.stdout


async def test_an_agent_that_was_exported_under_the_old_name_is_imported(tmp_path: Path) -> None:
    async with Workspace.open(tmp_path) as workspace:
        await workspace.agent("main")
        document = json.loads(await workspace.export_agent("main"))
        agent = await workspace.import_agent(document | {"format": "toolwright-agent"}, "second")
        assert agent.name == "second"


def test_no_function_can_make_what_the_program_would_move(tmp_path: Path) -> None:
    assert {".toolwright", "toolwright.toml"} <= set(UNWRITTEN)
    (tmp_path / "a" / ".toolwright").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "toolwright.toml").touch()
    assert repository_in(tmp_path / "a").path == ".toolwright"
    assert repository_in(tmp_path / "b").path == "."
    assert state_in(tmp_path).path == "a/.toolwright"


async def test_a_database_of_the_old_name_goes_on_with_its_functions_and_its_triggers(
    database: str, postgres: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    name = name_of(database)
    definitions = postgres.execute(
        "select pg_get_functiondef(oid) from pg_proc where pronamespace = 'knapper'::regnamespace", name
    )
    postgres.execute("alter schema knapper rename to toolwright", name)
    for (definition,) in definitions:
        postgres.execute(f"set search_path = toolwright; {definition.replace('knapper', 'toolwright')}", name)

    import psycopg

    from agent_core.base.clock import Clock

    with psycopg.connect(database, application_name="toolwright"), pytest.raises(StorageError, match="End them"):
        open_store(database, clock=Clock())
    await asyncio.to_thread(_wait_until_alone, postgres, name)
    await open_store(database, clock=Clock()).close()
    assert "Moved the schema toolwright" in capsys.readouterr().err
    assert postgres.execute("select 1 from pg_proc where prosrc ~ 'toolwright'", name) == []
    assert postgres.execute("select 1 from pg_namespace where nspname = 'toolwright'", name) == []
    own = postgres.execute("select proname from pg_proc where prosrc ~ 'knapper'", name)
    assert {name for (name,) in own} == {"tell", "roomy", "tell_of_lease", "tell_of_events"}


def _wait_until_alone(postgres: Server, name: str) -> None:
    sql = f"select 1 from pg_stat_activity where datname = '{name}' and application_name = 'toolwright'"
    while postgres.execute(sql, name):
        pass


async def test_a_preset_that_names_the_persona_of_the_old_name_gets_it(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").write_text('[memory]\npersona = "toolwright"\n')
    async with Workspace.open(tmp_path) as workspace:
        agent = await workspace.agent()
        assert "I am Knapper" in agent.memory.blocks.memory["persona"].value
