"""The program without this extension, or without a door of it: what is missing is said where it is asked for."""

import json
from pathlib import Path

import pytest

from knapper_ext import mcp, server
from tests.kit import Repeat, Say, scripted
from tests.kit.reduced import reduced, without


@pytest.mark.parametrize("extension", ["server", "mcp", "openai_api"])
def test_a_turn_runs_and_no_command_of_it_is_offered(extension: str, tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "mcp.toml").write_text('[servers.none]\ncommand = ["false"]\n')
    root = without(extension, tmp_path)
    with scripted([Repeat(Say("Good morning!"))]) as model:
        address = ("--base-url", model.base_url, "--model", "scripted")
        done = reduced(root, "run", *address, "--message", "hi", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Good morning!\n"), done.stderr
    shown = reduced(root, "--help", cwd=tmp_path).stdout.split()
    nouns = {"server": server.COMMANDS, "mcp": mcp.COMMANDS}
    for name, commands in nouns.items():
        assert ({*commands} <= {*shown}) == (name != extension)
    for noun in nouns.get(extension, ()):
        missing = reduced(root, noun, cwd=tmp_path)
        assert (missing.returncode, f"No such command '{noun}'" in missing.stderr) == (2, True)


def test_functions_of_other_programs_are_gone_with_what_calls_them(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "mcp.toml").write_text("this is no TOML\n")
    root = without("mcp", tmp_path)
    listed = reduced(root, "functions", "list", "--json", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    sources = {row["source"] for row in json.loads(listed.stdout)["functions"]}
    assert "foreign" not in sources
