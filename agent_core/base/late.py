"""Names and modules that are imported at first use (ADR 0006), so that a small use does not load everything."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import Any, Final


def late_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:  # Any: its `.pyi` says which
    """Return the `__getattr__` of a package. `modules` maps each module to its names, separated by blanks."""
    places = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{places[name]}"), name)

    return load


class LateModule:
    """A module that is imported at first use. Type checkers see the module itself."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:  # Any: as the module has it
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)  # found without this from now on
        return value


@contextmanager
def late_packages(root: str) -> Iterator[None]:
    """Have a package and those directly below it, if they are imported meanwhile, run at the first use of a name.

    Their modules are imported as ever, by whoever names them. For a package of others that imports hundreds of modules
    of its own, of which few are used.
    """
    finder = _LateFinder(root)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


_RUNS: Final = RLock()


class _LatePackage(ModuleType):
    def __getattr__(self, name: str) -> Any:  # Any: as the package has it
        with _RUNS:
            if type(self) is _LatePackage:  # not run by another thread meanwhile
                self.__class__ = ModuleType  # type: ignore[assignment] # as it runs, it reads its own names
                assert self.__spec__ is not None
                assert self.__spec__.loader is not None
                self.__spec__.loader.exec_module(self)
        return getattr(self, name)

    def __dir__(self) -> list[str]:
        self.__getattr__("__name__")
        return sorted(vars(self))


class _LateLoader(Loader):
    def __init__(self, real: Loader) -> None:
        self._real = real

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__loader__ = module.__spec__.loader = self._real
        module.__class__ = _LatePackage


class _LateFinder(MetaPathFinder):
    def __init__(self, root: str) -> None:
        self._root = root

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if self._root not in (fullname, fullname.rpartition(".")[0]):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None or spec.submodule_search_locations is None:
            return None
        spec.loader = _LateLoader(spec.loader)
        return spec
