"""Functions that run in the host with the agent as `self`: read through the same loader as any other.

Those about functions are modules of `meta_functions`; those about memory are methods of the agent's
memory class, and come with the agent.
"""

import inspect
from collections.abc import Iterator
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from .dispatch import HostFunction
from .memory.blocks import Blocks
from .memory.classes import KNOWN
from .memory.edits import ALREADY
from .memory.offered import methods_of
from .memory.planned import Author, Edit
from .registry.function import Reading
from .registry.schema import read_module
from .registry.source import Source
from .storage import content_hash
from .workshop import Plan

# `meta_functions` is on top of this package, so its modules are named as data: the one dynamic import.
META_PACKAGE = "meta_functions"
_ADDS = "core_memory_append"


def standard() -> dict[str, HostFunction]:
    """The functions of the host that every agent may have, by name."""
    return {name: host for module, reading in _readings() for name, host in _of(module, reading)}


def reserved() -> frozenset[str]:
    """The names that no function of a workspace can have: those of functions of the host, whoever has them."""
    return frozenset({*standard(), *(each.name for kind in KNOWN.values() for each in methods_of(kind))})


def of_memory(blocks: Blocks) -> dict[str, HostFunction]:
    """The functions that edit an agent's blocks, by name."""
    return {each.name: HostFunction(each, partial(_edit, blocks, each.name)) for each in blocks.functions()}


class _Editor(Protocol):
    """Whoever edits: the agent."""

    @property
    def author(self) -> Author:
        """Who a change is by."""


async def _edit(blocks: Blocks, name: str, editor: _Editor, /, **arguments: Any) -> Plan:  # Any: JSON
    return _plan(blocks, name, await blocks.call(name, arguments, editor.author))


def _plan(blocks: Blocks, name: str, edit: Edit) -> Plan:
    async def again() -> Plan:
        assert edit.again is not None
        return _plan(blocks, name, await edit.again())

    return Plan(
        edit.text,
        edit.outcome,
        writes=edit.writes,
        excluded=_settled(blocks, name, edit),
        again=again if edit.again else None,
        done=partial(blocks.applied, edit),
    )


def _settled(blocks: Blocks, name: str, edit: Edit) -> frozenset[str]:
    """The edits, which the next step should not offer, where it reads so now; what was added may deny another line."""
    is_done = name != _ADDS if edit.writes else edit.text.startswith(ALREADY)
    return frozenset(each.name for each in blocks.functions()) if is_done else frozenset()


@cache
def _readings() -> tuple[tuple[ModuleType, Reading], ...]:
    package = import_module(META_PACKAGE)
    modules = [import_module(f"{META_PACKAGE}.{module}") for module in package.MODULES]
    return tuple((module, _read(module)) for module in modules)


def _of(module: ModuleType, reading: Reading) -> Iterator[tuple[str, HostFunction]]:
    for function in reading.functions:
        yield function.name, HostFunction(function, getattr(module, function.name))


def _read(module: ModuleType) -> Reading:
    text = inspect.getsource(module)
    return read_module(Source(module.__name__, module.__file__ or "", text, content_hash(text)))
