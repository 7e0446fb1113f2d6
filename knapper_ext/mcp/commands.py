"""`knapper mcp`: serves the workspace over MCP through a pipe, and manages the MCP servers that it uses."""

import asyncio
import difflib
import json
import os
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_core.base import machine
from agent_core.base.errors import UsageError
from agent_core.base.records import to_json
from agent_core.base.untrusted import fence, one_line, visible
from agent_core.operations.command_context import CliContext, must_have, workspace_command
from agent_core.operations.operation import Opens
from agent_core.operations.verb import Door, verb
from agent_core.views.result import Result
from agent_core.views.styled_lines import counted, line
from sandbox.wire.lines import bare_lines

if TYPE_CHECKING:  # `knapper --help` loads none of it
    from .library import McpLibrary
    from .servers import ForeignListing, Reach, ServerBook


_ABOUT = 100  # characters shown of a description
_PLACE = 80  # the same, of a place in a schema
_MAX_PLACES = 5


@click.group(invoke_without_command=True)
@click.option(
    "--grow", is_flag=True, help="Let clients create, edit and test functions, through the gate."
)
@workspace_command
def mcp(context: CliContext, *, grow: bool) -> int | None:
    """Serve the functions to other assistants, over standard input and output."""
    if (subcommand := click.get_current_context().invoked_subcommand) is not None:
        if grow:
            raise UsageError(
                f"--grow belongs to `knapper mcp` alone, not to `{subcommand}`.",
                fix="Omit one of them.",
            )
        return None
    must_have("mcp", "mcp")
    from agent_core.workspace.workspace import Workspace

    from .door import serve_pipe

    async def run() -> None:
        flags = {"mcp.grow": True} if grow else {}
        async with Workspace.open(context.folder, flags=flags) as workspace:
            context.tell(*workspace.recovered)
            await serve_pipe(workspace, machine.stopping())

    asyncio.run(run())
    return 0


@verb(mcp, opens=Opens.NOTHING)
@click.argument("target", nargs=-1, required=True, metavar="COMMAND… | URL")
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME",
    help="A secret that it gets, as a variable.",
)
@click.option(
    "--bearer", default="", metavar="NAME", help="The secret that is sent to a URL as the token."
)
@click.option(
    "--read",
    multiple=True,
    metavar="PATH",
    help="A path that it may read, in addition to the system.",
)
@click.option("--write", multiple=True, metavar="PATH", help="A path that it may read and write.")
@click.option("--unconfined", is_flag=True, help="Let it reach all files that you can.")
async def add(
    door: Door, name: str, target: tuple[str, ...], **options: Any
) -> Result:  # Any: the options above
    """Add an MCP server, and show its tools. They can be used once you approve them.

    Put -- before a command that has options of its own.
    """
    from pydantic import ValidationError

    from agent_core.base.problem import misfit_sentence

    from .servers import ServerEntry

    is_url = len(target) == 1 and "://" in target[0]
    where = {"url": target[0]} if is_url else {"command": target}
    is_unconfined = options.pop("unconfined")
    if is_url and (is_unconfined or options["read"] or options["write"]):
        raise UsageError(
            "A server at a URL is not confined.", fix="Leave out --read, --write and --unconfined."
        )
    if options["bearer"] and not is_url:
        raise UsageError(
            "A command gets no bearer token.", fix="Give it secrets as variables: --secret NAME"
        )
    is_confined = not (is_unconfined or is_url)
    options |= {
        access: [str(Path.cwd() / path) for path in options[access]] for access in ("read", "write")
    }
    try:
        entry = ServerEntry(**where, confined=is_confined, **options)
    except ValidationError as error:
        raise UsageError(
            f"This is no MCP server: {misfit_sentence(error.errors()[0])}.", fix="See docs/mcp.md."
        ) from error
    async with opened_library(door) as library:
        library.book.check_name(name)
        library.book.entries()  # a broken file is told before anything is started
        reach = library.book.reach(entry)  # before the server runs, which may change what is there
        await library.trial(name, entry).client()  # a failure leaves no trace
        library.book.put(name, entry)
        library.book.forget(name)
        library.book.approve(name, entry, reach=reach)
        return await _tools_to_approve(library, name, is_whole=False)


@verb(mcp, opens=Opens.NOTHING)
async def list_(door: Door) -> Result:
    """List the MCP servers, and how many tools of each you approved."""
    async with opened_library(door) as library:
        rows = []
        for name, entry in library.book.entries().items():
            tools = library.book.tools(name, entry)
            failure = library.book.failure(name, entry)
            if not tools and not library.book.is_started(name, entry):
                state = "unapproved"
            elif failure:
                state = "failed"
            else:
                state = "approved" if tools else "started"
            doubt = library.book.doubt(name, entry) if state == "unapproved" else ""
            about = {"state": state, "problem": failure or doubt or None, "tools": sorted(tools)}
            rows.append({"name": name, **entry.model_dump(mode="json"), **about})
    lines = []
    for row in rows:
        mark = [("bad", f"  {row['state']}")] if row["state"] == "failed" else [f"  {row['state']}"]
        many = counted(len(row["tools"]), "tool")
        many = "none of its tools approved" if row["state"] == "started" else many
        target = one_line(row["url"] or " ".join(row["command"]), 100)
        lines.append(line(("name", row["name"]), *mark, f", {many}  ", ("dim", target)))
        lines += [line("  ", row["problem"])] if row["problem"] else []
    return Result(
        {"servers": rows},
        lines,
        "" if rows else "There is none. Next: knapper mcp add NAME COMMAND…",
    )


@verb(mcp, opens=Opens.NOTHING)
async def remove(door: Door, name: str) -> Result:
    """Remove an MCP server, and take back every yes to it."""
    async with opened_library(door) as library:
        library.book.entry(name)
        library.book.put(name, None)
        library.book.forget(name)
    return Result({"removed": name}, [line(("ok", "✓ "), "removed ", ("name", name))])


@verb(mcp, opens=Opens.NOTHING)
async def approve(door: Door, name: str, digest: str = "") -> Result:
    """Approve what was shown of an MCP server, by its digest; without one, show what there is to approve.

    The entry in mcp.toml comes first, if you did not add it yourself: nothing is started before.
    """
    from .servers import NOT_LET
    from .servers import digest as digest_of

    async with opened_library(door) as library:
        entry = library.book.entry(name)
        reach = library.book.reach(entry)
        if why := library.book.objection(entry, reach):
            raise UsageError(f"The MCP server `{name}` cannot be approved: {why}.", fix=NOT_LET)
        if not library.book.is_started(name, entry, reach):
            now = digest_of([entry.text, reach.text] if reach.text else entry.text)
            if digest != now:
                return _entry_to_approve(library.book, name, reach, now, digest)
            library.book.approve(name, entry, reach=reach)
            return await _tools_to_approve(library, name)
        listing = await _listing(library, name)
        tools = {tool.name: tool.to_json() for tool in listing.tools.values()}
        if digest != digest_of(tools):
            return await _tools_to_approve(library, name)
        library.book.approve(name, entry, tools, reach)
        functions = sorted(library.functions())
    own = [function for function in functions if function.startswith(f"{name}__")]
    lines = [
        line(
            ("ok", "✓ "), f"{counted(len(own), 'function')} can be used: ", ("name", ", ".join(own))
        )
    ]
    return Result({"approved": name, "functions": own}, lines)


@verb(mcp, opens=Opens.NOTHING)
async def doctor(door: Door, name: str) -> Result:
    """Connect to an MCP server, and say what is wrong with it and with its tools."""
    async with opened_library(door) as library:
        listing = await _listing(library, name)
        entry = library.book.entry(name)
        approved = library.book.tools(name, entry)
    now = {tool.name: tool.to_json() for tool in listing.tools.values()}
    changed = sorted(
        tool for tool in approved.keys() | now.keys() if approved.get(tool) != now.get(tool)
    )
    problems = [*listing.problems]
    for tool in [tool for tool in changed if tool not in listing.left_out]:
        how = "differs from what you approved" if tool in approved else "is not approved"
        problems.append(f"{fence(tool, 80)} {how if tool in now else 'is gone'}")
    data = {
        "name": name,
        "tools": len(now),
        "approved": len(approved),
        "problems": problems,
        "ok": not problems,
    }
    lines = [line(f"{name}: {counted(len(now), 'tool')}, {len(approved)} approved")]
    lines += [line(("bad", "! "), problem) for problem in problems]
    return Result(
        data,
        lines,
        f"See: knapper mcp approve {name}" if changed else "",
        code=1 if problems else 0,
    )


@asynccontextmanager
async def opened_library(door: Door) -> "AsyncIterator[McpLibrary]":
    """Open the workspace's library of MCP servers, without its functions."""
    must_have("mcp", "mcp")
    from agent_core.access.secrets import Secrets

    from .library import McpLibrary

    async with door.state() as state:
        library = McpLibrary(state.root, Secrets(state.root))
        try:
            yield library
        finally:
            await library.aclose()


async def _listing(library: "McpLibrary", name: str) -> "ForeignListing":
    connection = library.connection(name, library.book.entry(name))
    await connection.client()
    return connection.listing


async def _tools_to_approve(library: "McpLibrary", name: str, *, is_whole: bool = True) -> Result:
    """Return what to approve: each new tool, each difference from an approved one, and suspicious text.

    Unless it `is_whole`, only the beginning of each tool's description is shown.
    """
    from .servers import digest

    listing, approved = (
        await _listing(library, name),
        library.book.tools(name, library.book.entry(name)),
    )
    tools = {tool.name: tool.to_json() for tool in listing.tools.values()}
    lines, suspicions = [], dict[str, list[str]]()
    for tool in listing.tools.values():
        if approved.get(tool.name) == tool.to_json():
            continue
        mark = "changed" if tool.name in approved else "new"
        about = (
            ""
            if is_whole
            else f"  {one_line(next(iter(bare_lines(visible(tool.description))), ''), _ABOUT)}"
        )
        lines.append(line(("name", one_line(tool.name, 80)), f" ({mark})", ("dim", about)))
        old = _tool_lines(approved.get(tool.name))
        changes = difflib.ndiff(old, _tool_lines(tool.to_json())) if is_whole else ()
        lines += [line(("dim", f"  {text}")) for text in changes if text[0] != "?"]
        if tool.schema.unchecked:
            places = ", ".join(
                fence(place, _PLACE) for place in tool.schema.unchecked[:_MAX_PLACES]
            )
            lines.append(
                line(("dim", f"  of its schema, this cannot be read and is not checked: {places}"))
            )
        if tool.suspicions:
            suspicions[tool.name] = tool.suspicions
            lines += [line(("bad", f"  ! its text {why}")) for why in tool.suspicions]
    gone = sorted(approved.keys() - tools.keys() - listing.left_out.keys())
    lines += [line(("bad", f"! {one_line(tool, 80)} is gone")) for tool in gone]
    lines += [line(("bad", f"! left out: {problem}")) for problem in listing.problems]
    document = {"name": name, "tools": tools, "digest": digest(tools), "problems": listing.problems}
    if not tools and not approved:
        why = "No tool of it can be used" if listing.problems else "It lists no tools"
        return Result(
            {**document, "approved": False},
            [*lines, line(f"{name}: {why}.")],
            code=int(bool(listing.problems)),
        )
    if tools == approved:
        lines.append(line(f"{name}: nothing has changed since you approved it."))
        return Result({**document, "approved": True}, lines)
    lines += (
        []
        if is_whole
        else [line(f"To read all that they say, with their schemas: knapper mcp approve {name}")]
    )
    fix = f"To use these: knapper mcp approve {name} {digest(tools)}"
    return Result({**document, "suspicions": suspicions, "approved": False}, [*lines, line(fix)])


def _tool_lines(tool: dict[str, Any] | None) -> list[str]:  # Any: JSON
    if tool is None:
        return []
    text = json.dumps(tool["parameters"], indent=1, ensure_ascii=False)
    returns = f"\nreturns {tool['returns']}" if "returns" in tool else ""
    return bare_lines(visible(f"{tool['description']}\n{text}{returns}"))


def _entry_to_approve(
    book: "ServerBook", name: str, reach: "Reach", digest: str, given: str
) -> Result:
    """Return what to approve about an entry. If a digest was `given`, it belongs to a different entry."""
    from .confined import not_kept_from

    entry = book.entry(name)
    is_confined = bool(entry.command and entry.confined)
    facts = {
        "connects to": entry.url,
        "starts": shlex.join(entry.command),
        "gets the secrets": ", ".join(entry.secrets),
        "sends as its token the secret": entry.bearer,
        "reads, in addition": _places(book.root, entry.read, reach.read)
        if is_confined
        else ", ".join(entry.read),
        "reads as its installation": ", ".join(reach.own),
        "reads and writes": _places(book.root, entry.write, reach.write)
        if is_confined
        else ", ".join(entry.write),
        "has files in its own folder already": ", ".join(book.found(name)) if is_confined else "",
        "reaches": "all files that you can" if entry.command and not entry.confined else "",
        "is not kept from": " and ".join(not_kept_from()) if is_confined else "",
    }
    doubt = book.doubt(name, entry)
    why = (
        "is not started" if doubt else "is in mcp.toml, but you did not add it. Nothing was started"
    )
    lines = [
        line(("bad", f"! {name} {why}.")),
        *(line(f"  {each}") for each in [doubt] if each),
        *(line(f"  It {fact}: {visible(value)}") for fact, value in facts.items() if value),
        line(f"To start it and see its tools: knapper mcp approve {name} {digest}"),
    ]
    if given:
        lines.insert(1, line(("bad", "  The digest does not match the current entry.")))
    data = {
        "name": name,
        "entry": entry.text,
        "reach": to_json(reach),
        "digest": digest,
        "started": False,
    }
    return Result(data, lines, code=1 if given else 0)


def _places(root: Path, paths: Sequence[str], reached: Sequence[str]) -> str:
    """Return paths of an entry with where they lead, where that is another place."""
    named = [
        path
        if os.path.normpath(root.resolve() / path) == real
        else f"{path}, which leads to {real}"
        for path, real in zip(paths, reached, strict=True)
    ]
    return "; ".join(named)
