"""Export of functions: a folder with a plain package that works without Knapper, with its examples as tests.

The functions keep their text; only imports between the workspace's modules become relative. A folder that is not empty
is never written to.
"""

import ast
import asyncio
import inspect
import json
import keyword
import secrets
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent_core.base import syntax
from agent_core.base.errors import UsageError
from agent_core.base.problem import Problem
from agent_core.base.records import dataclass, field
from agent_core.base.syntax import flaw_of
from agent_core.functions.service.function_facts import known_function, starters_in
from agent_core.registry.depends import ModuleParts, callers, only
from agent_core.registry.folder_access import is_behind_link
from agent_core.registry.function import Function
from agent_core.registry.registry import Snapshot
from agent_core.registry.source import FOLDER
from agent_core.registry.tree import imported_module
from sandbox.inside.context import BodyText, Headers, Response, _decode, _inflate

from .library_files import ImportMover, fitting

if TYPE_CHECKING:
    from agent_core.functions.service import FunctionService


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """An export request: functions, folder and package. Without names, everything is exported."""

    folder: Path
    names: tuple[str, ...] = ()
    package: str = ""


@dataclass(frozen=True, slots=True)
class ExportNote:
    """A note for the reader about a module of the package."""

    name: str
    message: str


@dataclass(frozen=True, slots=True)
class ExportReport:
    """A written package: its functions and files, and notes on its modules. `first` is the function of its example."""

    folder: str
    package: str
    functions: tuple[str, ...]
    files: tuple[str, ...]
    notes: tuple[ExportNote, ...]
    first: str


@dataclass(slots=True)
class _Chosen:
    """The exported names of each module. None means the whole module."""

    snapshot: Snapshot
    names: dict[str, set[str] | None] = field(default_factory=dict)

    def take(self, module: str, names: Iterable[str] | None) -> None:
        """Add these names of a module, and what they need from other modules."""
        chosen_names = self.names.get(module, set())
        if chosen_names is None or module not in self.snapshot.modules:
            return
        source = self.snapshot.modules[module]
        parts = ModuleParts.of(source.text, source.path)
        if isinstance(parts, Problem):
            raise UsageError(
                f"{parts.where} cannot be exported: {parts.message}.",
                fix=f"To fix it: {parts.fix}.",
            )
        if names is None:
            self.names[module] = None
            needed = set(range(len(parts.binds)))
        else:
            new = set(names) - chosen_names
            if not new:
                return
            needed = parts.needed(new)
            reached = {name for at in needed for name in parts.binds[at]} & set(parts.public)
            self.names[module] = chosen_names | new | reached
        is_package = source.path.endswith("/__init__.py")
        for facts in (parts.statements[at] for at in needed):
            for level, base, name in facts.imports:
                full = imported_module(
                    base, max(level, 0), f"{FOLDER}.{module}", is_package=is_package
                )
                if full.partition(".")[0] == FOLDER:
                    home = full.removeprefix(FOLDER).removeprefix(".")
                    whole = f"{home}.{name}".strip(".")
                    is_module = whole in self.snapshot.modules
                    self.take(
                        whole if is_module else home,
                        None if is_module or name in ("", "*") else [name],
                    )
            for name in facts.called & self.snapshot.functions.keys():
                self.take(self.snapshot.functions[name].module, [name])


async def export_functions(service: "FunctionService", request: ExportRequest) -> ExportReport:
    """Export functions as a package that works without Knapper. Return the report.

    Raises:
        UsageError: the folder is not empty, or a name is unknown.
    """
    starters = await starters_in(service.view())
    return await asyncio.to_thread(export, request, service.registry.snapshot(), starters)


def _can_name_package(name: str) -> bool:
    """Return whether a package can have a name beside the files that are written with it."""
    is_taken = name in sys.stdlib_module_names or name.casefold() in (FOLDER, "tests")
    is_word = name.isidentifier() and not keyword.iskeyword(name)
    return is_word and not is_taken and not name.startswith("_")


def export(
    request: ExportRequest, snapshot: Snapshot, starters: Collection[str] = ()
) -> ExportReport:
    """Write the package and return a description of its contents; its README lists the `starters` last.

    Raises:
        UsageError: the folder is not empty, a name is unknown, or the package name is invalid.
    """
    package = request.package or fitting(request.folder.resolve().name).lower()
    if not _can_name_package(package):
        raise UsageError(
            f"A package cannot be called {package!r} here.", fix="Give another name with --package."
        )
    folder = request.folder
    if is_behind_link(folder):
        raise UsageError(
            f"{folder} is not written: {folder.parent} is a link.", fix="Name the target itself."
        )
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise UsageError(
            f"{folder} is not empty, and nothing is written over.",
            fix="Name a folder that is not there.",
        )
    chosen = _Chosen(snapshot)
    for name in request.names:
        chosen.take(known_function(name, snapshot).module, [name])
    for module in () if request.names else snapshot.modules:
        chosen.take(module, None)
    texts, notes = _texts(chosen, snapshot, package)
    functions = [
        function
        for function in snapshot.functions.values()
        if (names := chosen.names.get(function.module, set())) is None or function.name in names
    ]
    if not functions:
        raise UsageError("There is no function to export.", fix="Next: knapper functions list")
    own = [function.name for function in functions if function.name not in starters]
    tops = [
        name for name in own if not {*callers(name, snapshot)} - {name}
    ]  # what is called is less often meant
    first = [*tops, *own, functions[0].name][0]
    files = {f"{package}/{path}": text for path, text in texts.items()} | _frame(
        package, functions, texts, starters, first
    )
    # All files are written next to the target and then moved there, so that a failed export leaves nothing behind.
    # Nobody can know the name of that folder before, so nobody can have put a link there.
    partial = folder.resolve().with_name(f".{folder.resolve().name}.{secrets.token_hex(8)}.partial")
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
        for name, text in files.items():
            path = partial / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        if folder.is_dir():
            folder.rmdir()
        partial.rename(folder)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise UsageError(
            f"{folder} cannot be written: {error.strerror}.", fix="Name another folder."
        ) from error
    exported = tuple(function.name for function in functions)
    return ExportReport(
        str(request.folder), package, exported, tuple(sorted(files)), tuple(notes), first
    )


def _texts(
    chosen: _Chosen, snapshot: Snapshot, package: str
) -> tuple[dict[str, str], list[ExportNote]]:
    """Return the text of each module by its path in the package, and notes for the reader."""
    texts: dict[str, str] = {}
    notes: list[ExportNote] = []
    places = {FOLDER: "", **{f"{FOLDER}.{module}": module for module in snapshot.modules}}
    for module, names in sorted(chosen.names.items()):
        source = snapshot.modules[module]
        text = source.text if names is None else only(source.text, names)
        if isinstance(text, Problem):
            notes.append(ExportNote(module, f"exported whole: {text.message}"))
            text = source.text
        is_package = source.path.endswith("/__init__.py")
        mover = ImportMover(places, f"{FOLDER}.{module}", module, package, is_package=is_package)
        moved = mover.moved(text)
        # Lines that would declare another encoding in the new place are moved down.
        texts[source.path.removeprefix(f"{FOLDER}/")] = (
            moved if flaw_of(moved) is None else f"\n\n{moved}"
        )
    for path in list(texts):
        for folder in list(Path(path).parents)[:-1]:
            texts.setdefault(f"{folder.as_posix()}/__init__.py", "")
    return texts, notes


def _frame(
    package: str,
    functions: list[Function],
    texts: Mapping[str, str],
    starters: Collection[str],
    first: str,
) -> dict[str, str]:
    """Return the files around the modules: the package's exports, context, tests, project file and README."""
    takes_self = any(function.takes_self for function in functions)
    places = [
        f"    {f'{package}.{function.module}:{function.name}'!r},\n" for function in functions
    ]
    own = [_entry(function) for function in functions if function.name not in starters]
    others = [_entry(function) for function in functions if function.name in starters]
    entries = (
        [*own, "", "## Starters, which came with the workspace", "", *others]
        if own and others
        else own or others
    )
    packages: set[str] = set()
    for node in (node for text in texts.values() for node in ast.walk(syntax.parse(text))):
        if isinstance(node, ast.Import):
            packages |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            packages.add(node.module.partition(".")[0])
    imports = [f"from .{function.module} import {function.name}" for function in functions]
    supplied = [f"{one.name} = with_context({one.name})" for one in functions if one.takes_self]
    offered = [*(["Context"] if takes_self else []), *(function.name for function in functions)]
    head = [f'"""{len(functions)} functions, exported from a Knapper workspace."""\n']
    files = {
        f"{package}/__init__.py": "\n".join(
            [
                *head,
                *(["from ._context import Context, with_context"] if takes_self else []),
                *imports,
                *supplied,
                "",
                f"__all__ = {offered!r}",
                "",
            ]
        ),
        "tests/__init__.py": "",
        "tests/test_examples.py": TESTS.format(functions=f"[\n{''.join(places)}]", package=package),
        "pyproject.toml": PROJECT.format(
            name=package.replace("_", "-"),
            count=len(functions),
            dependencies=json.dumps(sorted(packages - sys.stdlib_module_names)),
            package=package,
        ),
        "README.md": README.format(
            package=package,
            count=len(functions),
            first=first,
            context=_said_of_context(functions, texts, package),
            functions="\n".join(entries),
        ),
    }
    return files | ({f"{package}/_context.py": CONTEXT} if takes_self else {})


def _entry(function: Function) -> str:
    sentence = function.description.strip().partition("\n")[0]
    return (
        f"- `{function.name}({', '.join(function.parameters['properties'])})` {sentence}".rstrip()
    )


def _said_of_context(functions: Iterable[Function], texts: Mapping[str, str], package: str) -> str:
    """Return what the README says of functions with `self`; empty if there are none."""
    if not any(function.takes_self for function in functions):
        return ""
    names: set[str] = set()
    for node in (node for text in texts.values() for node in ast.walk(syntax.parse(text))):
        match node:
            case ast.Call(func=ast.Attribute(attr="secret"), args=[ast.Constant(value=str(name))]):
                names.add(name)
            case _:
                pass
    secrets = ""
    if names:
        variables = ", ".join(f"`{name}`" for name in sorted(names))
        secrets = f"\nSecrets are read from the environment. Set {variables} before you call what needs it."
    return CONTEXT_README.format(package=package, secrets=secrets)


# The constant files of an exported package.

CONTEXT = '''"""What functions with `self` are given, from the standard library alone.

A function of this package supplies it by itself; give your own as the first argument to replace it.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import os
import sys
import tempfile
import time
import uuid
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

_STATES = {}
_MOST_DECODED = 128 << 20
_READ = 64 << 10
_ENCODINGS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
_FIRST_LINE = 200


class Context:
    """Progress on standard error, a scratch folder, calls, requests, secrets of the environment, a state."""

    def __init__(self, function=""):
        self._folder = None
        self._function = function
        self.call_key = uuid.uuid4().hex

    @property
    def scratch(self):
        """A folder that is gone with this context."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory()
        return Path(self._folder.name)

    @property
    def state(self):
        """What the function keeps between its calls, as long as the process runs."""
        return _STATES.setdefault(self._function, {})

    @state.setter
    def state(self, value):
        _STATES[self._function] = value

    def progress(self, done, total=None, note=""):
        """Tell how far it is."""
        print(f"{done}/{total} {note}" if total else f"{done} {note}", file=sys.stderr)

    def now(self):
        """Return the time with its zone."""
        return datetime.now().astimezone()

    def secret(self, name):
        """Return a secret: the environment variable of this name."""
        if name not in os.environ:
            raise PermissionError(f"the secret {name} is not set: put it into the environment variable {name}")
        return os.environ[name]

    def fetch(self, url, *, method="GET", headers=None, body=None, timeout=None):
        """Make a request and return the response, whatever its status."""
        if urlsplit(url).scheme.lower() not in ("http", "https"):
            raise ValueError(f"a request needs an http or https URL, not {url!r}")
        given = dict(headers or {})
        if "accept-encoding" not in {name.lower() for name in given}:
            given["Accept-Encoding"] = "gzip"
        data = body.encode() if isinstance(body, str) else body
        request = Request(url, data=data, headers=given, method=method.upper())
        try:
            answer = urlopen(request, timeout=timeout or 30)
        except HTTPError as error:
            answer = error
        head = {"status": answer.status, "headers": answer.headers.items(), "url": answer.url, "decoded": _MOST_DECODED}
        return Response(head, answer)

    def call(self, function, /, **arguments):
        """What another function of this package gives for these arguments."""
        value = getattr(importlib.import_module(__package__), function)(**arguments)
        if not inspect.isawaitable(value):
            return value
        with ThreadPoolExecutor(1) as apart:  # the caller may itself be in a loop
            return apart.submit(asyncio.run, value).result()


def with_context(function):
    """Return a function that is called without its `self`, which is a new context each time."""

    @functools.wraps(function)
    def called(*arguments, **named):
        if arguments and isinstance(arguments[0], Context):
            return function(*arguments, **named)
        return function(Context(function.__name__), *arguments, **named)

    signature = inspect.signature(function)
    called.__signature__ = signature.replace(parameters=[*signature.parameters.values()][1:])
    del called.__wrapped__
    return called


'''
# A response is the one that functions get here, with its text.
_RESPONSE = (Headers, BodyText, Response, _decode, _inflate)
CONTEXT += "\n\n".join(inspect.getsource(part) for part in _RESPONSE)

TESTS = '''"""Every example in the docstrings, run and compared: `python -m unittest` or `python -m pytest`."""

import ast
import asyncio
import contextlib
import doctest
import functools
import importlib
import inspect
import io
import math
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
FUNCTIONS = {functions}
PARSER, CHECKER = doctest.DocTestParser(), doctest.OutputChecker()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Examples(unittest.TestCase):
    def test_every_example_gives_what_it_says(self):
        for place in FUNCTIONS:
            module, _, name = place.partition(":")
            names = namespace(importlib.import_module(module))
            for example in PARSER.get_examples(inspect.getdoc(names[name]) or ""):
                if example.options.get(doctest.SKIP):
                    continue
                with self.subTest(function=name, example=example.source.strip()):
                    self.assertTrue(*compared(example, names))


def namespace(module):
    names = dict(vars(module))
    for name, value in vars(module).items():
        if inspect.isfunction(value) and next(iter(inspect.signature(value).parameters), "") == "self":
            context = importlib.import_module("{package}._context").Context()
            names[name] = functools.wraps(value)(functools.partial(value, context))
    return names


def compared(example, names):
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            value = run(example.source, names)
    except Exception as error:
        got = f"{{type(error).__name__}}: {{error}}\\n"
        return example.exc_msg is not None and agrees(example.exc_msg, got), got
    got = printed.getvalue() + (f"{{value!r}}\\n" if value is not None else "")
    return example.exc_msg is None and (not example.want or agrees(example.want, got)), got


def run(source, names):
    try:
        code = compile(source.strip(), "<example>", "eval", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError:
        exec(compile(source, "<example>", "exec"), names)
        return None
    value = eval(code, names)
    return asyncio.run(awaited(value)) if inspect.isawaitable(value) else value


async def awaited(value):
    while inspect.isawaitable(value):
        value = await value
    return value


def agrees(want, got):
    if CHECKER.check_output(want, got, FLAGS):
        return True
    try:
        return same(ast.literal_eval(want.strip()), ast.literal_eval(got.strip()))
    except (ValueError, SyntaxError):
        return False


def same(one, other):
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) or one != one and other != other
    if isinstance(one, (list, tuple)) and type(one) is type(other) and len(one) == len(other):
        return all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return all(same(value, other[key]) for key, value in one.items())
    return type(one) is type(other) and one == other


if __name__ == "__main__":
    unittest.main()
'''

PROJECT = """[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "0.1.0"
description = "{count} functions, exported from a Knapper workspace."
readme = "README.md"
requires-python = ">=3.11"
dependencies = {dependencies}

[tool.setuptools.packages.find]
include = ["{package}*"]
"""

README = """# {package}

{count} functions, exported from a Knapper workspace. Plain Python: nothing of Knapper is needed.
`pip install .` in this folder installs them, with the packages that they import. Then:

```python
from {package} import {first}
```

The examples in the docstrings are the tests: `python -m unittest` (or `python -m pytest`) in this folder.
{context}
## Functions

{functions}
"""

CONTEXT_README = """
Functions that show progress, call others, fetch pages or keep a state do so with the standard library, as described in
`{package}/_context.py`. A state lasts as long as the process.{secrets}
"""
