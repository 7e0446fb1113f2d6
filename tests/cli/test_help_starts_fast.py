"""Help is shown without loading modules that only an open workspace needs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.program import surroundings

HEAVY = ("agent_core.functions.service", "agent_core.storage", "agent_core.workspace", "pydantic", "jsonschema", "apsw")


@pytest.mark.parametrize("words", [("--help",), ("functions", "--help"), ("helpers", "--help")], ids=" ".join)
def test_help_loads_no_workspace(words: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "agent_core", *words]
    done = subprocess.run(command, cwd=tmp_path, env=surroundings({}), capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "agent_core.interfaces.cli" in loaded
    assert not loaded & {*HEAVY}
