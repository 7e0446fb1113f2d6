"""Names and modules that are imported at first use (ADR 0006), so that a small use does not load everything."""

import sys
from _thread import RLock
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from importlib.abc import Loader  # every command imports this module


def late_names(
    package: str, modules: Mapping[str, str]
) -> Callable[[str], Any]:  # Any: its `.pyi` says which
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


class LatePackages:
    """Within this context, a package and those directly below it are imported, but run only when a name is missed.

    Their modules are imported as ever, by whoever names them. For a package of others that imports hundreds of modules
    of its own, of which few are used.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def __enter__(self) -> None:
        sys.meta_path.insert(0, self)

    def __exit__(self, *_error: object) -> None:
        sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of such a package; None of any other module."""
        if self._root not in (name, name.rpartition(".")[0]):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None or spec.submodule_search_locations is None:
            return None
        spec.loader = _LateLoader(spec.loader)  # type: ignore[assignment] # the two methods of one that are called
        return spec


class _LateLoader:
    def __init__(self, real: "Loader") -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__loader__ = module.__spec__.loader = self._real
        vars(module)[_LOADER] = self._real
        module.__class__ = _LatePackage


_LOADER: Final = "__late_loader__"
_RUNS: Final = RLock()  # a thread that misses a name while another runs the package waits for it


def _run(package: ModuleType) -> None:
    """Run a late package, unless that has happened or is happening in this thread."""
    with _RUNS:
        if loader := vars(package).pop(_LOADER, None):
            loader.exec_module(package)
            package.__class__ = ModuleType  # nothing is late any more


class _LatePackage(ModuleType):
    def __getattr__(self, name: str) -> Any:  # Any: as the package has it
        _run(self)
        if name not in vars(self):  # as it runs, it may miss a name itself
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return vars(self)[name]

    def __dir__(self) -> list[str]:
        _run(self)
        return sorted(vars(self))
