"""The jobs of a worker: call a function, evaluate an example, import, describe types, compile, make many attempts.

Each takes the host's frame and returns the reply. An error in function code is a reply of kind `raised`; a job that
does not match the code is `refused`. A compile-only worker runs no line of the module, so its reply can be cached.

Attempts run one after another, each reported as soon as it has ended. An attempt with its own text gets a separate
module; the others share the imported module, so an attempt can break it for the next ones. Files below `self.scratch`
are removed before the next attempt.

A rehearsal call warms up memory pages and caches before the first real call. Measured: a forked worker spends most of
its first call copying some 400 shared pages. A spare worker does this before anyone waits for it. Every page that the
rehearsal touches is copied, so it does not walk the table of all modules.
"""

import ast
import builtins
import functools
import importlib
import inspect
import io
import marshal
import os
import random
import shutil
import sys
import time
import types
from binascii import b2a_base64
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, NoReturn

from ..wire.caps import MOST_IMPORTS, MOST_ITEMS, MOST_MESSAGE, MOST_SHOWN, MOST_TRIED
from ..wire.protocol import HEADER, Frame, pack, unpack
from ..wire.statements import StatementPart, reduce
from ..wire.values import Encoded, decode, encode, lean

# `canaries` too, although only the self-test needs it: a confined worker can read no file of ours to import it from.
from . import canaries, failure, files, programs, web
from .annotations import (
    Hint,
    Unfit,
    build,
    check,
    defaults,
    function_hints,
    origin_of,
    peel,
    rest_names,
    schemas_of,
    unpacked,
    variadic,
)
from .channel import Channel, bounded, first_items, listed, simplify
from .context import Context
from .debugger import DEEPEST_WRAPPER, WorkerDebugger, defined_function, plain_function
from .failure import attempt
from .finder import PROGRAM, ROOT, Finder
from .pictures import picture_facts


def is_bare(value: object) -> bool:
    """Return whether this is a function with the context as its first parameter."""
    return isinstance(value, FunctionType) and value.__code__.co_varnames[
        : value.__code__.co_argcount
    ][:1] == ("self",)


def call(module: ModuleType, name: str, arguments: Mapping[str, Any], context: Context) -> Any:
    """Return the result of a module's function for these JSON-like arguments."""
    function = getattr(module, name, None)
    if not callable(function):
        raise Unfit(f"{module.__name__.removeprefix(f'{ROOT}.')} has no function {name!r}")
    plain = defined_function(module, name)
    if plain is None:
        return run(lambda: function(**arguments))
    hints = function_hints(plain)
    leading: list[Any] = [context] if is_bare(plain) else []
    named = _build_arguments(plain, arguments, hints, leading)
    rest_name, keywords = rest_names(plain)
    rest = named.pop(rest_name, ()) if rest_name else ()
    more = named.pop(keywords, {}) if keywords else {}
    code = plain.__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if taken := [name for name in more if name in named or name in own]:
        raise Unfit(
            f"{keywords}: {taken[0]} is {'given twice' if taken[0] in named else 'a parameter of its own'}"
        )
    positions, named = _as_taken(function, plain, leading, named | more, rest)
    value = function(*positions, *rest, **named)
    if isinstance(value, types.AsyncGeneratorType):
        return run(lambda: value)
    value = run(lambda: value)
    if "return" in hints and plain is plain_function(
        function
    ):  # a decorator that hides it may return something else
        if origin_of(peel(hints["return"])) is list:
            value = listed(value)
        check(value, hints["return"])
    return value


def _as_taken(
    function: Callable[..., Any],
    plain: FunctionType,
    leading: list[Any],
    named: dict[str, Any],
    rest: Sequence[Any],
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments by position and by name, as the function and its decorators take them.

    As many as possible are passed by name. Decorators that take any arguments get them by position, as from most
    callers, unless their code mentions a parameter by its name.
    """
    code = plain.__code__
    names = code.co_varnames[len(leading) : code.co_argcount]
    least = code.co_argcount if rest else code.co_posonlyargcount
    least = max(least - len(leading), 0)
    if function is plain:
        return _split(plain, least, leading, named, rest) if least else (leading, named)
    layers = _layers(function, plain)
    signatures = [
        attempt(partial(inspect.signature, layer, follow_wrapped=False)) for layer in layers
    ]
    known = [signature for signature in signatures if isinstance(signature, inspect.Signature)]
    is_open = any(
        each.kind is each.VAR_POSITIONAL
        for signature in known
        for each in signature.parameters.values()
    )
    if is_open and not any(_mentions(layer, {*names}) for layer in layers):
        least = max(
            least, next((at for at, name in enumerate(names) if name not in named), len(names))
        )
    for count in range(least, len(names) + 1):
        positions, others = _split(plain, count, leading, named, rest)
        if all(_binds(signature, (*positions, *rest), others) for signature in known):
            return positions, others
    return _split(plain, least, leading, named, rest)


def _split(
    plain: FunctionType, count: int, leading: list[Any], named: dict[str, Any], rest: Sequence[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments with those of the first parameters by position, up to the last one that is needed."""
    first = plain.__code__.co_varnames[len(leading) : len(leading) + count]
    needed = (
        count if rest else max((at for at, name in enumerate(first, 1) if name in named), default=0)
    )
    given = defaults(plain)
    positions = [named[name] if name in named else given[name] for name in first[:needed]]
    return [*leading, *positions], {
        name: value for name, value in named.items() if name not in first[:needed]
    }


def _layers(function: Callable[..., Any], plain: FunctionType) -> list[Any]:
    """Return the decorators around a function, the outermost first."""
    layers: list[Any] = []
    layer: Any = function
    while layer is not None and layer is not plain and len(layers) < DEEPEST_WRAPPER:
        layers.append(layer)
        layer = getattr(layer, "__wrapped__", None)
    return layers


def _mentions(layer: Any, names: Set[str]) -> bool:
    """Return whether the code of a decorator has one of these names as a text, as in `named["n"]`."""
    code = getattr(
        layer if isinstance(layer, FunctionType) else type(layer).__call__, "__code__", None
    )
    return isinstance(code, CodeType) and any(
        isinstance(part, str) and part in names for part in code.co_consts
    )


def _binds(
    signature: inspect.Signature, positions: Sequence[Any], named: Mapping[str, Any]
) -> bool:
    try:
        signature.bind(*positions, **named)
    except TypeError:
        return False
    return True


def _build_arguments(
    function: FunctionType, arguments: Mapping[str, Any], hints: dict[str, Hint], leading: list[Any]
) -> dict[str, Any]:
    code = function.__code__
    positional = code.co_varnames[len(leading) : code.co_argcount]
    names = (
        *positional,
        *code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount],
    )
    rest, keywords = rest_names(function)
    known = {*names, rest, keywords}
    if not keywords and (unknown := [name for name in arguments if name not in known]):
        raise Unfit(
            f"{unknown[0]}: {function.__name__} has no such parameter; it has {', '.join(names) or 'none'}"
        )
    optional = {
        *positional[len(positional) - len(function.__defaults__ or ()) :],
        *(function.__kwdefaults__ or {}),
    }
    declared = (
        _declared_defaults(function, names, arguments, hints)
        if "pydantic.fields" in sys.modules
        else {}
    )
    if missing := [
        name for name in names if name not in arguments and name not in optional | declared.keys()
    ]:
        raise Unfit(f"{missing[0]}: {function.__name__} needs this argument")
    kinds: dict[str, Hint] = {name: hints.get(name, Any) for name in arguments}
    for name, container in ((rest, list), (keywords, dict)):
        if name and name in hints:
            kinds[name] = variadic(hints[name], container)
            if (
                name not in arguments and unpacked(hints[name]) is not None
            ):  # its type may need some
                arguments = {**arguments, name: container()}
        elif name:
            kinds[name] = container
    return declared | {name: build(value, kinds[name], name) for name, value in arguments.items()}


def _declared_defaults(
    function: FunctionType,
    names: tuple[str, ...],
    arguments: Mapping[str, Any],
    hints: dict[str, Hint],
) -> dict[str, Any]:
    """Return the defaults that `Field(…)` declares for omitted parameters."""
    info = sys.modules["pydantic.fields"].FieldInfo
    given = defaults(function)
    declared = {}
    for name in names:
        if name in arguments:
            continue
        own = given.get(name, Ellipsis)
        if own is not Ellipsis and not isinstance(own, info):
            continue  # Python applies a plain default
        fields = [own, *reversed(getattr(hints.get(name), "__metadata__", ()))]
        field = next(
            (part for part in fields if isinstance(part, info) and not part.is_required()), None
        )
        if field is not None:
            declared[name] = field.get_default(call_default_factory=True)
        elif own is not Ellipsis:
            raise Unfit(f"{name}: {function.__name__} needs this argument")
    return declared


def run(act: Callable[[], Any]) -> Any:
    """Return the result of an action, awaited if it is awaitable, or the items if it is an async generator."""
    value = act()
    if not isinstance(value, types.AsyncGeneratorType | Awaitable):
        return value
    return importlib.import_module("asyncio").run(_wait(value))


async def _wait(value: types.AsyncGeneratorType[Any, None] | Awaitable[Any]) -> Any:
    if isinstance(value, Awaitable):
        return await value
    gathered: list[Any] = []
    async for item in value:
        gathered.append(item)
        if len(gathered) > MOST_ITEMS:
            break
    return first_items(iter(gathered))


def _no_input(prompt: object = "") -> NoReturn:
    raise EOFError("input() has nobody to ask: take the value as a parameter of the function")


def compile_module(
    text: str, path: str, module: str, statements: Sequence[StatementPart] | None = None
) -> Frame:
    """Return the reply with the compiled code, or with the syntax error and its line.

    With `statements`, only these are compiled, as `wire.statements` reduces them.
    """
    try:
        tree = ast.parse(text, path)
        places = reduce(tree, statements) if statements is not None else []
        names = sorted(_imports(tree, module))[:MOST_IMPORTS]
        code = compile(tree, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 0
        message = getattr(error, "msg", None) or str(error) or "nested too deep to be compiled"
        is_deep = isinstance(error, RecursionError)
        return {
            "kind": "broken",
            "path": path,
            "line": line,
            "message": message[:MOST_MESSAGE],
            "is_deep": is_deep,
        }
    data = b2a_base64(marshal.dumps(code)).decode()
    return {"kind": "code", "path": path, "code": data, "imports": names, "places": places}


def _imports(tree: ast.Module, module: str) -> set[str]:
    """Return every imported name (asyncio for `async def`), with relative ones resolved below `functions`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef):
            names.add("asyncio")  # calling it runs an event loop
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = ["functions", *module.split(".")][: -node.level]
                base = ".".join([*package, *([node.module] if node.module else [])])
            names.add(base)
            names.update(
                f"{base}.{alias.name}" for alias in node.names if base.startswith("functions")
            )
    return names


def perform(frame: Frame, channel: Channel, scratch: Path) -> Frame:
    """Run a job and return the reply, even if the job fails."""
    workshop = WorkerJobs(channel, scratch)
    surround(frame)
    return reply_of(lambda: _JOBS[frame["kind"]](workshop, frame), workshop)


def reply_of(act: Callable[[], Frame], jobs: "WorkerJobs") -> Frame:
    """Return the reply of an action, or a reply that describes its failure."""
    outcome = attempt(act)
    if jobs.debugger.has_news:
        attempt(lambda: jobs.debugger.finish(outcome))
    if isinstance(outcome, Unfit):
        return {"kind": "refused", "reason": failure.clean(str(outcome))[:MOST_MESSAGE]}
    if isinstance(outcome, BaseException):
        description = attempt(lambda: failure.describe(outcome, jobs.own_paths))
        if isinstance(description, dict) and jobs.left_by_failure:
            description["kept"] = jobs.left_by_failure
        return (
            description
            if isinstance(description, dict)
            else {"kind": "raised", "type": "Exception", "message": "", "frames": []}
        )
    return outcome


def surround(frame: Frame) -> None:
    """Set up a job's environment: the host's seed for `random` and, in a replay, the original time zone."""
    if "seed" in frame:
        random.seed(frame["seed"])
    if "zone" in frame:
        os.environ["TZ"] = frame["zone"]
        time.tzset()


class WorkerJobs:
    """The shared state of the jobs of one worker: the finder, the context, and the paths of function code."""

    def __init__(self, channel: Channel, scratch: Path) -> None:
        self._channel = channel
        self._scratch = scratch
        self.context = Context(channel, scratch)
        channel.call_here = self.call_here
        self.finder = Finder(channel)
        self.own_paths = self.finder.served
        self.debugger = WorkerDebugger(channel, self.own_paths)
        self.finder.imported = self.debugger.imported
        self.left_by_failure: dict[str, Encoded] = {}
        """The variables of a program that failed."""
        self.is_trial = False
        """True for attempts, in which `breakpoint()` is ignored."""

    def load(self, frame: Frame) -> ModuleType:
        """Import the job's module and return it."""
        builtins.input = _no_input
        if frame["kind"] in _ASKING or frame.get("asks"):
            files.install(self._channel, self._scratch, self.own_paths)
        web.install(self._channel)
        self.finder.install()
        self.debugger.install()
        for module, answer in frame["modules"].items():
            self.finder.offer(module, answer)
            self.own_paths.add(answer.get("path", ""))
        return importlib.import_module(f"{ROOT}.{frame['module']}")

    def call_here(self, frame: Frame) -> Any:
        """Call another function for the one that runs, and return its result as it would arrive from another worker."""
        module = importlib.import_module(f"{ROOT}.{frame['module']}")
        try:
            value = call(
                module,
                frame["function"],
                decode(frame["arguments"]),
                Context(self._channel, self._scratch),
            )
        except Unfit as error:
            raise TypeError(str(error)) from None
        return decode(encode(listed(value), simplify))

    def compile(self, text: str | ast.AST, label: str, mode: str) -> CodeType:
        """Compile a part of an example, or a program. Its frames count as function code."""
        self.own_paths.add(label)
        code: CodeType = compile(text, label, mode, dont_inherit=True)  # type: ignore[arg-type]
        return code

    def perform(self, frame: Frame) -> Frame:
        """Run a program, whose module is empty."""
        # Before the host is asked for files: reading the time zone of a value opens some.
        variables = programs.Variables(self._channel, frame["kept"], frame.pop("given", None))
        self.load(frame)
        compile_ = lambda tree, mode: self.compile(tree, PROGRAM, mode)  # noqa: E731 - it is given once
        return programs.perform(frame, self._channel, variables, compile_, self.left_by_failure)


def _return_frame(value: Any, most: int = MOST_SHOWN) -> Frame:  # any value from function code
    value = listed(value)
    encoded = lean(value, simplify)
    return {"kind": "returned", "value": encoded, "shown": failure.shown(value, most)}


def call_in(module: ModuleType, jobs: WorkerJobs, frame: Frame, most: int = MOST_SHOWN) -> Frame:
    """Call one of a module's functions and return the reply."""
    may_have_secret = frame.get("may_have_secret") is not False
    jobs.debugger.begin(frame.get("debug"), is_trial=jobs.is_trial, may_have_secret=may_have_secret)
    jobs.context.begin()
    value = call(
        module,
        frame["function"],
        decode(frame["arguments"], frame.pop("given", None)),
        jobs.context,
    )
    reply = _return_frame(value, most)  # an iterator runs here
    jobs.context.keep_state()
    return reply


def evaluate_in(
    module: ModuleType, jobs: WorkerJobs, frame: Frame, most: int = MOST_SHOWN
) -> Frame:
    """Evaluate an example in a copy of the module's namespace and return the reply."""
    jobs.context.begin()
    # `self.scratch` holds the files of an example.
    namespace = {"picture_facts": picture_facts, "self": jobs.context} | vars(module)
    for name, value in vars(module).items():
        if isinstance(value, FunctionType) and is_bare(plain_function(value)):
            namespace[name] = functools.wraps(value)(
                functools.partial(value, jobs.context)
            )  # its `self`
    with redirect_stdout(io.StringIO()):  # the output of the setup is not part of the result
        for number, text in enumerate(frame["setup"], start=1):
            exec(jobs.compile(text, f"<setup {number}>", "exec"), namespace)
    code = _example_code(jobs, frame["expression"].strip())
    jobs.debugger.begin(frame.get("debug"), is_trial=True)
    return _return_frame(run(lambda: eval(code, namespace)), most)  # noqa: S307 - in the confined worker, on function code


def _example_code(jobs: WorkerJobs, text: str) -> CodeType:
    for mode in ("eval", "single"):  # "single" is for statements, which print as in doctest
        try:
            return jobs.compile(text, "<example>", mode)
        except SyntaxError:
            continue
    return jobs.compile(text, "<example>", "exec")


def _load(jobs: WorkerJobs, frame: Frame) -> Frame:
    jobs.load(frame)
    return _return_frame(None)


def _describe(jobs: WorkerJobs, frame: Frame) -> Frame:
    module = jobs.load(frame)
    claims: dict[str, dict[str, Any] | str] = {}
    for name in frame["functions"]:
        try:
            claims[name] = schemas_of(defined_function(module, name), name)
        except Unfit as error:  # the reason why there are none
            claims[name] = str(error)
    return _return_frame(claims)


_ASKING = frozenset({"call", "program"})  # the jobs in which the user can be asked for a file
_JOBS: dict[str, Callable[[WorkerJobs, Frame], Frame]] = {
    "call": lambda jobs, frame: call_in(jobs.load(frame), jobs, frame),
    "evaluate": lambda jobs, frame: evaluate_in(jobs.load(frame), jobs, frame),
    "load": _load,
    "describe": _describe,
    "compile": lambda _jobs, frame: compile_module(
        frame["text"], frame["path"], frame["module"], frame.get("statements")
    ),
    "canaries": lambda _jobs, frame: canaries.run_self_test(frame["folder"], frame["port"]),
    "program": WorkerJobs.perform,
}


_CUT = f"\n[output cut after {MOST_TRIED} characters]"


def serve_attempts(frame: Frame, channel: Channel, scratch: Path) -> None:
    """Import the module, report that, then run attempts and report each until there are no more."""
    series = _ModuleAttempts(frame, WorkerJobs(channel, scratch))
    channel.say({"kind": "loaded"})
    more: Frame | None = frame
    while more is not None:
        for each in more["attempts"]:
            output = io.TextIOWrapper(
                io.BytesIO(), "utf-8", "backslashreplace", newline="\n", write_through=True
            )
            sys.stdout = sys.stderr = output
            _empty(scratch)
            reply = bounded(series.reply(frame | each), frame["result"])
            channel.say({"kind": "tried", "reply": reply, "output": _printed_text(output)})
        more = channel.hear()
        series.texts += more["texts"] if more else []


def _empty(folder: Path) -> None:
    """Remove the files that an attempt left in the folder, as far as possible."""
    try:
        with os.scandir(folder) as entries:
            left = [*entries]
        for entry in left:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                Path(entry.path).unlink()
    except OSError:
        return


def _printed_text(output: io.TextIOWrapper) -> str:
    buffer = output.buffer
    data = buffer.getvalue() if isinstance(buffer, io.BytesIO) and not buffer.closed else b""
    text = data[: 4 * MOST_TRIED].decode("utf-8", "replace")
    return text if len(text) <= MOST_TRIED else text[: MOST_TRIED - len(_CUT)] + _CUT


class _ModuleAttempts:
    """The imported module, and the texts that replace its source in some attempts."""

    def __init__(self, frame: Frame, jobs: WorkerJobs) -> None:
        self._jobs = jobs
        jobs.is_trial = True
        self.texts: list[str] = frame["texts"]
        self._codes: dict[int, CodeType] = {}
        self._path: str = frame["modules"][frame["module"]]["path"]
        self._loaded: ModuleType | None = None
        self._unloaded = reply_of(lambda: self._load(frame), jobs)

    def _load(self, frame: Frame) -> Frame:
        self._loaded = self._jobs.load(frame)
        return {}

    def reply(self, frame: Frame) -> Frame:
        """Return the reply to one attempt."""
        return reply_of(lambda: self._try(frame), self._jobs)

    def _try(self, frame: Frame) -> Frame:
        work = call_in if "arguments" in frame else evaluate_in
        if "text" not in frame:
            return (
                work(self._loaded, self._jobs, frame, MOST_TRIED)
                if self._loaded
                else self._unloaded
            )
        with self._module_of(f"{ROOT}.{frame['module']}") as module:
            number = frame["text"]
            if number not in self._codes:
                self._codes[number] = compile(
                    self.texts[number], self._path, "exec", dont_inherit=True
                )
            exec(self._codes[number], vars(module))
            return work(module, self._jobs, frame, MOST_TRIED)

    @contextmanager
    def _module_of(self, name: str) -> Iterator[ModuleType]:
        """Replace the module with that name with an empty one while the block runs."""
        module = ModuleType(name)
        module.__file__, module.__package__ = self._path, name.rpartition(".")[0]
        sys.modules[name] = module
        try:
            yield module
        finally:
            if self._loaded:
                sys.modules[name] = self._loaded


TIMES: Final = 10  # rehearsals in the zygote, after which the interpreter has specialized this code
_REHEARSED = compile(
    "def add(a: int, b: int = 2) -> int:\n    return a + b\n", "functions/rehearsal.py", "exec"
)
_REHEARSAL: Final = pack({
    "kind": "call",
    "module": "rehearsal",
    "function": "add",
    "arguments": {"a": 1},
    "modules": {
        "rehearsal": {
            "kind": "code", "path": "functions/rehearsal.py", "code": b2a_base64(marshal.dumps(_REHEARSED)).decode(),
        },
    },
})[HEADER:]  # fmt: skip


def rehearse(channel: Channel) -> None:
    """Run the rehearsal job and remove all its traces."""
    finders = list(sys.meta_path)
    perform(unpack(_REHEARSAL), channel, Path())
    sys.meta_path[:] = finders
    files.rest()
    for name in (f"{ROOT}.rehearsal", ROOT):
        del sys.modules[name]
