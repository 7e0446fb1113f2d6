"""`knapper serve` and `tokens`: serves the workspace over HTTP and manages access to it."""

import asyncio
import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING

import click

from agent_core.base import machine
from agent_core.base.errors import UsageError
from agent_core.operations.command_context import (
    CliContext,
    must_have,
    with_scheme,
    workspace_command,
)
from agent_core.operations.operation import Opens
from agent_core.operations.verb import Door, verb
from agent_core.storage import agent_named, line_named
from agent_core.views.result import Result, print_json
from agent_core.views.styled_lines import line, write
from agent_core.workspace.conversations import Conversations

if TYPE_CHECKING:
    from agent_core.storage import Line, Store

    from .app import Doors

_SCOPES = ("chat", "read", "edit", "approve", "admin")


@click.command()
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address; others need a token."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8700,
    show_default=True,
    help="0 takes a free one.",
)
@click.option(
    "--tls-cert", "certificate", default="", metavar="FILE", help="The certificate, to serve HTTPS."
)
@click.option("--tls-key", "key", default="", metavar="FILE", help="Its key.")
@click.option(
    "--behind-proxy", "is_behind_proxy", is_flag=True, help="A proxy in front of it adds TLS."
)
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME",
    help="Another name, with its port, for clients.",
)
@click.option(
    "--spans",
    is_flag=True,
    help="Send spans of OpenTelemetry to where OTEL_EXPORTER_OTLP_ENDPOINT says.",
)
@click.option(
    "--model", metavar="NAME", help="A model of the endpoint, one that runs here, or tour."
)
@click.option(
    "--base-url",
    metavar="URL",
    callback=with_scheme,
    help="An endpoint that speaks chat completions.",
)
@workspace_command
def serve(context: CliContext, **options: object) -> int:
    """Serve the workspace over HTTP, to those with `knapper tokens`. Ctrl-C stops it.

    With --json the first line says where: {"url", "login", "workspace"}.
    """
    must_have("server", "starlette", "uvicorn")
    if options["spans"]:
        must_have("otel", "opentelemetry.sdk", "opentelemetry.exporter")
    from agent_core.base.events import FunctionsChanged
    from agent_core.views.call_log import changed_lines
    from agent_core.workspace.workspace import Workspace

    from .app import ServeOptions, must_be_safe
    from .app import serve as served

    named = {"model.name": options.pop("model"), "model.base_url": options.pop("base_url")}
    flags = {name: value for name, value in named.items() if value is not None}
    asked = ServeOptions(**options)  # type: ignore[arg-type]  # the options above
    if bool(asked.certificate) != bool(asked.key):
        raise UsageError("--tls-cert and --tls-key belong together.", fix="Give both.")

    def tell(doors: "Doors") -> None:
        if context.as_json:
            print_json(
                {"url": doors.url, "login": doors.login, "workspace": str(context.root.resolve())}
            )
            return
        print(f"Serving {context.root.resolve()} at {doors.url}", flush=True)  # noqa: T201  (the command's result)
        context.tell(
            f"Log in once, within ten minutes: {doors.login}",
            "For another browser: knapper login. Ctrl-C stops it.",
        )

    async def run() -> None:
        async with Workspace.open(context.folder, flags=flags) as workspace:
            context.tell(*workspace.recovered)
            if warning := await must_be_safe(workspace, asked):
                context.tell(warning)
            workspace.functions.on_change(lambda changed: write(changed_lines(changed), sys.stderr))
            if rejected := tuple(map(str, workspace.rejected())):
                write(changed_lines(FunctionsChanged(turn="", rejected=rejected)), sys.stderr)
            if trouble := await workspace.model_trouble():
                context.tell(trouble)
            await served(workspace, asked, tell, machine.stopping())

    asyncio.run(run())
    return 0


@click.group()
def tokens() -> None:
    """Add, list and revoke the tokens with which programs use the server."""


@verb(tokens, opens=Opens.NOTHING)
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(_SCOPES),
    multiple=True,
    required=True,
    help="What it may do.",
)
@click.option(
    "--agent", "agents", multiple=True, metavar="NAME", help="Only this agent; may be repeated."
)
@click.option(
    "--conversation",
    "conversations",
    multiple=True,
    metavar="ID",
    help="Only this conversation of the one --agent; may be repeated.",
)
@click.option(
    "--expires", default="", metavar="TIME", help="How long it is valid: 30d, 12h or 90m."
)
async def add(
    door: Door,
    name: str,
    *,
    scopes: tuple[str, ...],
    agents: tuple[str, ...],
    conversations: tuple[str, ...],
    expires: str,
) -> Result:
    """Make a token. It is shown once; only its hash is stored."""
    from agent_core.api.identity import SCOPES, TokenBook

    async with door.state() as state:
        lines = tuple([await _line_of(state.store, agents, each) for each in conversations])
        chosen = tuple(scope for scope in SCOPES if scope in scopes)
        made = await TokenBook(state.store, time.time).add(
            name, chosen, tuple(dict.fromkeys(agents)), expires, lines=lines
        )
    hint = "It is shown this once. Send it as: Authorization: Bearer TOKEN"
    return Result(made, [line(("strong", made.token))], hint)


async def _line_of(store: "Store", agents: tuple[str, ...], conversation: str) -> "Line":
    """Return the line of a conversation to which a token is to be limited.

    Raises:
        UnknownName: there is none.
        UsageError: it is not one of a single agent, or it is private to another token.
    """
    if len(agents) != 1:
        raise UsageError(
            "A conversation is one of an agent's.", fix="Name its agent, and no other: --agent NAME"
        )
    row = await Conversations(store, agent_named(agents[0])).find(conversation)
    if row.token:
        raise UsageError(
            f"The conversation {row.id} is private to the token that began it.",
            fix="Choose one that was begun here: knapper conversations list",
        )
    return line_named(row.line)


@verb(tokens, opens=Opens.NOTHING)
async def list_(door: Door) -> Result:
    """List the tokens: what each may do, with which agents, and until when."""
    async with door.state() as state:
        rows = await state.store.tokens()
    shown = ("name", "scopes", "agents", "expires", "added_at")
    data = {"tokens": [{name: getattr(row, name) for name in shown} for row in rows]}
    lines = [
        line(
            ("name", row.name),
            f"  {', '.join(row.scopes)}  ",
            ("dim", ", ".join(row.agents) or "all agents"),
        )
        + line(
            (
                "dim",
                f"  until {datetime.fromtimestamp(row.expires):%Y-%m-%d %H:%M}"
                if row.expires
                else "",
            )
        )
        for row in rows
    ]
    return Result(
        data, lines, "" if rows else "There is none. Next: knapper tokens add NAME --scope chat"
    )


@verb(tokens, opens=Opens.NOTHING)
async def revoke(door: Door, name: str) -> Result:
    """Revoke a token. It is refused from now on, by servers that are running, too."""
    from agent_core.api.identity import TokenBook

    async with door.state() as state:
        await TokenBook(state.store, time.time).revoke(name)
    return Result({"revoked": name}, [line(("ok", "✓ "), "revoked ", ("name", name))])
