"""Functions that run in the host with the agent as `self`, read by the same loader as any other function.

Those about functions are modules of `meta_functions`; those about memory are methods of the agent's
memory class, and come with the agent.
"""

import inspect
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from agent_core.memory.blocks import Blocks
from agent_core.memory.classes import KNOWN, methods_of
from agent_core.memory.edits import ALREADY
from agent_core.memory.planned_edit import EditAuthor, PlannedEdit
from agent_core.registry.function import ModuleReading
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from agent_core.storage import content_hash

from .dispatch import HostFunction

# `meta_functions` is on top of this package, so its modules are named as data: the one dynamic import.
META_PACKAGE = "meta_functions"
_ADDS = "core_memory_append"


def standard() -> dict[str, HostFunction]:
    """Return the host functions that every agent may have, by name."""
    return {name: host for module, reading in _readings() for name, host in _of(module, reading)}


def reserved() -> frozenset[str]:
    """Return the names that no workspace function can have: those of all host functions."""
    return frozenset({*standard(), *(function.name for kind in KNOWN.values() for function in methods_of(kind))})


def of_memory(blocks: Blocks) -> dict[str, HostFunction]:
    """Return the functions that edit an agent's blocks, by name."""
    return {
        function.name: HostFunction(function, partial(_edit, blocks, function.name)) for function in blocks.functions()
    }


class _Editor(Protocol):
    """The agent as the editor of its blocks."""

    @property
    def author(self) -> EditAuthor:
        """The author of a change."""


async def _edit(blocks: Blocks, name: str, editor: _Editor, /, **arguments: Any) -> PlannedEdit:  # Any: JSON
    return _with_settled(blocks, name, await blocks.call(name, arguments, editor.author))


def _with_settled(blocks: Blocks, name: str, edit: PlannedEdit) -> PlannedEdit:
    async def replan() -> PlannedEdit:
        assert edit.replan is not None
        return _with_settled(blocks, name, await edit.replan())

    return replace(edit, excluded=_settled(blocks, name, edit), replan=replan if edit.replan else None)


def _settled(blocks: Blocks, name: str, edit: PlannedEdit) -> frozenset[str]:
    """Return the edits to hide from the next step, since the block now says so. An addition may deny another line."""
    is_done = name != _ADDS if edit.writes else edit.text.startswith(ALREADY)
    return frozenset(function.name for function in blocks.functions()) if is_done else frozenset()


@cache
def _readings() -> tuple[tuple[ModuleType, ModuleReading], ...]:
    package = import_module(META_PACKAGE)
    modules = [import_module(f"{META_PACKAGE}.{module}") for module in package.MODULES]
    return tuple((module, _read(module)) for module in modules)


def _of(module: ModuleType, reading: ModuleReading) -> Iterator[tuple[str, HostFunction]]:
    for function in reading.functions:
        yield function.name, HostFunction(function, getattr(module, function.name))


def _read(module: ModuleType) -> ModuleReading:
    text = inspect.getsource(module)
    return read_module(ModuleSource(module.__name__, module.__file__ or "", text, content_hash(text)))
