"""An untrusted MCP server, as a separate program: `python stranger.py FILE`. FILE defines its behavior.

It uses no library, so it can do what none allows; it rereads FILE at each message.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Answer each message."""
    for line in sys.stdin:
        message, does = json.loads(line), json.loads(Path(sys.argv[1]).read_text())
        if "method" not in message:  # the answer to one of its own requests
            with Path(f"{sys.argv[1]}.heard").open("a") as heard:
                heard.write(line)
        if does.get("protests") and "id" not in message:
            print(
                json.dumps(
                    {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "unknown"}}
                )
            )
            sys.stdout.flush()
        if "id" not in message or "method" not in message:
            continue
        answer(message, does)
        sys.stdout.flush()


def answer(message: dict[str, Any], does: dict[str, Any]) -> None:  # Any: JSON
    """Answer one message."""
    result, reply = None, {"jsonrpc": "2.0", "id": message["id"]}
    match message["method"]:
        case "initialize":
            about = {"protocolVersion": message["params"]["protocolVersion"]}
            result = {
                **about,
                "serverInfo": {"name": "s", "version": "1"},
                "capabilities": {"tools": {}},
            }
            result = does.get("greeting", result)
        case "tools/list":
            result = {"tools": does["tools"], **does.get("page", {})}
        case "tools/call" if message["params"]["name"] in does.get("answers", {}):
            odd = does["answers"][message["params"]["name"]]
            text = odd if isinstance(odd, str) else json.dumps(odd)
            number = json.dumps(message["id"])
            print(text.replace('"NUMBER"', number).replace("NUMBER AS TEXT", number))
            return
        case "tools/call":
            text = does.get("says") or called(
                message["params"]["name"], message["params"].get("arguments", {})
            )
            behave(message["params"]["name"])
            for other in does.get("sends", ()):
                print(json.dumps({"jsonrpc": "2.0", **other}))
            result = {"content": [{"type": "text", "text": text}]}
            result |= {"structuredContent": does["structured"]} if "structured" in does else {}
    error = {"error": {"code": -32601, "message": "Method not found"}}
    print(json.dumps({**reply, **(error if result is None else {"result": result})}))
    if message["method"] == "tools/call" and does.get("changes"):
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))


def behave(name: str) -> None:
    """Misbehave if the tool's name says so."""
    if name == "die":
        os._exit(3)
    if name == "garbage":
        print("\x1b[31mnot a message\n[1, 2")
    if name == "flood":
        sys.stdout.write("x" * (9 << 20) + "\n")


def called(name: str, arguments: dict[str, Any]) -> str:  # Any: JSON
    """Return the result of a tool."""
    if name != "look":
        return json.dumps({"arguments": arguments, "environment": dict(os.environ)})
    try:
        return Path(arguments["path"]).read_text()
    except OSError as error:
        return f"refused: {error.strerror}"


if __name__ == "__main__":
    main()
