"""Third-party MCP servers, each added, approved and called in a turn, as a user would. The turn's model is scripted."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.peers.__main__ import installed
from tests.kit import Ask, Say, Wanted, scripted
from tests.kit.npm import install_packages

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
_EVERYTHING: Final = "@modelcontextprotocol/server-everything"
_COMMAND_S: Final = 300


@dataclass(frozen=True, slots=True)
class CalledTool:
    """A tool of a server, the arguments of its call, and what its result contains."""

    name: str
    arguments: Mapping[str, Any] = field(hash=False)  # Any: JSON
    shows: str


TOOLS: Final = {
    "mcp-server-time": CalledTool("get_current_time", {"timezone": "UTC"}, "UTC"),
    "server-everything": CalledTool("echo", {"message": "Brindle"}, "Brindle"),
}


def call_in_a_turn(name: str) -> str:
    """Use a server of this name from a turn, confined, and return what was tested.

    Raises:
        OSError: it cannot be installed here; says why.
        AssertionError: something went wrong.
    """
    command, tool = _command(name), TOOLS[name]
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        ours = [sys.executable, "-m", "knapper", "-C", folder]
        _run([*ours, "init", folder])
        reads = ["--read", str(Path(command[1]).parents[4])] if name == "server-everything" else []
        shown = json.loads(_run([*ours, "mcp", "add", "other", *reads, "--json", "--", *command]))
        assert tool.name in shown["tools"], shown
        _run([*ours, "mcp", "approve", "other", shown["digest"]])
        with scripted(
            [Ask(Wanted(f"other__{tool.name}", dict(tool.arguments))), Say("Done.")]
        ) as model:
            endpoint = ["--base-url", model.base_url, "--model", "scripted"]
            _run([*ours, "run", *endpoint, "--message", "Use it."])
            (answer,) = model.requests[-1].answers
    assert tool.shows in answer, answer
    return f"added, approved, {len(shown['tools'])} tools, `{tool.name}` called in a turn"


def _command(name: str) -> list[str]:
    if name == "mcp-server-time":
        return [str(installed(name, HERE)), "-m", "mcp_server_time"]
    node = shutil.which("node")
    if node is None:
        raise OSError("node is not installed here")
    package = install_packages((f"{_EVERYTHING}@2026.8.31",)) / "node_modules" / _EVERYTHING
    return [str(Path(node).resolve()), str(package / "dist" / "index.js")]


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=_COMMAND_S, check=False
    )
    assert done.returncode == 0, f"{' '.join(command[3:])}\n{done.stdout}\n{done.stderr}"
    return done.stdout
