"""Imports in a worker: of `functions.<module>`, which the host is asked for, and of the listed packages.

What arrives for a module is code that a compile-only worker has made; neither a workspace nor the current folder
is on the import path. Source text is fetched only when something (a traceback) wants to show it. Of the packages
outside the standard library, function code may import the listed names, no others.
"""

import importlib.machinery
import marshal
import sys
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CodeType, FrameType, ModuleType
from typing import Any

from ..wire.protocol import Frame
from .channel import Channel

ROOT = "functions"
surroundings: list[str] = []
"""The folders around those of granted packages. Packages look there for what is next to them in a development copy."""
_folders: list[str] = []  # of all packages


class Finder:
    """Finder and loader of the workspace's modules. `served` are the paths that function code came from.

    It has no base class of `importlib.abc`, which takes a tenth of a zygote's start to import.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.imported: Callable[[str], None] = lambda _name: None
        self._waiting: dict[str, Frame] = {}
        self.served: set[str] = set()

    def install(self) -> None:
        """Make `functions` importable, a package that is empty by itself."""
        root = ModuleType(ROOT)
        root.__path__ = []
        sys.modules[ROOT] = root
        sys.meta_path.append(self)

    def offer(self, module: str, frame: Frame) -> None:
        """Add a module that the host sent along without being asked."""
        self._waiting[f"{ROOT}.{module}"] = frame

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module or folder at the host, or None."""
        if not fullname.startswith(f"{ROOT}."):
            return None
        answer = self._answer(fullname)
        if answer["kind"] == "absent":
            return None
        is_package = answer["kind"] == "package" or bool(answer.get("is_package"))
        origin = answer.get("path")
        loader: Any = self  # a Loader by what it does
        spec = importlib.machinery.ModuleSpec(fullname, loader, origin=origin, is_package=is_package)
        self._waiting[fullname] = answer
        return spec

    def _answer(self, fullname: str) -> Frame:
        waiting = self._waiting.get(fullname)
        return waiting or self._channel.ask({"kind": "module", "module": fullname.removeprefix(f"{ROOT}.")})

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """Use the default module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code."""
        answer = self._waiting.pop(module.__name__)
        if answer["kind"] == "package":
            return
        if answer["kind"] == "broken":
            raise SyntaxError(answer["message"], (answer["path"], answer["line"], None, None))
        module.__file__ = answer["path"]
        self.served.add(answer["path"])
        exec(load_code(answer["code"]), module.__dict__)
        self.imported(module.__name__.removeprefix(f"{ROOT}."))

    def get_source(self, fullname: str) -> str | None:
        """Return the text, for tracebacks."""
        answer = self._channel.ask({"kind": "source", "module": fullname.removeprefix(f"{ROOT}.")})
        text: str | None = answer.get("text")
        return text

    def is_package(self, fullname: str) -> bool:
        """Return whether the name is a folder of modules."""
        return hasattr(sys.modules.get(fullname), "__path__")


def load_code(text: str) -> CodeType:
    """Return the code object that a compile-only worker has made."""
    code: Any = marshal.loads(a2b_base64(text))  # noqa: S302 - in the confined worker alone
    if not isinstance(code, CodeType):
        raise TypeError("what the host sent is not code")
    return code


class PackageFinder:
    """Finder of the listed top-level names in their folders, and of their metadata. Everything else is missing."""

    def __init__(self, folders: Mapping[str, str], listed: Sequence[str]) -> None:
        self._folders = folders
        self._listed = listed

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a listed top-level name. Names below it are found by its own path."""
        folder = self._folders.get(name)
        if folder is None or path is not None:
            return None
        return importlib.machinery.PathFinder.find_spec(name, [folder], target)

    def find_distributions(self, context: Any = None) -> Iterable[Any]:  # as `importlib.metadata` has it
        """Return the metadata of granted packages: many ask for their own version when they are imported."""
        import importlib.metadata as metadata  # noqa: PLC0415 - few want it, and it is slow to import

        name = getattr(context, "name", None)
        query = metadata.DistributionFinder.Context(name=name, path=list(self._listed))
        return metadata.MetadataPathFinder.find_distributions(query)


def install_packages(folders: Mapping[str, str], listed: Sequence[str] = ()) -> None:
    """Make the names importable. Their metadata is found in the folders that may be listed."""
    finder = PackageFinder(folders, listed)
    surroundings[:] = {folder.rpartition("/")[0] for folder in listed}
    _folders[:] = {f"{folder}/" for folder in folders.values()}
    sys.meta_path.append(finder)
    for name in folders:
        finder.find_spec(name)  # the folder's listing is kept: a worker may read the packages, not list the rest


def is_package(frame: FrameType | None) -> bool:
    """Return whether a package does what goes on in a frame, by itself or through the standard library."""
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(tuple(_folders)):
            return True
        if path.startswith(f"{ROOT}/"):
            return False
        frame = frame.f_back
    return False


def is_of_package(module: ModuleType) -> bool:
    """Return whether a module lies in the folder of a package."""
    return str(getattr(module, "__file__", None) or "").startswith(tuple(_folders))
