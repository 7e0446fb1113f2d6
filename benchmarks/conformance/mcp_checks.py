"""The conformance checks of the MCP project, on our server at `/mcp` and on our client.

Only applicable scenarios run. Left out are features that this server does not have (prompts, logging, completion,
tasks, questions to the client), scenarios that need resources with fixed names, and OAuth. Run as a program, it is the
client under test: `python -m benchmarks.conformance.mcp_checks URL` adds a server, approves it and calls its tools.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.kit.npm import install_packages

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
NAME: Final = "mcp-checks"
_CHECKS: Final = "@modelcontextprotocol/conformance"
_NODE: Final = "22.23.3"  # the checks need 22
_SERVER: Final = (
    *("server-initialize", "server-session-lifecycle", "server-stateless", "ping", "tools-list"),
    *(
        "tools-call-simple-text",
        "tools-call-error",
        "tools-call-with-progress",
        "server-sse-multiple-streams",
    ),
    *("resources-list", "sep-2164-resource-not-found", "input-required-result-unsupported-methods"),
    *("dns-rebinding-protection", "caching", "http-header-validation"),
)
_CLIENT: Final = (
    *(
        "initialize",
        "tools_call",
        "sse-retry",
        "request-metadata",
        "http-standard-headers",
        "http-custom-headers",
    ),
    *("http-invalid-tool-headers", "json-schema-ref-no-deref", "json-schema-2020-12-preservation"),
)
_APART: Final = {
    "sep-2549-prompts-list-caching-hints": "there are no prompts",
    "sep-2575-server-rejects-undeclared-capability": "no function asks the client for a model",
    "sep-2575-missing-capability-http-400": "no function asks the client for a model",
    "sep-2575-server-sends-tools-list-changed-on-subscription": "no function changes the list",
}
_SCENARIO_S: Final = 300
FUNCTIONS: Final = '''"""What the checks call."""

import time


def test_simple_text() -> str:
    """Return a text.

    >>> test_simple_text()
    'This is a simple text response for testing.'
    """
    return "This is a simple text response for testing."


def test_error_handling(wrong: bool = True) -> str:
    """Fail, unless it is told not to.

    >>> test_error_handling(False)
    'no'
    """
    if wrong:
        raise ValueError("This tool intentionally returns an error for testing")
    return "no"


def test_tool_with_progress(self) -> str:
    """Report progress three times."""
    for done in (0, 50, 100):
        self.progress(done, 100)
        time.sleep(0.05)
    return "done"
'''


def add_functions(workspace: Path) -> None:
    """Give a workspace the functions that the checks call."""
    (workspace / "functions").mkdir(exist_ok=True)
    (workspace / "functions" / "checks.py").write_text(FUNCTIONS, "utf-8")


def run_checks(url: str, token: str) -> str:
    """Check the server at an address and the client; return how many checks passed.

    Raises:
        OSError: they cannot be installed here; says why.
        AssertionError: some failed; says which.
    """
    program = _program()
    environment = {
        **os.environ,
        "CONFORMANCE_TOKEN": token,
        "NODE_OPTIONS": f"--import {HERE / 'with_token.mjs'}",
    }
    client = f"{sys.executable} -m {__spec__.name if __spec__ else __name__}"
    passed, failed = 0, []
    for scenario in (*_SERVER, *_CLIENT):
        given = ("server", "--url", url) if scenario in _SERVER else ("client", "--command", client)
        checks = [
            *_checked(
                [*program, *given], scenario, environment if scenario in _SERVER else os.environ
            )
        ]
        passed += sum(check["status"] == "SUCCESS" for check in checks)
        failed += [
            f"{scenario}: {_said(check)}"
            for check in checks
            if check["status"] in ("FAILURE", "WARNING")
        ]
    assert not failed, "\n".join(failed)
    return (
        f"{len(_SERVER)} scenarios of the server and {len(_CLIENT)} of the client: {passed} checks"
    )


def _program() -> list[str]:
    system, machine = (
        platform.system().lower(),
        {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "other"),
    )
    node = f"node-{system}-{machine}"
    packages = install_packages((f"{_CHECKS}@0.2.0-alpha.12", f"{node}@{_NODE}")) / "node_modules"
    return [str(packages / node / "bin" / "node"), str(packages / _CHECKS / "dist" / "index.js")]


def _checked(
    command: Sequence[str], scenario: str, environment: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Run a scenario and yield its applicable checks."""
    with tempfile.TemporaryDirectory(prefix="checks-") as folder:
        whole = [
            *command,
            "--scenario",
            scenario,
            "--timeout",
            f"{_SCENARIO_S}000",
            "--output-dir",
            folder,
        ]
        done = subprocess.run(
            whole,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_SCENARIO_S * 2,
            check=False,
        )
        results = [*Path(folder).glob("*/checks.json")]
        assert results, f"{scenario}: {done.stdout}{done.stderr}"
        for check in json.loads(results[0].read_text("utf-8")):
            if check["id"] not in _APART:
                yield check


def _said(check: Mapping[str, Any]) -> str:
    return f"{check['id']}: {check.get('errorMessage') or check['description']}"


def use_server(url: str) -> None:
    """Add the server at an address to a new workspace, approve it, and call each of its tools by the command line."""
    with tempfile.TemporaryDirectory(prefix="checks-") as folder:
        ours = [sys.executable, "-m", "knapper", "-C", folder]
        _ran([*ours, "init", folder])
        shown = json.loads(_ran([*ours, "mcp", "add", "other", "--json", url]))
        _ran([*ours, "mcp", "approve", "other", shown["digest"]])
        for name, arguments in _calls(shown["tools"]):
            print(
                _ran(
                    [*ours, "functions", "call", f"other__{name}", "--args", json.dumps(arguments)],
                    may_fail=True,
                )
            )


def _calls(tools: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the calls that a scenario asks for, or one call of each tool with arguments of the right types."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    if "toolCalls" in context:
        for call in context["toolCalls"]:
            yield call["name"], call["arguments"]
        return
    samples: dict[str, Any] = {
        "integer": 5,
        "number": 5,
        "string": "text",
        "boolean": True,
        "array": [],
    }
    samples["object"] = (
        next(iter(tools.values()))["parameters"] if tools else {}
    )  # a schema, as it reached us
    for name, tool in tools.items():
        properties = tool["parameters"].get("properties", {})
        yield (
            name,
            {key: samples.get(schema.get("type"), "text") for key, schema in properties.items()},
        )


def _ran(command: Sequence[str], *, may_fail: bool = False) -> str:
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=_SCENARIO_S, check=False
    )
    assert may_fail or done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr * may_fail


if __name__ == "__main__":
    use_server(sys.argv[1])
