"""`knapper worker`: the turns of all agents at a database that several processes share."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING

import click

from agent_core.base import machine
from agent_core.base.late import LateModule
from agent_core.operations.command_context import CliContext, must_have, workspace_command
from agent_core.operations.verb import SECONDS
from agent_core.views.faults import turn_fault
from knapper.terminal.dialog import say

if TYPE_CHECKING:
    from agent_core.base.events import Event
    from agent_core.views import agent_view
else:
    agent_view = LateModule("agent_core.views.agent_view")


@click.command()
@click.option(
    "--slots",
    type=click.IntRange(1, 64),
    default=None,
    help="Agents at once; by default [runner] slots.",
)
@click.option(
    "--grace", type=SECONDS, default=5.0, show_default=True, help="Seconds that turns have to end."
)
@click.option(
    "--metrics",
    default="",
    metavar="HOST:PORT",
    help="Answer Prometheus there: numbers for all who can reach it.",
)
@click.option(
    "--spans",
    is_flag=True,
    help="Send spans of OpenTelemetry to where OTEL_EXPORTER_OTLP_ENDPOINT says.",
)
@workspace_command
def worker(context: CliContext, slots: int | None, grace: float, metrics: str, spans: bool) -> int:  # noqa: FBT001  (click passes it)
    """Run the turns of all agents at a database that several processes share, until SIGTERM or Ctrl-C.

    Turns that have not ended by then go on in another worker. Exit code 75 says: start it again.
    """
    from agent_core.base.errors import StorageError

    try:
        asyncio.run(_work(context, slots, grace, metrics, spans=spans))
    except StorageError as error:
        context.tell(str(error))
        return machine.TRY_AGAIN
    return 0


async def _work(
    context: CliContext, slots: int | None, grace: float, metrics: str, *, spans: bool
) -> None:
    from agent_core.workspace.workspace import Workspace

    hearers: list[Callable[[Event], None]] = [lambda event: say(agent_view.behind_lines(event))]

    def heard(event: "Event") -> None:
        for hear in hearers:
            hear(event)

    async with AsyncExitStack() as stack:
        workspace = await stack.enter_async_context(Workspace.open(context.folder))
        if metrics:
            must_have("metrics", "prometheus_client")
            from .metrics import Metrics, answered

            counted = Metrics(workspace)
            context.tell(
                f"Numbers for Prometheus: {stack.enter_context(answered(counted, metrics))}"
            )
            hearers.append(counted.hear)
        if spans:
            must_have("otel", "opentelemetry.sdk", "opentelemetry.exporter")
            from .tracing import Spans

            hearers.append((await stack.enter_async_context(aclosing(Spans()))).hear)
        slots = slots or workspace.settings.runner.slots
        runner = await stack.enter_async_context(
            workspace.worker(heard, slots=slots, on_fault=lambda *fault: say([turn_fault(*fault)]))
        )
        context.tell(
            f"At work for {workspace.store.place}, {slots} agents at once. Ctrl-C stops it."
        )
        is_stopping, run = (
            asyncio.create_task(machine.stopping().wait()),
            asyncio.create_task(runner.run()),
        )
        await asyncio.wait([is_stopping, run], return_when=asyncio.FIRST_COMPLETED)
        is_stopping.cancel()
        await runner.stop(grace)
        await run
