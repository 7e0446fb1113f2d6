"""A workspace whose model is scripted, and a client of it in this process or over a socket."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from agent_core import Client, Workspace, connect
from sandbox import Sandbox
from tests.kit import Ask, Script, ScriptedModel, Wanted
from tests.kit.desk import VOWELS
from tests.knapper_ext.server.conftest import server

PAGE = Path(__file__).parents[3] / "docs" / "integrations.md"
Connect: TypeAlias = Callable[..., Awaitable[Client]]
GROWS = Ask(
    Wanted(
        "create_function",
        {
            "function_name": "count_vowels",
            "function_code_with_docstring": VOWELS,
            "module_name": "letters",
        },
    )
)
USES = Ask(Wanted("count_vowels", {"text": "queueing"}))


async def run_program(naming: str, model: ScriptedModel, folder: Path) -> str:
    """Run the page's program that imports a module, and return its output."""
    (program,) = [
        text
        for text in re.findall(r"```python\n(.+?)```", PAGE.read_text("utf-8"), re.DOTALL)
        if naming in text
    ]
    (folder / "program.py").write_text(program, "utf-8")
    Workspace.create(folder / "assistant")
    return await run_script(Path("program.py"), cwd=folder, env=model.environment)


async def run_script(
    script: Path, *arguments: str, cwd: Path, env: Mapping[str, str] | None = None
) -> str:
    """Run a script in a subprocess and return its output."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(script),
        *arguments,
        cwd=cwd,
        env={**os.environ, **(env or {}), "PYTHONPATH": str(PAGE.parents[1])},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return out.decode()


@pytest.fixture
async def connected(
    tmp_path: Path, scripted: Callable[..., ScriptedModel], one_sandbox: Sandbox
) -> AsyncIterator[Connect]:
    """Connect a client, in this process or to a server; there is a second agent `bob`."""
    async with AsyncExitStack() as stack:
        for folder in ("functions", "agents"):
            (tmp_path / folder).mkdir()
        (tmp_path / "agents" / "bob.toml").write_text('purpose = "Counts."\n')

        async def start(
            script: Script, way: str = "in process", scopes: tuple[Any, ...] = ("chat", "read")
        ) -> Client:
            model = scripted(script)
            if way == "socket":
                running = await stack.enter_async_context(server(tmp_path, model, one_sandbox))
                return await stack.enter_async_context(
                    await connect(running.url, token=await running.token("team", *scopes))
                )
            flags: dict[str, Any] = {
                "model.base_url": model.base_url,
                "model.name": "scripted",
            }  # Any: settings
            flags["model.context_tokens"] = 8_192
            return await stack.enter_async_context(
                await connect(tmp_path, flags=flags, sandbox=one_sandbox)
            )

        yield start
