"""Functions that run in the host with the agent as `self`, read by the same loader as all other functions.

Functions that manage functions are modules of `meta_functions`. Functions for memory are methods of the agent's memory
class and come with the agent.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from agent_core.base.errors import KnapperError
from agent_core.base.records import dataclass, replace
from agent_core.functions.answers import InterruptedCall
from agent_core.functions.service import Author, FunctionService, PlannedChange, change_texts
from agent_core.functions.service.function_facts import unknown_function
from agent_core.functions.service.plan import OnceMore
from agent_core.memory.blocks import Blocks
from agent_core.memory.classes import KNOWN, methods_of
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from agent_core.storage import Entry, Plan, content_hash
from agent_core.storage.journal import notice
from sandbox import Refused

from .allowed import ABOUT_HELPERS, GROWING, READING
from .call_record import CallRecord, Done, PlannedProgram
from .dispatch import ABOUT_AGENTS
from .reply_work import WaitingChange
from .source import ModelFunction, ToolSource
from .turn import Interrupted as StopRequested
from .turn import Turn

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

    from .programs import Programs

_log = logging.getLogger(__name__)

# `meta_functions` is a layer above this package, so it is imported by name: the only dynamic import.
META_PACKAGE = "meta_functions"
_REVISING = GROWING - {"add_example"}  # after these, a function may do something else

_ABOUT, _MAKES = "function_name", "create_function"

_Made: TypeAlias = Plan | PlannedProgram | str


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A function that runs in the host with the agent as `self`: its schema and its callable."""

    function: "Function"
    run: Callable[..., Awaitable[_Made]]


class HostFunctions(ToolSource):
    """The host functions of one agent; the function service carries out their plans."""

    def __init__(
        self,
        functions: Mapping[str, HostFunction],
        service: FunctionService,
        withheld: Callable[[], Collection[str]] = frozenset,
        programs: "Programs | None" = None,
    ) -> None:
        """Create the source; `withheld` returns the functions that cannot be used now."""
        self.pinned = functions.keys()
        self._functions = functions
        self._service = service
        self._withheld = withheld
        self._programs = programs

    def only_reads(self, name: str, /) -> bool:
        """Return whether a function keeps, makes and writes nothing."""
        return name in READING

    def names(self, _: "Snapshot") -> Iterable[str]:
        """Return the names of the functions that are not withheld."""
        return self._functions.keys() - self._withheld()

    def find(self, name: str, snapshot: "Snapshot") -> ModelFunction | None:
        """Return the function with this name, for an agent that sees this snapshot."""
        host = self._functions.get(name)
        if host is None or name in self._withheld():
            return None
        about = _ABOUT if name in _REVISING else ""
        return ModelFunction(
            host.function, partial(self._call, host, snapshot), None, is_parallel=False, about=about
        )

    async def _call(  # noqa: PLR0911 - one a kind of end
        self,
        host: HostFunction,
        snapshot: "Snapshot",
        arguments: dict[str, Any],  # Any: JSON
        record: CallRecord,
    ) -> Done:
        """Run a function with the agent of the turn, and carry out its plan."""
        turn, name = record.turn, record.call.name
        await record.begin(None)
        about = arguments.get(_ABOUT)
        if (
            about in snapshot.hidden and name != _MAKES
        ):  # create_function must detect the conflict itself
            return await record.close(
                Refused(str(unknown_function(str(about), snapshot.functions)))
            )
        plan = await self._made(lambda: host.run(turn.meta_self, **arguments), record)
        if isinstance(plan, Done):
            return plan
        if isinstance(plan, str):
            return await record.close(None, plan)
        if isinstance(plan, PlannedProgram):
            assert self._programs is not None, (
                "an agent that is offered `run_program` has what runs it"
            )
            return await self._programs.run(plan, record, snapshot)
        if not isinstance(plan, PlannedChange):
            return await record.commit(plan)
        if plan.once_more is None or turn.work.reply is None:
            return await self._carry_out(plan, str(about), record)
        await turn.append((), writes=plan.writes)
        if plan.refused is not None:
            turn.work.refused[plan.refused] = turn.work.facts.receipt.count("called", plan.refused)
        finish = partial(self._finish, plan, plan.once_more, str(about), record)
        turn.work.reply.hold(str(about), WaitingChange(plan.once_more.uses, finish))
        return Done(record.call, plan.text, plan.outcome)  # until it is finished

    async def _made(self, make: Callable[[], Awaitable[_Made]], record: CallRecord) -> _Made | Done:
        """Return what a host function made, or the end of its call if it failed."""
        turn, name = record.turn, record.call.name
        try:
            async with turn.ending.interruption:
                return await make()
        except StopRequested:
            return await record.close(InterruptedCall())
        except KnapperError as error:
            return await record.close(Refused(str(error)))
        except Exception:  # noqa: BLE001 - the named edge: one call's failure is an answer, and the log has the rest
            _log.exception("%s failed", name)
            text = f"`{name}` failed inside the program itself, and nothing was changed. Tell the user."
            return await record.close(Refused("internal error"), text)

    async def _finish(
        self,
        plan: PlannedChange,
        once_more: OnceMore,
        about: str,
        record: CallRecord,
        has_changed: bool,  # noqa: FBT001 - a fact, not a mode
    ) -> Done:
        """Answer the call of a change that was refused; if what it uses has changed, it is judged once more."""
        reply, last = (
            record.turn.work.reply,
            replace(plan, writes=()),
        )  # those were stored when it began to wait
        if has_changed and reply is not None and not record.turn.ending.interruption.requested:
            together = reply.together(is_once_more=True)
            made = await self._made(lambda: once_more.judge(together), record)
            if isinstance(made, Done):
                return made
            assert isinstance(made, PlannedChange)
            last = made
        return await self._carry_out(last, about, record)

    async def _carry_out(self, plan: PlannedChange, about: str, record: CallRecord) -> Done:
        """Carry out a plan for functions, and answer its call."""
        record.is_waiting = plan.is_waiting
        reply, rejected = (
            record.turn.work.reply,
            record.turn.work.refused,
        )  # the second is read when the turn ends
        if reply is not None and plan.outcome == "refused" and about in reply.broken:
            plan = replace(
                plan, text=f"{plan.text}\n{change_texts.still_broken(reply.broken[about])}"
            )
        turn = record.turn
        author = Author("agent", turn.agent, turn.id, approvals=turn.approvals)
        decided = await self._made(lambda: self._service.decided(plan, author), record)
        if isinstance(decided, Done):
            return decided
        assert isinstance(decided, PlannedChange)
        plan = await self._service.carry_out(decided, record.record, author)
        done, changed = record.report(plan), plan.did.names("created", "changed", "deleted")
        for name in changed:
            rejected.pop(name, None)
        if plan.refused is not None:
            rejected[plan.refused] = record.turn.work.facts.receipt.count("called", plan.refused)
        if reply is not None:
            reply.note(changed, plan.breakages)
        return done


class MemoryFunctions(HostFunctions):
    """The functions that edit an agent's blocks: methods of its memory class."""

    def __init__(self, blocks: Blocks, names: Collection[str], service: FunctionService) -> None:
        """Create the source of those with these names."""
        functions = of_memory(blocks)
        super().__init__({name: functions[name] for name in names}, service)
        self._blocks = blocks

    async def news(self, turn: Turn) -> Sequence[Entry]:
        """Return what the model is told of edits by others."""
        return [
            notice(change) for change in await self._blocks.changed_elsewhere(turn.journal.shared)
        ]


def of_memory(blocks: Blocks) -> dict[str, HostFunction]:
    """Return the functions that edit an agent's blocks, by name."""
    return {
        function.name: HostFunction(function, partial(_edit, blocks, function.name))
        for function in blocks.functions()
    }


class _EditingAgent(Protocol):
    """What an edit of memory needs of the agent that makes it."""

    @property
    def author(self) -> Author:
        """The author of the edit."""


async def _edit(
    blocks: Blocks, name: str, agent: _EditingAgent, /, **arguments: Any
) -> Plan:  # Any: JSON
    return await blocks.call(name, arguments, agent.author)


def standard() -> dict[str, HostFunction]:
    """Return the host functions that every agent may have, by name; those for other agents and helpers are excluded."""
    return {
        name: host
        for name, host in meta_functions().items()
        if name not in ABOUT_AGENTS | ABOUT_HELPERS
    }


def parameters() -> dict[str, tuple[str, ...]]:
    """Return all host functions by name, with the names of their parameters."""
    functions = [host.function for host in meta_functions().values()]
    functions += [function for kind in KNOWN.values() for function in methods_of(kind)]
    return {function.name: tuple(function.parameters["properties"]) for function in functions}


@cache
def meta_functions() -> Mapping[str, HostFunction]:
    """Return all host functions except those for memory, by name."""
    package = import_module(META_PACKAGE)
    modules = [import_module(f"{META_PACKAGE}.{module}") for module in package.MODULES]
    functions: dict[str, HostFunction] = {}
    for module in modules:
        text = inspect.getsource(module)
        source = ModuleSource(module.__name__, module.__file__ or "", text, content_hash(text))
        for function in read_module(source).functions:
            functions[function.name] = HostFunction(function, getattr(module, function.name))
    for tool, text, run in package.operations():
        source = ModuleSource(f"{META_PACKAGE}.functions", "", text, content_hash(text))
        functions.setdefault(tool, HostFunction(read_module(source).functions[0], run))
    return functions
