"""The dispatcher treats all functions alike: those of another source are called like any other."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agent_core.base.clock import Clock
from agent_core.context import Shown
from agent_core.registry.function import Function
from agent_core.registry.schema import read_module
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource
from agent_core.runtime.agent import Agent
from agent_core.runtime.call_record import CallRecord, Done
from agent_core.runtime.colleagues import Colleagues, NoPeers
from agent_core.runtime.dispatch import Dispatcher, ModelFunction, WorkspaceFunctions
from agent_core.runtime.loop import AgentLoop
from agent_core.runtime.model_session import ModelSession
from agent_core.runtime.session import AgentSession
from agent_core.workspace.helper_library import HelperSelection
from tests.conftest import OpenDesk
from tests.kit import Ask, Expect, Say, Wanted, contains
from tests.kit.desk import VOWELS, Desk, answers

SOURCE = '''\
async def look_up(self, word: str) -> str:
    """Look a word up in a dictionary that is elsewhere.

    Args:
        word: The word.
    """
'''


@dataclass(frozen=True)
class Foreign:
    """The source of all functions of a server; it has one."""

    function: Function

    async def call(self, arguments: dict[str, Any], record: CallRecord) -> Done:
        record.announce()
        return await record.close(None, f"{arguments['word']}: a greeting")

    def names(self, _: Snapshot) -> Iterable[str]:
        return [self.function.name]

    def find(self, name: str, _: Snapshot) -> ModelFunction | None:
        return ModelFunction(self.function, self.call, None) if name == self.function.name else None

    async def refusal(self, name: str, snapshot: Snapshot) -> str:
        return "The server is not there." if name == "gone" else ""


def agent_of(desk: Desk) -> Agent:
    """Return an agent with the functions of the workspace and those of a server."""
    workspace, settings = desk.workspace, desk.workspace.settings.turn
    shop, store = workspace.functions, workspace._store
    (function,) = read_module(ModuleSource("words", "words.py", SOURCE, "0")).functions
    sources = (Foreign(function), WorkspaceFunctions(workspace._sandbox, shop, settings.parallel))
    dispatcher = Dispatcher(sources, shop.registry.snapshot, settings, Clock())
    shown, session = Shown([function], 20, shop.quarantine), AgentSession("other", store)
    alone = Colleagues("other", store, NoPeers(), workspace.settings.runner, Clock())
    nobody = HelperSelection(workspace.helpers, lambda: ())
    asker = ModelSession(shown, workspace.settings, workspace._models.open, session, alone, nobody)
    loop = AgentLoop(asker, dispatcher, shop, 10)
    return Agent("other", store, shop, loop, "test", session=session, memory=desk.agent.memory, save=workspace._save)


async def test_a_function_of_a_server_is_called_next_to_one_of_the_workspace(at_desk: OpenDesk) -> None:
    calls = Ask(Wanted("look_up", {"word": "hello"}), Wanted("count_vowels", {"text": "hello"}))
    desk = await at_desk([calls, Expect(Say("Done."), contains("hello: a greeting"))])
    desk.put("letters.py", VOWELS)
    await desk.workspace.functions.reload()
    agent = agent_of(desk)
    events = [event async for event in agent.turn("What is hello?")]
    assert sorted(answers(events)) == ["2", "hello: a greeting"]
    await agent.aclose()


async def test_its_arguments_are_checked_and_a_refusal_is_its_own(at_desk: OpenDesk) -> None:
    calls = Ask(Wanted("look_up", {"wort": "hello"}), Wanted("gone", {}), Wanted("look_upp", {"word": "a"}))
    desk = await at_desk([calls, Say("Done.")])
    agent = agent_of(desk)
    bad, gone, unknown = answers([event async for event in agent.turn("What is hello?")])
    assert "word" in bad
    assert gone == "The server is not there."
    assert "look_up" in unknown
    await agent.aclose()
