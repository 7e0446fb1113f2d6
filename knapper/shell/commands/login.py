"""`knapper login`: a link to the page of a server that runs."""

import asyncio
from contextlib import aclosing
from functools import partial

import click

from agent_core.operations.command_context import CliContext, workspace_command
from agent_core.views.styled_lines import line


@click.command()
@partial(workspace_command, over_server=True)
def login(context: CliContext) -> int:
    """Print a new login link for the page of the running server.

    The link lets one browser in, within ten minutes; those that are logged in stay so. If several servers of the
    workspace run, there is one for each. Over --server it needs a token of all scopes and agents.
    """
    from agent_core.api.serving_files import running_servers
    from agent_core.base.own_environment import environment
    from agent_core.base.settings import TOKEN
    from agent_core.client.client import HttpWire, of_knapper

    async def run() -> list[str]:
        if context.server:
            wires = [HttpWire(context.server, context.token or environment().get(TOKEN, ""))]
        else:
            wires = [HttpWire(*server) for server in running_servers(context.folder)]
        links = []
        for wire in wires:
            async with aclosing(wire):
                links.append(
                    str(
                        of_knapper(await wire.request("POST", "/login/links", {}, None), "login")[
                            "login"
                        ]
                    )
                )
        return links

    links = asyncio.run(run())
    context.result({"login": links[0], "logins": links}, [line(link) for link in links])
    context.hint(
        "It is good once, within ten minutes."
        if len(links) == 1
        else "Each is good once, within ten minutes."
    )
    return 0
