"""Help is shown without loading modules that only an open workspace needs."""

import subprocess
import sys
from pathlib import Path

from tests.kit.program import surroundings

HEAVY = ("agent_core.functions.service", "agent_core.storage", "agent_core.workspace", "pydantic", "jsonschema", "apsw")


def test_help_loads_no_workspace(tmp_path: Path) -> None:
    for words in (("--help",), ("functions", "--help"), ("helpers", "--help")):
        command = [sys.executable, "-X", "importtime", "-m", "agent_core", *words]
        done = subprocess.run(command, cwd=tmp_path, env=surroundings({}), capture_output=True, text=True, check=True)
        lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
        loaded = {line.rpartition("|")[2].strip() for line in lines}
        assert "agent_core.interfaces.cli" in loaded
        assert not loaded & {*HEAVY}, words
