"""MCP, by which assistants offer each other tools: those of this workspace to others, and those of others to it.

`door` is the server of a workspace: over a pipe (`knapper mcp`), and at `/mcp` of the HTTP server (`http_door`).
`commands` also manages the servers of others.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from agent_core.base.extensions import NounBeside, imported_by_call

if TYPE_CHECKING:
    from agent_core.api.http_door import OpenHttpDoor

COMMANDS: Final[Mapping[str, NounBeside]] = {
    "mcp": NounBeside(
        "Serve and keep", "tools for, and of, others", f"{__name__}.commands:mcp", before="tokens"
    )
}
DOORS: "Final[Mapping[str, OpenHttpDoor]]" = {
    "mcp": imported_by_call(f"{__name__}.http_door:McpHttpDoor")
}
