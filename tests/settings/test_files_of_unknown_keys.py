"""A file or folder with absurdly many entries costs a command next to nothing and produces one message."""

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import pytest

from agent_core.access.grants.book import GrantsFile
from agent_core.base.errors import ConfigError
from agent_core.workspace.agent_files import MOST_FILES, MOST_PROBLEMS, stamps_of
from agent_core.workspace.helper_library import read_helper
from sandbox.wire.strict_json import OF_A_FILE, Malformed, lines_of_keys, read_toml
from tests.kit.pace import least_s, time_of
from tests.kit.program import knapper

HELPER = 'purpose = "Finds words."\nresult = "str"\n'
UNKNOWN = "".join(f"k{number}=1\n" for number in range(8_000))
GOOD: Mapping[str, str] = {
    "helpers": f"""{HELPER}inputs = {{ text = "str", count = "int", words = "list[str]" }}
persona = "You count, sort, and compare = all that there is."
budget = {{ steps = 8, tokens = 8000, seconds = 60, depth = 2 }}
helpers = ["*"]
""",
    "agents": """purpose = "Edits texts, lists, tables."
functions = ["text.*", "words.*"]
talks_to = ["main", "n*"]
limits = { steps = 20, tokens = 50000 }
""",
    "groups": """members = ["a", "b"]
purpose = "Edits texts, lists, tables."
limits = { steps = 20, tokens = 50000 }
""",
}
FOLDERS: Mapping[str, Mapping[str, str]] = {
    "a helper of unknown keys": {"helpers/a.toml": HELPER + UNKNOWN},
    "400 helpers of unknown keys": {
        f"helpers/h{number}.toml": HELPER + UNKNOWN[: 250 * 6] for number in range(400)
    },
    "400 agents of unknown keys": {
        f"agents/a{number}x.toml": UNKNOWN[: 250 * 6] for number in range(400)
    },
    "10,000 helpers": {f"helpers/h{number}.toml": HELPER for number in range(10_000)},
    "grants of unknown keys": {
        "functions/grants.toml": "".join(f"[f{n}]\nk = 1\n" for n in range(8_000))
    },
    "servers of unknown keys": {"mcp.toml": f"[a]\n{UNKNOWN}"},
}
COMMANDS = (
    ("functions", "list"),
    ("helpers", "list"),
    ("agents", "list"),
    ("agents", "tree"),
    ("functions", "grants"),
)


def processor_s(root: Path, home: Path, command: tuple[str, ...]) -> float:
    """Return the CPU seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    program = [sys.executable, "-m", "knapper", *command]
    subprocess.run(
        program, cwd=root, env=environment, capture_output=True, timeout=300, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("name", "command"), [*product(FOLDERS, COMMANDS)])
def test_a_command_takes_no_longer_in_a_folder_that_is_full(
    tmp_path: Path, name: str, command: tuple[str, ...]
) -> None:
    folders = {"small": dict[str, str](), "full": FOLDERS[name]}
    for folder, files in folders.items():
        for path, text in {"knapper.toml": "", "functions/a.py": "", **files}.items():
            file = tmp_path / folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    for folder in folders:
        processor_s(tmp_path / folder, tmp_path / "home", command)  # what only the first one does
    usual_s = processor_s(tmp_path / "small", tmp_path / "home", command)
    took_s = least_s(
        1.5 * usual_s, lambda: processor_s(tmp_path / "full", tmp_path / "home", command)
    )
    assert took_s <= 1.5 * usual_s


def test_a_helper_of_too_many_keys_is_told_in_one_sentence() -> None:
    (problem,) = read_helper("a", HELPER + UNKNOWN)  # type: ignore[misc]  # problems
    assert "at most 1,000 keys and values" in str(problem)
    assert least_s(0.05, lambda: time_of(lambda: read_helper("a", HELPER + UNKNOWN))) < 0.05


def test_of_unknown_keys_the_first_twenty_are_told_each_with_its_line() -> None:
    text = HELPER + "".join(f"key{number} = 1\n" for number in range(300))
    problems = read_helper("a", text)
    assert isinstance(problems, tuple)
    assert [problem.where.line for problem in problems] == [
        3 + number for number in range(MOST_PROBLEMS)
    ]
    assert least_s(0.2, lambda: time_of(lambda: read_helper("a", text))) < 0.2


def test_keys_and_values_are_counted_before_a_file_is_read_but_not_in_a_text_or_a_comment() -> None:
    for text in (
        "k = [" + "1," * OF_A_FILE + "]",
        "[[a]]\n" * (OF_A_FILE + 1),
        "".join(f"[a{number}]\n" for number in range(OF_A_FILE + 1)),
        "a = { " + ", ".join(f"b{number} = 1" for number in range(OF_A_FILE)) + " }",
        f'a = """{"=" * 5_000}"""\n' + "k = [" + "1," * OF_A_FILE + "]",
    ):
        with pytest.raises(Malformed, match="at most 1,000 keys and values"):
            read_toml(text, values=OF_A_FILE)
    for text in (
        f'a = "{"=,[{{." * 2_000}"\n',
        f"a = '{'=,[{{.' * 2_000}'\n",
        f'a = """\n{"x = [1], " * 2_000}\\""" "\n"""\n',
        f"a = '''\n{'x = [1], ' * 2_000}'''\n",
        f"a = 1 # {'=,' * 5_000}\n",
    ):
        assert [*read_toml(text, values=OF_A_FILE)] == ["a"], text[:20]


def test_the_lines_of_all_keys_are_found_at_once() -> None:
    text = "a = 1\n\"b c\" = { d = 2, e = 3 }\n\n[[f]]\n[ g ]\n'h' = 4\na = 5\n"
    assert lines_of_keys(text) == {"a": 1, "b c": 2, "d": 2, "e": 2, "f": 4, "g": 5, "h": 6}


def test_of_wrong_grants_the_first_twenty_are_told(tmp_path: Path) -> None:
    (tmp_path / "grants.toml").write_text(
        "".join(f"[f{n}]\nk = 1\n" for n in range(4_000)) + "[good]\nseconds = 5\n"
    )
    listing = GrantsFile(tmp_path).read()
    assert len(listing.problems) == 21
    assert [problem.where.line for problem in listing.problems[:3]] == [1, 3, 5]
    assert not listing.entries


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "command", "names"),
    [("helpers", ("helpers", "list"), "helpers"), ("groups", ("agents", "tree"), "members")],
)
def test_a_folder_has_room_for_400_files_and_not_for_as_many_that_are_full(
    tmp_path: Path, folder: str, command: tuple[str, str], names: str
) -> None:
    good = GOOD[folder]
    prose = f"# {'a = [1, 2], ' * 3_000}\n{good}"
    assert not problems_of(
        tmp_path / "good", folder, command, [good] * 200 + [prose] * 5 + [good] * 195
    )
    full = re.sub(rf"^{names} = .*$", f"{names} = {['n*'] * 190}", good, flags=re.MULTILINE)
    shown = problems_of(tmp_path / "full", folder, command, [full] * 400)
    sentence = f"The files of {folder}/ have more than 30,000 keys and values in all."
    assert {problem["message"] for problem in shown[:-1]} == {sentence}
    assert int(shown[-1]["message"].split()[0]) in range(200, 300)


def problems_of(
    root: Path, folder: str, command: tuple[str, str], texts: Sequence[str]
) -> list[dict[str, str]]:
    """Return a command's problems with a folder of these files."""
    (root / folder).mkdir(parents=True)
    (root / "knapper.toml").touch()
    for number, text in enumerate(texts):
        (root / folder / f"n{number:03}_of_x.toml").write_text(text)
    done = knapper(*command, "--json", cwd=root)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return list(found["rejected" if folder == "helpers" else "problems"])


def test_a_folder_of_too_many_files_is_told_as_one_thing(tmp_path: Path) -> None:
    for number in range(MOST_FILES):
        (tmp_path / f"a{number}.toml").write_text("")
    assert len(stamps_of(tmp_path)) == MOST_FILES
    (tmp_path / "one_more.toml").write_text("")
    with pytest.raises(ConfigError, match="more than 2,000 files"):
        stamps_of(tmp_path)
