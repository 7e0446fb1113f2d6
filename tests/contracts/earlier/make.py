"""Has an earlier version write a small workspace: settings, functions, grants, a state, and an agent's file.

    git worktree add --detach ../earlier 3f560781
    python -m tests.contracts.earlier.make ../earlier

The state is written as SQL, the files of functions with `.txt` behind their names. Nothing here changes afterwards.
"""

import os
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import apsw.shell

from tests.interfaces.support import COUNT_VOWELS, FLAWED, create, flags
from tests.kit import Ask, Repeat, Say, Script, Wanted, scripted

HERE = Path(__file__).parent
SETTINGS = """\
agent = "ada"

[turn]
max_steps = 9
shown_functions = 64
max_calls = 12
message_llm_system = "Be brief."

[sandbox]
output_kib = 32
result_kib = 512
debug_wait_minutes = 5

[gate]
fixes_off = ["missing-import"]
candidate_kib = 32
module_kib = 128

[standing]
keep_calls = 50

[growth]
trigger = false
mask = 0.2

[memory]
tidy = false
page_chars = 6_000
session_gap_minutes = 30

[heartbeat]
pause_max_minutes = 60

[runner]
ask_hours = 8
message_chars = 9_000

[repl]
theme = "light"
bell = true
"""
FUNCTIONS = '''\
"""Functions that a person wrote."""


def doubled(number: int) -> int:
    """Double a number.

    Args:
        number: The number.

    Examples:
        >>> doubled(2)
        4
        >>> doubled(-3)
        -6
    """
    return 2 * number


def counted(self) -> int:
    """Count the calls so far."""
    self.state["calls"] = self.state.get("calls", 0) + 1
    return self.state["calls"]


def note_of(name: str) -> str:
    """Read a note.

    Args:
        name: The name of its file.
    """
    with open(f"notes/{name}") as file:
        return file.read()
'''
SCRIPT: Script = [
    Ask(create(COUNT_VOWELS)),
    Ask(Wanted("count_vowels", {"text": "queueing"})),
    Ask(create(FLAWED.replace("count_vowels", "flawed"), "flawed")),
    Ask(Wanted("core_memory_append", {"name": "human", "content": "Name: Ada Lovelace"})),
    Ask(Wanted("archival_memory_insert", {"content": "Herons fish at dusk."})),
    Say("It has 5 vowels."),
    Repeat(Say("Yes.")),
]
COMMANDS = (
    ("functions", "call", "count_vowels", "--args", '{"text": "aha"}'),
    ("functions", "good", "count_vowels"),
    ("functions", "call", "doubled", "--args", '{"number": 4}'),
    ("functions", "grant", "note_of", "--read", "notes/", "--yes"),
    ("functions", "grant", "counted", "--stateful", "--yes"),
    ("functions", "call", "note_of", "--args", '{"name": "today"}'),
    ("functions", "call", "counted"),
    ("run", "--message", "Do you remember heron?"),
    ("agents", "export", "ada", "ada.json"),
)


def main(checkout: Path) -> None:
    """Write the files next to this one."""
    with TemporaryDirectory() as folder, scripted(SCRIPT) as model:
        root = Path(folder) / "workspace"
        home = Path(folder) / "home"
        for name, text in {
            "knapper.toml": SETTINGS,
            "functions/old.py": FUNCTIONS,
            "notes/today": "Rain.",
        }.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        home.mkdir()
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(checkout)}
        program = (sys.executable, "-m", "knapper")
        for words in (("run", "--message", "How many vowels has queueing?"), *COMMANDS):
            options = flags(model) if words[0] == "run" else ()
            command = (*program, *words, *options)
            subprocess.run(command, cwd=root, env=environment, check=True)
        _keep(root)


def _keep(root: Path) -> None:
    shutil.copy(root / "ada.json", HERE / "ada.json")
    shutil.copy(root / "knapper.toml", HERE / "knapper.toml")
    for file in (root / "functions").iterdir():
        if file.is_file():
            is_code = file.suffix == ".py"
            shutil.copy(file, HERE / (f"{file.name}.txt" if is_code else file.name))
    connection = apsw.Connection(str(root / ".knapper" / "state.db"))
    dump = StringIO()
    apsw.shell.Shell(stdout=dump, db=connection).process_command(".dump")  # type: ignore[no-untyped-call]  # apsw
    lines = [line for line in dump.getvalue().splitlines() if not line.startswith("--")]
    for name in ("user_version", "application_id"):
        number = connection.pragma(name)
        lines.append(f"PRAGMA {name} = {number};")
    connection.close()
    (HERE / "state.sql").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
