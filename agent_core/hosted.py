"""Functions that run in the host with the agent as `self`: read through the same loader as any other.

Those about functions are modules of `meta_functions`; those about memory are methods of the agent's
memory class, and come with the agent.
"""

import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType

from .dispatch import HostFunction
from .registry.function import Reading
from .registry.schema import read_module
from .registry.source import Source
from .storage import content_hash

# `meta_functions` is on top of this package, so its modules are named as data: the one dynamic import.
META_PACKAGE = "meta_functions"


def standard() -> dict[str, HostFunction]:
    """The functions of the host that every agent may have, by name."""
    return {name: host for module, reading in _readings() for name, host in _of(module, reading)}


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
