"""`knapper storage`: shows, checks and cleans the state, and copies it between a file and a database."""

import asyncio

import click

from agent_core.base.clock import Clock
from agent_core.base.errors import UsageError

from ..cli_context import CliContext, workspace_command
from ..styled_lines import line
from .verb import Door, Opens, Result, verb


@click.group()
def storage() -> None:
    """Check, measure, clean and move the state of a workspace."""


@verb(storage, opens=Opens.NOTHING)
async def check(door: Door) -> Result:
    """Read the whole state, and say what is wrong with it. The exit code is 1 if anything is."""
    async with door.state() as state:
        problem = await state.store.check()
        journal = await state.store.check_journal()
    problems = [*([problem] if problem else []), *journal.faults]
    read = f"{journal.turns:,} turns with {journal.entries:,} entries"
    shown = [line(("bad", f"✗ {one}")) for one in problems] or [line(("ok", "✓ whole"), f": {read}")]
    document = {"ok": not problems, "problem": problem, "journal": journal}
    return Result(document, shown, code=1 if problems else 0)


@verb(storage, opens=Opens.NOTHING)
async def stats(door: Door) -> Result:
    """Show where the state is, and how many rows each of its tables has."""
    from agent_core.storage import row_counts

    async with door.state() as state:
        counts, place = await row_counts(state.store), state.store.place
    lines = [line(f"  {count:>10,}  ", ("name", name)) for name, count in counts.items() if count]
    return Result({"place": place, "rows": counts}, [line(("strong", place)), *lines])


@verb(storage, opens=Opens.NOTHING)
async def vacuum(door: Door) -> Result:
    """Give back the room of what was deleted. Others wait meanwhile."""
    async with door.state() as state:
        await state.store.vacuum()
    return Result({"vacuumed": True}, [line(("ok", "✓ "), "vacuumed")])


@click.command()
@click.option("--from", "source", required=True, metavar="URL", help="sqlite:///PATH or postgresql://…")
@click.option("--to", "target", required=True, metavar="URL", help="An empty state; a file is created.")
@click.option("--resume", is_flag=True, help="Resume an interrupted copy.")
@workspace_command
def copy(context: CliContext, source: str, target: str, resume: bool) -> None:  # noqa: FBT001  (click passes it)
    """Copy a whole state, and compare the two row by row. No other program may write meanwhile."""

    if source == target:
        raise UsageError("A state cannot be copied to itself.", fix="Name another place after --to.")
    counts = asyncio.run(_copy(source, target, resume=resume))
    context.result({"copied": counts}, [line(("ok", "✓ "), f"{sum(counts.values()):,} rows, compared by their hashes")])
    if target.startswith("postgres"):
        context.hint("To use it in a workspace: export KNAPPER_STORAGE_URL=… with this address")


async def _copy(source: str, target: str, *, resume: bool) -> dict[str, int]:
    from agent_core.storage import copy_store, open_store

    clock = Clock()
    async with open_store(source, clock=clock) as first, open_store(target, clock=clock) as second:
        return await copy_store(first, second, resume=resume)


@click.command()
@workspace_command
def claim(context: CliContext) -> None:
    """Give the database to this folder alone: its functions are the ones that count from now on."""
    asyncio.run(_settle(context, joins=False))
    context.result({"claimed": True}, [line(("ok", "✓ "), "the database belongs to this workspace now")])


@click.command()
@workspace_command
def join(context: CliContext) -> None:
    """Let this folder share the database: it becomes a copy of the functions there, and both follow each other."""
    asyncio.run(_settle(context, joins=True))
    context.result({"joined": True}, [line(("ok", "✓ "), "this workspace shares the database now")])


async def _settle(context: CliContext, *, joins: bool) -> None:
    from agent_core.base.settings import load
    from agent_core.functions.service.folder_copy import FolderCopy
    from agent_core.storage import open_store, prepare_state_dir, workspace_id
    from agent_core.workspace.workspace import Workspace

    root = Workspace.find(context.root)
    url = load(root).storage.url
    if url is None:
        raise UsageError("This workspace keeps its state in a file.", fix="Next: knapper storage copy --help")
    workspace = workspace_id(prepare_state_dir(root))
    async with open_store(url, clock=Clock()) as store:
        await (store.join(workspace) if joins else store.claim(workspace))
        FolderCopy(root, store).overrule({} if joins else await store.manifest())


@click.command()
@workspace_command
def confirm(context: CliContext) -> None:
    """Allow the database that knapper.toml names: conversations and memory are kept there from now on."""
    from agent_core.access.grants.addresses import confirm as keep
    from agent_core.base.settings import load, storage_of_file

    named = storage_of_file(load(context.root))
    if named is None:
        raise UsageError("knapper.toml names no database.", fix='Write: [storage] url = "postgresql://…"')
    keep(*named)
    context.result({"confirmed": True}, [line(("ok", "✓ "), "confirmed")])


for _command in (copy, claim, join, confirm):
    storage.add_command(_command)
