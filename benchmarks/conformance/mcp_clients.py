"""Third-party MCP clients, connected while a function is created, changed and deleted at a prompt in a terminal.

Each connects both through a program started by `knapper mcp` and through `/mcp` of a server, at the workspace of the
prompt: each path is a separate process. The model behind the prompt is scripted.
"""

import asyncio
import json
import re
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

from benchmarks.peers.__main__ import installed
from tests.kit import Ask, Say, Script, Wanted, scripted
from tests.kit.desk import VOWELS
from tests.kit.terminal import KNAPPER, Terminal

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
CLIENTS: Final = {
    "mcp-1": ("mcp-1",),
    "mcp-2": ("mcp-2", "mcp-2-handshake"),
    "mcp-agent-framework": ("mcp-agent-framework",),
}
"""By the name of their environment."""
_ARRIVES_S: Final = 60
_ALTERED: Final = (
    VOWELS.replace("(text: str)", '(text: str, letters: str = "aeiouk")')
    .replace("look at.\n", "look at.\n        letters: What counts.\n", 1)
    .replace("are a, e, i, o or u", "are among these")
    .replace('in "aeiou"', "in letters")
)
_MADE: Final = {"function_code_with_docstring": VOWELS, "module_name": "letters"}
_EDITED: Final = {
    "changes": [{"old_text": VOWELS, "new_text": _ALTERED}],
    "reason": "other letters, too",
}
_NAMED: Final = {"function_name": "count_vowels"}
_SCRIPT: Final[Script] = [
    *(Ask(Wanted("create_function", _NAMED | _MADE)), Say("It is made.")),
    *(Ask(Wanted("edit_function", _NAMED | _EDITED)), Say("It is changed.")),
]
_STEPS: Final = {
    "make it": ("It is made.", ["text"], "0"),
    "change it": ("It is changed.", ["letters", "text"], "1"),
    "/delete count_vowels": ("✓ deleted count_vowels", None, "was deleted"),
}
"""What is typed → what the prompt then shows, the arguments that each client sees, and the result it gets."""


def follow_a_prompt(name: str, url: str, token: str, workspace: Path) -> str:
    """Have the clients of an environment follow what happens at a prompt; return what was tested.

    Raises:
        OSError: they cannot be installed here; says why.
        AssertionError: something did not arrive.
    """
    python = installed(name, HERE)
    return asyncio.run(
        _followed(
            python, CLIENTS[name], {"stdio": _ours(workspace), "HTTP": (url, token)}, workspace
        )
    )


def _ours(workspace: Path) -> tuple[str, str]:
    return json.dumps([*KNAPPER, "-C", str(workspace), "mcp"]), ""


async def _followed(
    python: Path, clients: Sequence[str], ways: dict[str, tuple[str, str]], workspace: Path
) -> str:
    async with AsyncExitStack() as stack:
        model = stack.enter_context(scripted(_SCRIPT))
        command = [*KNAPPER, "run", "--base-url", model.base_url, "--model", "scripted"]
        screen = stack.enter_context(closing(Terminal(command, cwd=workspace)))
        await asyncio.to_thread(screen.wait_for, "/help lists")
        connected = {
            f"{client} over {way}": await stack.enter_async_context(
                _connected(python, client, *place)
            )
            for client in clients
            for way, place in ways.items()
        }
        await asyncio.gather(
            *(_sees(one, who, None, "count_vowels") for who, one in connected.items())
        )
        for typed, (shown, takes, answer) in _STEPS.items():
            screen.line(typed)
            if typed.startswith("/delete"):
                await asyncio.to_thread(screen.answer, "y")
            await asyncio.to_thread(screen.wait_for, shown)
            await asyncio.gather(
                *(_sees(one, who, takes, answer) for who, one in connected.items())
            )
    return f"{', '.join(connected)}: a function made, altered and deleted at a prompt arrived"


@asynccontextmanager
async def _connected(python: Path, *arguments: str) -> AsyncIterator[Process]:
    """Run a client that prints what it sees; on exit, it has ended by itself."""
    program = str(HERE / "python_clients.py")
    process = await asyncio.create_subprocess_exec(
        str(python), program, *arguments, cwd=ROOT, stdout=PIPE
    )
    try:
        yield process
        async with asyncio.timeout(_ARRIVES_S):
            assert await process.wait() == 0, arguments
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _sees(client: Process, who: str, takes: list[str] | None, answer: str) -> None:
    """Wait until a client sees a function with these arguments, or none, and gets this result."""
    assert client.stdout is not None
    said, seen = b"", list[Any]()  # Any: JSON
    try:
        async with asyncio.timeout(_ARRIVES_S):
            while said := await client.stdout.readline():
                seen = json.loads(said)
                if seen[0] == takes and re.search(rf"\b{answer}\b", seen[1]):
                    return
    except TimeoutError:
        pass
    raise AssertionError(f"{who}: {takes} and {answer!r} did not arrive; it saw {seen}")
