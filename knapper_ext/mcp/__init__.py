"""MCP, by which assistants offer each other tools: those of this workspace to others, and those of others to it.

`door` is the server of a workspace: over a pipe (`knapper mcp`), and at `/mcp` of the HTTP server (`http_door`).
`library` has the functions of other servers, each approved with its exact schema (`servers`, `schemas`); `connection`
speaks to one over `wire`, started as `confined` or at an address. `commands` manages them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from agent_core.base.extensions import NounBeside, imported_by_call

if TYPE_CHECKING:
    from agent_core.api.http_door import OpenHttpDoor
    from agent_core.functions.foreign import OpenForeign

COMMANDS: Final[Mapping[str, NounBeside]] = {
    "mcp": NounBeside(
        "Serve and keep", "tools for, and of, others", f"{__name__}.commands:mcp", before="tokens"
    )
}
DOORS: "Final[Mapping[str, OpenHttpDoor]]" = {
    "mcp": imported_by_call(f"{__name__}.http_door:McpHttpDoor")
}
FOREIGN: "Final[Mapping[str, OpenForeign]]" = {
    "mcp.toml": imported_by_call(f"{__name__}.library:McpLibrary")
}
