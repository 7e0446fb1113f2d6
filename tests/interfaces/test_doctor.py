"""What `knapper doctor` reports on the model, and whether a key may be sent to the address in the folder."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core import __version__
from agent_core.base.clock import Clock
from agent_core.base.errors import ModelError
from agent_core.base.settings import FILE_NAME, load
from agent_core.storage import Post, open_store
from agent_core.workspace.doctor import check_address
from sandbox.processes.startup import LEVELS
from tests.kit.postgres import WITH_PASSWORD, Server, name_of
from tests.kit.program import knapper

MIGRATIONS = Path(__file__).parents[2] / "knapper_ext/postgres/migrations"
STRANGE = '[model]\nbase_url = "https://collector.example/v1"\n'


@pytest.fixture
def with_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")


def test_the_ways_to_a_model_are_a_line_each_and_nothing_is_left_in_the_folder(
    tmp_path: Path,
) -> None:
    (tmp_path / "knapper.toml").unlink()
    lines = knapper("doctor", cwd=tmp_path).stdout.splitlines()
    at = lines.index("✗ model: No model is set and none was found. 3 ways to get one:")
    assert [line[:5] for line in lines[at + 1 :] if line[2:4] in ("1.", "2.", "3.")] == [
        "  1. ",
        "  2. ",
        "  3. ",
    ]
    assert all(line.startswith("  ") for line in lines[at + 1 : at + 5])
    report = json.loads(knapper("doctor", "--json", cwd=tmp_path).stdout)
    assert {"version", "python", "platform", "sandbox", "model", "storage", "ok"} <= set(report)
    assert (report["ok"], report["storage"]["ok"]) == (True, True)
    assert report["sandbox"]["level"] in (*LEVELS, "portable")
    nonsense = knapper("doctor", cwd=tmp_path, environment={"KNAPPER_MODEL_BASE_URL": "nonsense"})
    assert nonsense.returncode == 1
    assert (
        "✗ model: The address in KNAPPER_MODEL_BASE_URL cannot be used (nonsense): it begins with"
        in nonsense.stdout
    )
    assert nonsense.stdout.endswith("✓ storage: whole\n")
    assert list(tmp_path.iterdir()) == []


def test_the_doctor_says_why_texts_are_found_by_words_alone(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "sqlite_vec.py").write_text("")
    broken = f"import sys; sys.path.insert(0, {str(tmp_path / 'broken')!r}); sys.modules.pop('sqlite_vec', None)"
    told, whole = (
        knapper("doctor", *options, cwd=tmp_path, first=broken) for options in ([], ["--json"])
    )
    storage = json.loads(whole.stdout)["storage"]
    assert storage["ok"]
    assert "the extension sqlite-vec cannot be loaded" in storage["vectors"]
    assert "found only by their words" in " ".join(told.stdout.split())


@pytest.mark.usefixtures("with_key")
def test_no_key_goes_to_an_address_that_only_the_folder_names(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(STRANGE)
    for name in (None, "gpt-5-mini", "tourist"):
        with pytest.raises(
            ModelError, match=r"a key in your environment are sent there.*export KNAPPER"
        ):
            check_address(load(tmp_path), name)
    for name in ("tour", "local", "local/qwen2.5-coder-1.5b"):  # they are sent no key
        check_address(load(tmp_path), name)
        check_address(load(tmp_path, {"model.name": name}))


def test_the_embedding_in_use_is_named_and_tried(tmp_path: Path) -> None:
    for chosen, model, said in (
        ("wordllama", "", "✓ embedding: wordllama"),
        ("endpoint", "", "✗ embedding: endpoint: An endpoint that embeds needs"),
        ("endpoint", "m", "✗ embedding: endpoint: `m` cannot embed at http://127.0.0.1:9"),
    ):
        environment = {
            "KNAPPER_MEMORY_EMBEDDING": chosen,
            "KNAPPER_MODEL_BASE_URL": "http://127.0.0.1:9/v1",
        }
        environment |= {"KNAPPER_MEMORY_EMBEDDING_MODEL": model} if model else {}
        lines = knapper("doctor", cwd=tmp_path, environment=environment).stdout.splitlines()
        assert any(line.startswith(said) for line in lines), lines


async def test_a_database_is_shown_with_what_waits_and_all_processes(
    tmp_path: Path, database: str, postgres: Server
) -> None:
    (tmp_path / "functions").mkdir()
    async with open_store(database, clock=Clock()) as store, store.hold(tmp_path, "held"):
        await store.post(Post("late", "message", {"text": "hello"}))
        postgres.execute(
            "insert into knapper.worker (id, name, slots, version, backend, beat)"
            " values ('x', 'an old one', 4, '0.0.9', 0, now() - interval '1 minute');"
            " insert into knapper.lease values ('lost', 'x');"
            " update knapper.event set due = due - 500, at = at - 500",
            database.partition("?")[0].rpartition("/")[2],
        )
        slow_clock = "import time; real = time.time; time.time = lambda: real() - 5"  # the clock of this machine
        done = knapper(
            "doctor", cwd=tmp_path, environment={"KNAPPER_STORAGE_URL": database}, first=slow_clock
        )
    said = done.stdout
    assert "PostgreSQL 1" in said
    newest = max(int(path.name[:4]) for path in MIGRATIONS.glob("*.sql"))
    assert f", schema {newest}, answered in " in said
    assert "✗ 1 due event waits, for 50" in said
    assert "✗ an old one, 4 agents at once, has lost, " in said
    assert f"is version 0.0.9, and this is {__version__}" in said
    assert ", has held\n" in said
    assert "its clock is 5.0 s behind the database's" in said


BAD: list[tuple[Callable[[str], str], str, str]] = [
    (lambda _: "postgresql://tw@127.0.0.1:1/base", "no server listens", "Start the server"),
    (lambda _: "postgresql://tw@db.invalid/base", "nobody knows its host", "Correct"),
    (lambda url: url.replace("/base", "/none_base"), "is not there", "createdb"),
    (lambda url: url.replace("tw@", "stranger@"), "let this user in", "Check the user"),
    (
        lambda url: url.replace("tw@", f"{WITH_PASSWORD}:hunter2@"),
        "does not let this user in",
        "~/.pgpass",
    ),
]


def test_a_database_that_cannot_be_used_is_said_with_what_to_do(
    database: str, tmp_path: Path
) -> None:
    for change, told, fix in BAD:
        environment = {"KNAPPER_STORAGE_URL": change(database), "KNAPPER_MEMORY_EMBEDDING": "none"}
        done = knapper("doctor", cwd=tmp_path, environment=environment)
        assert (done.returncode, told in done.stderr, fix in done.stderr) == (1, True, True), (
            done.stderr
        )
        assert not re.search("hunter2|Traceback", done.stderr)


def test_the_password_of_a_database_may_be_in_the_environment_and_a_missing_pgvector_is_said(
    database: str, tmp_path: Path, postgres: Server
) -> None:
    postgres.execute(
        f"drop role if exists {WITH_PASSWORD}; create role {WITH_PASSWORD} superuser login password 'pw'"
    )
    (tmp_path / "pgpass").write_text(f"*:*:*:{WITH_PASSWORD}:pw\n")
    (tmp_path / "pgpass").chmod(0o600)
    url = database.replace("tw@", f"{WITH_PASSWORD}@")
    around = {"KNAPPER_STORAGE_URL": url, "KNAPPER_MEMORY_EMBEDDING": "none"}
    codes = []
    for given in ({"PGPASSFILE": str(tmp_path / "pgpass")}, {"PGPASSWORD": "pw"}):
        done = knapper("doctor", cwd=tmp_path, environment={**around, **given})
        assert "✓ storage: " in done.stdout, done.stderr
        codes.append(done.returncode)
    postgres.execute("drop extension if exists vector", name_of(database))
    done = knapper("doctor", cwd=tmp_path, environment={**around, "PGPASSWORD": "pw"})
    assert ("create extension vector" in done.stdout, done.returncode) == (True, codes[0])
