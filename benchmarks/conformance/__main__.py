"""`make conformance`: real clients talk to our server, each in a separate environment below the cache folder.

    python -m benchmarks.conformance [CLIENT …]

The model behind the server is scripted, so only the interface is tested. Frameworks that our agents can join run the
tests of their adapter; third-party MCP servers are called in a turn, and third-party MCP clients follow what happens at
a prompt. AutoGen's own team tests run with our agents as members, and the MCP project's checks run on our server and
client. What cannot be installed here is skipped, with the reason. Exits with 1 if one failed.
"""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.peers.__main__ import installed
from tests.kit import Ask, Repeat, Say, Seen, Wanted, scripted
from tests.kit.npm import install_packages

from . import autogen_suite, mcp_checks, mcp_clients, mcp_servers

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
PYTHON: Final = ("openai-python", "openai-agents", "llm")
NODE: Final = {
    "openai-js": ("openai@6.49.0",),
    "ai-sdk": ("ai@6.0.322", "@ai-sdk/openai-compatible@2.0.87"),
}
FRAMEWORKS: Final = {
    "autogen": "test_teams_of_autogen.py",
    "agent-framework": "test_chats_of_agent_framework.py",
}
SUITES: Final = (autogen_suite.NAME, mcp_checks.NAME)
SAID: Final = "The lighthouse stands in Brindle."
CLIENTS_OWN: Final = "tide_at"
_CLIENT_S, _STOP_S = 600, 60


def main(names: Sequence[str]) -> int:
    """Run the clients, print a line for each, and return the exit code."""
    failed = False
    with (
        tempfile.TemporaryDirectory(prefix="conformance-") as folder,
        scripted([Repeat(_said)]) as model,
    ):
        mcp_checks.add_functions(Path(folder))
        with served(model.base_url, Path(folder)) as (url, token):
            for name in names or (
                *mcp_servers.TOOLS,
                *mcp_clients.CLIENTS,
                *PYTHON,
                *NODE,
                *FRAMEWORKS,
                *SUITES,
            ):
                try:
                    told = f"ok: {_tried(name, url, token, Path(folder))}"
                except (AssertionError, TimeoutError) as failure:
                    print(failure, file=sys.stderr)
                    told, failed = "FAILED", True
                except OSError as reason:
                    told = f"skipped: {reason}"
                print(f"{name:18} {told}", flush=True)
    return int(failed)


def _tried(name: str, url: str, token: str, workspace: Path) -> str:
    """Run one client and return what was tested.

    Raises:
        OSError: it cannot be installed here; says why.
        AssertionError: something went wrong.
    """
    if name in mcp_servers.TOOLS:
        return mcp_servers.call_in_a_turn(name)
    if name in mcp_clients.CLIENTS:
        return mcp_clients.follow_a_prompt(name, _door(url), token, workspace)
    if name == autogen_suite.NAME:
        return autogen_suite.run_suite()
    if name == mcp_checks.NAME:
        return mcp_checks.run_checks(_door(url), token)
    command = [*command_of(name), *(() if name in FRAMEWORKS else (url, token))]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=_CLIENT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip().rpartition("\n")[2]  # what was tested, or how many tests passed


def _door(url: str) -> str:
    return f"{url.removesuffix('/v1')}/mcp"


def _said(seen: Seen) -> Say | Ask:
    """Call the client's function once, if it has one; otherwise answer, quoting its result."""
    if CLIENTS_OWN in seen.functions and not seen.answers:
        return Ask(Wanted(CLIENTS_OWN, {"place": "Brindle"}))
    return Say(" ".join([SAID, *seen.answers]))


def command_of(name: str) -> list[str]:
    """Return the command that runs a client; installs the client if needed.

    Raises:
        OSError: it cannot be installed; says why.
    """
    if name in FRAMEWORKS:
        tests = ROOT / "tests" / "knapper_ext" / "frameworks" / FRAMEWORKS[name]
        return [
            str(installed(name, HERE)),
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            str(tests),
        ]
    if name in PYTHON:
        return [str(installed(name, HERE)), str(HERE / "python_clients.py"), name]
    folder = install_packages(NODE[name])
    shutil.copy(
        HERE / "node_clients.mjs", folder
    )  # Node resolves packages from the folder of a module
    return [_program("node"), str(folder / "node_clients.mjs"), name]


@contextmanager
def served(
    model: str, folder: Path, scopes: Sequence[str] = ("chat", "read", "edit")
) -> Iterator[tuple[str, str]]:
    """Run a server of a new workspace in a folder; yield the address of its `/v1` and a token."""
    ours = [sys.executable, "-m", "knapper", "-C", str(folder)]
    subprocess.run([*ours, "init", str(folder)], cwd=ROOT, capture_output=True, check=True)
    adding = [
        *ours,
        "tokens",
        "add",
        "client",
        *(part for scope in scopes for part in ("--scope", scope)),
        "--json",
    ]
    added = subprocess.run(adding, cwd=ROOT, capture_output=True, text=True, check=True)
    command = [*ours, "serve", "--json", "--port", "0", "--base-url", model, "--model", "scripted"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            told = json.loads(process.stdout.readline())
            yield f"{told['url']}/v1", json.loads(added.stdout)["token"]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(_STOP_S)


def _program(name: str) -> str:
    if path := shutil.which(name):
        return path
    raise OSError(f"{name} is not installed here")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
