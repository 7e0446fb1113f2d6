"""A host function's memory writes are reported once on disk; changes by others are reported to the model."""

from collections.abc import Mapping

from agent_core.base.clock import Clock
from agent_core.base.events import CallAnswered, Event, MemoryChanged
from agent_core.context import Shown
from agent_core.memory.blocks import Alias, PlannedEdit
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from agent_core.runtime.agent import Agent
from agent_core.runtime.colleagues import Colleagues, NoPeers
from agent_core.runtime.dispatch import Dispatcher, WorkspaceFunctions
from agent_core.runtime.host_functions import HostFunction, HostFunctions
from agent_core.runtime.loop import AgentLoop, Remembering
from agent_core.runtime.model_session import ModelSession
from agent_core.runtime.session import AgentSession
from agent_core.storage import BlockRow, SaveBlock
from agent_core.workspace.helper_library import HelperSelection
from tests.conftest import OpenDesk
from tests.kit import Ask, Expect, Say, Wanted, contains
from tests.kit.desk import Desk, ended, of

SOURCE = '''\
async def note(self, label: str, text: str) -> str:
    """Write a block.

    Args:
        label: Which.
        text: What it is to hold.
    """
'''
CALL = Ask(Wanted("note", {"label": "human", "text": "Ada"}))


def agent_of(desk: Desk, host: HostFunction, memory: Remembering | None = None, **aliases: Alias) -> Agent:
    """Return an agent with one host function, which stands in for all of memory."""
    workspace, functions = desk.workspace, {host.function.name: host}
    sandbox, store = workspace._sandbox, workspace._store
    shop, settings = workspace.functions, workspace.settings.turn
    sources = (HostFunctions(functions, shop), WorkspaceFunctions(sandbox, shop, settings.parallel))
    dispatcher = Dispatcher(sources, shop.registry.snapshot, settings, Clock(), aliases=aliases)
    shown = Shown([host.function], 20, workspace.functions.quarantine)
    alone = Colleagues("other", store, NoPeers(), workspace.settings.runner, Clock())
    session, nobody = AgentSession("other", store), HelperSelection(workspace.helpers, lambda: ())
    asker = ModelSession(shown, workspace.settings, workspace._models.open, session, alone, nobody)
    stepper = AgentLoop(asker, dispatcher, workspace.functions, 10, memory)
    return Agent(
        "other",
        store,
        workspace.functions,
        stepper,
        "test",
        session=session,
        memory=desk.agent.memory,
        save=workspace._save,
    )


def noting(agent: str, heard: list[str], versions: Mapping[str, int]) -> HostFunction:
    """Return a host function that writes a block at the version after the known one."""
    known = dict(versions)

    async def note(_: Agent, label: str, text: str) -> PlannedEdit:
        async def again() -> PlannedEdit:
            known[label] = 1
            return await note(_, label, text)

        row = BlockRow(f"block-{label}", label, text, 2000, version=known.get(label, 0) + 1)
        said, write = f"{label}: {text}", SaveBlock(row, agent, "wrote it")
        return PlannedEdit(said, writes=(write,), replan=again, done=lambda: heard.append(said))

    (function,) = read_module(ModuleSource("note", "note.py", SOURCE, "0")).functions
    return HostFunction(function, note)


async def events_of(agent: Agent) -> list[Event]:
    return [each async for each in agent.turn("I am Ada.")]


async def test_a_block_that_was_written_is_told_after_the_answer_and_counted(at_desk: OpenDesk) -> None:
    desk, heard = await at_desk([CALL, Say("Noted.")]), list[str]()
    agent = agent_of(desk, noting("other", heard, {}))
    events = await events_of(agent)
    (changed,) = of(MemoryChanged, events)
    assert (changed.block, changed.what, ended(events).made) == (
        "human",
        "wrote it",
        {"remembered": ["human"]},
    )
    assert events.index(of(CallAnswered, events)[0]) < events.index(changed)
    assert [each.value for each in await desk.workspace._store.blocks("other")] == ["Ada"]
    assert heard == ["human: Ada"]
    await agent.aclose()


async def test_a_block_that_another_hand_wrote_first_is_planned_again(at_desk: OpenDesk) -> None:
    desk, heard = await at_desk([CALL, Say("Noted.")]), list[str]()
    await desk.workspace._store.apply([SaveBlock(BlockRow("block-human", "human", "Bea", 2000), "other", "by hand")])
    agent = agent_of(desk, noting("other", heard, {}))
    assert len(of(MemoryChanged, await events_of(agent))) == 1
    (block,) = await desk.workspace._store.blocks("other")
    assert (block.value, block.version, len(heard)) == ("Ada", 2, 1)
    await agent.aclose()


async def test_older_names_of_a_function_and_its_arguments_are_understood(at_desk: OpenDesk) -> None:
    old = Ask(Wanted("jot", {"field": "human", "text": "Ada"}))
    desk = await at_desk([old, Say("Noted.")])
    agent = agent_of(desk, noting("other", [], {}), jot=Alias("note", {"field": "label"}))
    assert of(MemoryChanged, await events_of(agent))[0].block == "human"
    await agent.aclose()


class Elsewhere:
    """Memory that someone else changes once."""

    def __init__(self) -> None:
        self.news = ["`human` was changed by hand: it reads now: Bea."]

    async def changed_elsewhere(self, versions: Mapping[str, int] | None = None) -> list[str]:
        said, self.news = self.news, []
        return said


async def test_what_another_hand_changed_is_told_to_the_model_once(at_desk: OpenDesk) -> None:
    desk = await at_desk([Expect(CALL, contains("reads now: Bea")), Say("Noted.")])
    agent = agent_of(desk, noting("other", [], {}), Elsewhere())
    await events_of(agent)
    assert desk.model.requests[1].text.count("reads now: Bea") == 1
    await agent.aclose()
