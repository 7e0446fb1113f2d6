"""Memory that edits itself, in two sessions: friends who turn out not to be, and facts that are saved in parallel.

`python examples/self_editing_memory.py WORKSPACE` plays it with a scripted model that runs in this program. With
`--real`, it uses the model that `knapper doctor` shows.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from agent_core import Workspace, events

SESSIONS = {
    "friends": [
        "Hi, I am Bob. My best friends are Alex and Mitua.",
        "My friend Karl lives in York.",
        "Mitua is not my best friend any more.",
        "Who is my best friend?",
    ],
    "saves": [
        "I live in Leeds, I play the cello, and I have a dog, Rex.",
        "Did I say that I play the cello?",
    ],
}
FRIENDS = "Bob's best friends are Alex and Mitua."
SCRIPT: dict[
    str, list[list[tuple[str, ...]]]
] = {  # message → the calls of each reply, before the last one
    SESSIONS["friends"][0]: [[("core_memory_append", FRIENDS)]],
    SESSIONS["friends"][1]: [[("core_memory_append", "Bob's friend Karl lives in York.")]],
    SESSIONS["friends"][2]: [
        [("core_memory_append", "Mitua is not Bob's best friend.")],
        [("core_memory_replace", FRIENDS, "Bob's best friend is Alex.")],
    ],
    SESSIONS["saves"][0]: [
        [
            ("core_memory_append", "Bob lives in Leeds."),
            ("core_memory_append", "Bob plays the cello."),
            ("core_memory_append", "Bob has a dog, Rex."),
        ]
    ],
    SESSIONS["saves"][1]: [[("core_memory_append", "bob plays the cello")]],
}
NAMES = {"core_memory_append": ("content",), "core_memory_replace": ("old_content", "new_content")}


class Scripted(BaseHTTPRequestHandler):
    """An endpoint that follows the script."""

    def do_POST(self) -> None:
        """Reply with the calls that come next in the turn, or with a sentence."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        last = max(place for place, message in enumerate(asked) if message["role"] == "user")
        steps = next(
            (calls for said, calls in SCRIPT.items() if said in str(asked[last]["content"])), []
        )
        taken = sum(message["role"] == "assistant" for message in asked[last:])
        calls = steps[taken] if taken < len(steps) else []
        message: dict[str, Any] = {"role": "assistant", "content": None if calls else "All right."}
        if calls:
            functions = [{"name": name, "arguments": given(name, texts)} for name, *texts in calls]
            message["tool_calls"] = [
                {"id": f"call_{len(asked)}_{n}", "type": "function", "function": function}
                for n, function in enumerate(functions)
            ]
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "tool_calls" if calls else "stop",
        }
        body = json.dumps(
            {"id": "1", "object": "chat.completion", "model": "scripted", "choices": [choice]}
        )
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def given(name: str, texts: list[str]) -> str:
    """Return the arguments of a call as JSON text."""
    return json.dumps({"name": "human", **dict(zip(NAMES[name], texts, strict=True))})


async def main(root: str, *, is_real: bool) -> None:
    """Hold both sessions; print the calls with their results, then what is remembered."""
    async with AsyncExitStack() as stack:
        flags: dict[str, Any] = {}
        if not is_real:
            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Scripted))
            Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            flags = {
                "model.base_url": f"http://127.0.0.1:{server.server_port}/v1",
                "model.name": "scripted",
            }
            flags |= {"model.stream": False, "model.context_tokens": 16_384}
        workspace = await stack.enter_async_context(Workspace.open(root, flags=flags))
        for session, messages in SESSIONS.items():
            # Nothing of the first session is in the context, and the memory is the same.
            agent = await workspace.agent("bob", "new")
            for message in messages:
                print(f"\n[{session}] > {message}")
                async for event in agent.turn(message):
                    if isinstance(event, events.CallAnswered):
                        print(f"{event.name}: {event.text}")
                    elif isinstance(event, events.Text):
                        print(event.text, end="", flush=True)
        print("\n\nRemembered:", *agent.memory.blocks.memory["human"].lines, sep="\n- ")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("Type: python examples/self_editing_memory.py WORKSPACE [--real]")
    asyncio.run(main(sys.argv[1], is_real="--real" in sys.argv))
