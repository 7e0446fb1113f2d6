"""The server, which provides a workspace over HTTP to programs, browsers and other machines; numbers and spans of it.

`app` has the routes, `guard` is in front of them, `page/` is for browsers; other extensions add doors (`DOORS`). A
worker (`worker_command`) runs turns at a database, without a door. Like the other interfaces, they consume the events
of turns and call the operations, and contain no logic themselves.
"""

from collections.abc import Mapping
from typing import Final

from agent_core.base.extensions import NounBeside

_GROUP: Final = "Serve and keep"

COMMANDS: Final[Mapping[str, NounBeside]] = {
    "serve": NounBeside(
        _GROUP, "HTTP server and page", f"{__name__}.serve_command:serve", before="login"
    ),
    "tokens": NounBeside(
        _GROUP, "who may use the server", f"{__name__}.serve_command:tokens", before="schema"
    ),
    "worker": NounBeside(
        _GROUP, "turns at a database", f"{__name__}.worker_command:worker", before="mcp"
    ),
}
