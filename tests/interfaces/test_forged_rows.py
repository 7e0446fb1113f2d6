"""Whatever someone writes into a row of the state file, each command ends with an answer and an exit code."""

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.storage import STATE
from knapper.shell.cli import LazyGroup
from tests.kit.drawing import drawn
from tests.kit.program import knapper

FUNCTION, AGENT, DEEP = "count_vowels", "tour", "[" * 60_000 + "]" * 60_000
_FUNCTIONS = ("bad", "delete", "diff", "good", "history", "release", "show", "test")
_MEMORY = {
    "add": "notes",
    "attach": "notes",
    "detach": "persona",
    "history": "persona",
    "search": "hi",
}
WITH: dict[str, tuple[str, ...]] = {
    **dict.fromkeys([f"functions {verb}" for verb in _FUNCTIONS], (FUNCTION,)),
    **dict.fromkeys(
        [f"agents {verb}" for verb in ("export", "pause", "resume", "show", "stop")], (AGENT,)
    ),
    **dict.fromkeys(
        ("functions confirm", "helpers delete", "helpers history", "helpers show"), ("kept",)
    ),
    **dict.fromkeys(("helpers create", "helpers edit"), ("kept", "--file", "functions/tour.py")),
    **dict.fromkeys([f"mcp {verb}" for verb in ("approve", "doctor", "remove")], (AGENT,)),
    **{
        f"memory {verb}": (of, "--agent", AGENT)
        for verb, of in (_MEMORY | dict.fromkeys(("share", "undo"), "persona")).items()
    },
    "init": (),
    "run": ("--model", "tour", "--agent", AGENT, "--message", "hi"),
    "functions answer": ("0" * 48, "no"),
    "functions add-example": (FUNCTION, "--call", f'{FUNCTION}("a")', "--result", "1"),
    "functions call": (FUNCTION, "--args", '{"text": "queue"}'),
    "functions check": ("functions",),
    "functions create": ("other", "--source", "def other() -> int:\n    return 1\n"),
    "functions export": ("out",),
    "functions grant": (FUNCTION, "--network", "example.org", "-y"),
    "functions import": ("functions",),
    "functions revoke": (FUNCTION, "--all"),
    **dict.fromkeys(("functions move", "functions rename"), (FUNCTION, "other")),
    "functions rollback": (FUNCTION, "1"),
    **dict.fromkeys(("functions join", "functions pin", "functions unpin"), (FUNCTION,)),
    "functions search": ("count vowels",),
    "functions trace": (FUNCTION, "--args", '{"text": "queue"}'),
    "calls replay": ("1",),
    "calls show": ("1",),
    "secrets remove": ("NONE",),
    "cap": ("day_tokens", "1000000"),
    "agents answer": (AGENT, "Yes."),
    "agents delete": (AGENT, "-y"),
    "agents import": ("nothing.json",),
    "agents route": (AGENT, "main"),
    "agents run": ("--until-idle",),
    "agents watch": ("--seconds", "0.1"),
    "helpers rollback": ("kept", "1"),
    "mcp add": ("other", "no-such-program"),
    **dict.fromkeys(
        [f"conversations {verb}" for verb in ("branch", "delete", "undelete")],
        ("main", "--agent", AGENT),
    ),
    "conversations rename": ("main", "other", "--agent", AGENT),
    "conversations search": ("tea", "--agent", AGENT),
    "waiting edit": ("0" * 12, "other", "--agent", AGENT),
    "waiting withdraw": ("0" * 12, "--agent", AGENT),
    "memory show": ("--agent", AGENT),
    "sources add": ("functions/tour.py", "--agent", AGENT),
    **dict.fromkeys(("sources attach", "sources detach"), ("functions/tour.py", "--agent", AGENT)),
    "sources list": ("--agent", AGENT),
    "sources load": ("functions/tour.py",),
    "sources remove": ("nothing", "--agent", AGENT),
    "schema": ("functions/tour.py",),
    "serve": ("--port", "0", "--model", "tour"),
    "state adopt": ("state.db",),
    "storage copy": ("--from", f"sqlite:///{STATE}/state.db", "--to", "sqlite:///copy.db"),
    "tokens add": ("other", "--scope", "chat"),
    "tokens revoke": (AGENT,),
}
CTRL_C = """
import signal

def type_it(*_):
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGALRM, type_it)
signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
"""
FIRST = {"serve": CTRL_C}
"""Code that runs before a command that ends only at Ctrl-C: it sends Ctrl-C once the command waits for it."""
ELSEWHERE = {"configure", "functions edit", "memory edit", "secrets set"} | {
    f"models {verb}" for verb in ("get", "list", "path", "remove")
}
ELSEWHERE |= {f"extensions {verb}" for verb in ("disable", "enable", "list")}
"""They ask a human, start an editor, or open no state."""
TEXTS = ["", "x", DEEP, "1" * 6_000, "[]", "{}", "[5]", '"x"', "5", "null", "\x1b[2J\n</x>"]
TEXTS += [
    '{"text": 5, "calls": 5, "id": 5}',
    '{"problems": [5], "standing": 5}',
    "../../x",
    "/etc/passwd",
    "a\0b",
    "antigravity:x",
    "create_function",
]
INTEGERS = [0, 1, -5, 1_000_000, 2**31, 2**40, 2**63 - 1, -(2**63)]
REALS = [0.0, -1e300, 1e300, float("inf"), -float("inf"), 1e18, 253402300800.0]
BLOBS = [b"", b"x", b"\xff" * 7, b"\1" + b"\0" * 7, b"\0" * 4096]
VALUES: dict[str, Sequence[object]] = {
    "TEXT": TEXTS,
    "INTEGER": INTEGERS,
    "REAL": REALS,
    "BLOB": BLOBS,
}


def commands(
    command: click.Command, names: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(names), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from commands(below, (*names, name))


BY_NAME = dict(commands(LazyGroup("knapper")))
COMMANDS = sorted(BY_NAME.keys() - ELSEWHERE)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with something in nearly every table."""
    root = tmp_path_factory.mktemp("forged")
    for arguments in (
        ["init"],
        ["run", *WITH["run"][:-1], "how many vowels are in queueing?"],
        ["functions", "create", "kept", "--source", "def kept(a, b: 5 +:\n"],
        ["sources", "add", "functions/tour.py", "--agent", AGENT],
        ["sources", "load", "functions/tour.py"],
    ):
        knapper(*arguments, cwd=root)
    db = sqlite3.connect(root / STATE / "state.db")
    for table, _, _ in columns(root):
        fill(db, table)
    db.commit()
    db.close()
    return root


def columns(root: Path) -> list[tuple[str, str, str]]:
    """Return every column of every table, with its type."""
    db = sqlite3.connect(root / STATE / "state.db")
    rows = db.execute(
        "select name, sql from sqlite_schema where type = 'table' order by 1"
    ).fetchall()
    indexes = tuple(
        name for name, sql in rows if sql.lower().startswith("create virtual")
    )  # derived and rebuilt
    tables = [name for name, _ in rows if not name.startswith(indexes)]
    found = [
        (table, row[1], row[2])
        for table in tables
        for row in db.execute(f"pragma table_info({table})")
    ]
    db.close()
    return [(table, name, kind) for table, name, kind in found if not table.startswith("sqlite_")]


def fill(db: sqlite3.Connection, table: str) -> None:
    """Insert a row where there is none."""
    if db.execute(f"select count(*) from {table}").fetchone()[0]:
        return
    kinds = [(row[1], row[2]) for row in db.execute(f"pragma table_info({table})")]
    some = {"TEXT": AGENT, "INTEGER": 1, "REAL": 1.0, "BLOB": b""}
    values = {name: some[kind] for name, kind in kinds}
    for row in db.execute(
        f"pragma foreign_key_list({table})"
    ).fetchall():  # a reference to an existing row
        found = db.execute(f"select {row[4] or 'rowid'} from {row[2]} limit 1").fetchone()
        values[row[3]] = found[0] if found else values[row[3]]
    names, marks = ", ".join(values), ", ".join("?" * len(values))
    db.execute(f"insert into {table} ({names}) values ({marks})", [*values.values()])


def forge(root: Path, table: str, column: str, value: object) -> None:
    db = sqlite3.connect(root / STATE / "state.db")
    db.execute("pragma foreign_keys = off")
    db.execute(f"update or ignore {table} set {column} = ?", (value,))
    db.commit()
    db.close()


def test_a_forged_reading_changes_nothing_shown_and_a_verdict_no_standing(
    workspace: Path, tmp_path: Path
) -> None:
    shutil.copytree(workspace, root := tmp_path / "copy")
    db = sqlite3.connect(root / STATE / "state.db")
    db.execute("update reading set reading = replace(reading, 'Count the vowels', 'Harmless')")
    assert db.execute(
        "select count(*) from reading where instr(reading, 'Harmless')"
    ).fetchone() == (1,)
    db.commit()
    db.close()
    listed = knapper("functions", "list", cwd=root).stdout
    assert ("Harmless" in listed, "Count the vowels" in listed) == (False, True)
    forge(
        root,
        "verdict",
        "verdict",
        '{"problems": [], "fixes": [], "standing": "trial", "by": "human"}',
    )
    done = knapper("functions", "show", FUNCTION, cwd=root)
    assert (done.returncode, "draft" in done.stdout) == (
        0,
        True,
    )  # as a function that was never judged
    with_arguments = {
        name for name in COMMANDS if any(parameter.required for parameter in BY_NAME[name].params)
    }
    assert (
        with_arguments <= set(WITH) <= {*COMMANDS}
    )  # without its arguments a command would end before it reads a row


@settings(max_examples=drawn(90))
@given(data=st.data())
def test_no_forged_row_ends_a_command_otherwise_than_with_an_answer(
    workspace: Path, data: st.DataObject
) -> None:
    table, column, kind = data.draw(st.sampled_from(columns(workspace)))
    value = data.draw(st.sampled_from(VALUES[kind]))
    command = data.draw(st.sampled_from(COMMANDS))
    root = workspace.parent / f"{workspace.name}-tried"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(workspace, root)
    forge(root, table, column, value)
    done = knapper(*command.split(), *WITH.get(command, ()), cwd=root, first=FIRST.get(command, ""))
    said = done.stdout + done.stderr
    assert (done.returncode in (0, 1, 2), "Knapper failed" in said, "\x1b[2J" in said) == (
        True,
        False,
        False,
    ), said
    assert list((root / STATE).glob("crash-*")) == []
