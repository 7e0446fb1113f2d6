"""Imports in a worker: `functions.<module>`, which comes from the host, and the listed packages.

The host sends a module's code as compiled by a compile-only worker; neither a workspace nor the current folder is on
the import path. Source text is fetched only when a traceback shows it. Besides the standard library, function code can
import only the listed names.
"""

import importlib.machinery
import marshal
import sys
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CodeType, FrameType, ModuleType, SimpleNamespace
from typing import Any

from ..wire.protocol import Frame
from .channel import Channel

ROOT = "functions"
PROGRAM = "program.py"
"""The name of a program as a file, in the frames of its code."""
_OF_PATHS = frozenset({"pathlib", "glob", "os", "posixpath", "genericpath", "fnmatch", "sandbox"})
surroundings: list[str] = []
"""The parent folders of granted packages, where packages look for the other files of a development copy."""
_folders: list[str] = []  # of all packages


class Finder:
    """The finder and loader of the workspace's modules. `served` are the paths of function code.

    It has no base class of `importlib.abc`, because that import takes a tenth of a zygote's start.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.imported: Callable[[str], None] = lambda _name: None
        self._waiting: dict[str, Frame] = {}
        self.served: set[str] = set()

    def install(self) -> None:
        """Make `functions` importable, as an empty package."""
        root = ModuleType(ROOT)
        loader: Any = self  # a Loader by its methods
        root.__spec__ = importlib.machinery.ModuleSpec(ROOT, loader, is_package=True)
        root.__path__ = []
        sys.modules[ROOT] = root
        sys.meta_path.append(self)

    def offer(self, module: str, frame: Frame) -> None:
        """Add a module that the host sent with the job."""
        self._waiting[f"{ROOT}.{module}"] = frame

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module or folder at the host, or None."""
        if not fullname.startswith(f"{ROOT}."):
            return None
        order = {"kind": "module", "module": fullname.removeprefix(f"{ROOT}.")}
        answer: Frame = self._waiting.get(fullname) or self._channel.ask(order)
        if answer["kind"] == "absent":
            return None
        is_package = answer["kind"] == "package" or bool(answer.get("is_package"))
        origin = answer.get("path")
        loader: Any = self  # a Loader by its methods
        spec = importlib.machinery.ModuleSpec(
            fullname, loader, origin=origin, is_package=is_package
        )
        self._waiting[fullname] = answer
        return spec

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
        """Return the source text for tracebacks."""
        answer = self._channel.ask({"kind": "source", "module": fullname.removeprefix(f"{ROOT}.")})
        text: str | None = answer.get("text")
        return text

    def get_data(self, path: str) -> bytes:
        """Return the content of a file beside a module, as `pkgutil` asks for it."""
        with open(path, "rb") as file:  # noqa: PTH123 - as a function opens it
            return file.read()

    def get_resource_reader(self, fullname: str) -> Any:  # a reader of `importlib.resources`
        """Return the reader of the files beside the modules of a folder."""
        readers = importlib.import_module("importlib.readers")
        return readers.FileReader(SimpleNamespace(path=f"{fullname.replace('.', '/')}/__init__.py"))

    def is_package(self, fullname: str) -> bool:
        """Return whether the name is a folder of modules."""
        return hasattr(sys.modules.get(fullname), "__path__")


def load_code(text: str) -> CodeType:
    """Return the code object that a compile-only worker has compiled."""
    code: Any = marshal.loads(a2b_base64(text))  # noqa: S302 - only in the confined worker
    if not isinstance(code, CodeType):
        raise TypeError("what the host sent is not code")
    return code


class PackageFinder:
    """A finder of the listed top-level names in their folders, and of their metadata. It finds nothing else."""

    def __init__(self, folders: Mapping[str, str], listed: Sequence[str]) -> None:
        self._folders = folders
        self._listed = listed

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a listed top-level name. Submodules are found through its `__path__`."""
        folder = self._folders.get(name)
        if folder is None or path is not None:
            return None
        return importlib.machinery.PathFinder.find_spec(name, [folder], target)

    def find_distributions(
        self, context: Any = None
    ) -> Iterable[Any]:  # the signature of `importlib.metadata`
        """Return the metadata of granted packages, many of which read their version on import."""
        import importlib.metadata as metadata  # noqa: PLC0415 - rarely needed and slow to import

        name = getattr(context, "name", None)
        query = metadata.DistributionFinder.Context(name=name, path=list(self._listed))
        return metadata.MetadataPathFinder.find_distributions(query)


def install_packages(folders: Mapping[str, str], listed: Sequence[str] = ()) -> None:
    """Make the names importable. Their metadata is searched in the `listed` folders."""
    finder = PackageFinder(folders, listed)
    surroundings[:] = {folder.rpartition("/")[0] for folder in listed}
    _folders[:] = {f"{folder}/" for folder in folders.values()}
    sys.meta_path.append(finder)
    for name in folders:
        finder.find_spec(
            name
        )  # caches the folder's listing: a worker may read the packages, but not list the folder


def is_package(frame: FrameType | None) -> bool:
    """Return whether a frame runs code of a package, or of the standard library called by a package."""
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(tuple(_folders)):
            return True
        if path.startswith(f"{ROOT}/"):
            return False
        frame = frame.f_back
    return False


def is_probe(frame: FrameType | None) -> bool:
    """Return whether a library that a program called looks at a path, other than one that handles paths for it."""
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _OF_PATHS:
        frame = frame.f_back
    looking = frame
    while frame is not None and frame.f_code.co_filename != PROGRAM:
        frame = frame.f_back
    return frame is not looking and frame is not None


def is_of_package(module: ModuleType) -> bool:
    """Return whether a module is in the folder of a package."""
    return str(getattr(module, "__file__", None) or "").startswith(tuple(_folders))
