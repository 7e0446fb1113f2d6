"""The jobs of a worker: call a function, evaluate an example, import, describe types, compile.

Each takes the host's frame and returns the reply. An error in function code is a reply of kind `raised`; a job that
does not match the code is `refused`. A compile-only worker runs no line of the module, so its reply can be cached.
The schemas of the types that `build` converts are written here; pydantic makes those of all other types.
"""

import ast
import builtins
import collections
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import functools
import importlib
import inspect
import io
import marshal
import os
import pathlib
import random
import re
import sys
import time
import types
import typing
import uuid
from binascii import b2a_base64
from collections.abc import Callable, Set
from contextlib import redirect_stdout
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final, NoReturn

from ..wire.caps import MOST_IMPORTS, MOST_MESSAGE, MOST_SHOWN
from ..wire.definitions import with_definitions
from ..wire.protocol import Frame
from ..wire.values import decode, encode

# `canaries` too, although only the self-test needs it: a confined worker can read no file of ours to import it from.
from . import canaries, failure, files, programs, web
from .build import Unfit
from .channel import Channel
from .context import Context
from .debugger import WorkerDebugger
from .failure import attempt
from .finder import ROOT, Finder
from .hints import (
    NOTHING_TO_CHECK,
    Hint,
    alternatives,
    init_fields,
    of_class,
    of_function,
    origin_of,
    peel,
    required_keys,
    words,
)
from .invocation import call, defaults, is_bare, run
from .simplification import bounded, is_iterator, simplify

Schema = dict[str, Any]
_UNREADABLE = (NameError, TypeError, AttributeError, ValueError, RecursionError)  # what an odd annotation raises


def install() -> None:
    """Replace `input` by a function that raises EOFError."""
    builtins.input = _no_input


def _no_input(prompt: object = "") -> NoReturn:
    raise EOFError("input() has nobody to ask: take the value as a parameter of the function")


def with_context(function: Callable[..., Any], context: Context) -> Callable[..., Any]:  # any function
    """Return the function with its `self` bound."""
    return functools.wraps(function)(functools.partial(function, context))


def of(function: object, name: str) -> dict[str, Any]:
    """Return parameter → JSON Schema, or the reason why it has none. Raise Unfit if the types cannot be resolved."""
    if not isinstance(function, types.FunctionType):
        raise Unfit(f"{name}: there is no such function")
    try:
        hints = of_function(function)
    except (NameError, TypeError, AttributeError, SyntaxError, RecursionError) as error:
        raise Unfit(f"{name}: its types cannot be resolved: {error}") from error
    hints.pop("return", None)
    given = defaults(function)
    return {parameter: _claim(hint, given.get(parameter, Ellipsis)) for parameter, hint in hints.items()}


def _claim(hint: Hint, default: Any) -> Schema | str:
    """Return the schema of a parameter with this default, or the reason why there is none."""
    if _is_pydantic(default):  # a `Field(…)`, which may limit and describe it
        return _schema(typing.Annotated[hint, default])
    schema = _schema(hint)
    return schema | _default_keyword(default) if isinstance(schema, dict) else schema


def _schema(hint: Hint) -> Schema | str:
    """Return the schema of a hint (for a union, of the members that have one), or the reason why there is none."""
    try:
        return _inline(schema_of(hint))
    except (Unfit, *_UNREADABLE) as error:
        reason = str(error).partition("\n")[0]
    try:
        pydantic = importlib.import_module("pydantic")
        maker = importlib.import_module("pydantic.json_schema").GenerateJsonSchema
        maker = type("Schemas", (maker,), {"field_title_should_be_set": _no_title})
        return _inline(_finite(pydantic.TypeAdapter(hint).json_schema(schema_generator=maker)))
    except ImportError:
        return reason
    except (pydantic.errors.PydanticUserError, *_UNREADABLE) as error:
        definitions: Schema = {}
        members = [_schema(member) for member in alternatives(hint)]
        written = [with_definitions(member, definitions) for member in members if isinstance(member, dict)]
        is_narrower = isinstance(error, NameError | ValueError | RecursionError) and len(written) < len(members)
        any_of = {"anyOf": written, **({"$defs": definitions} if definitions else {})}
        return any_of if written and not is_narrower else str(error).partition("\n")[0]


def _finite(node: Any) -> Any:
    """Return a schema without the numbers that JSON does not have, such as a default or a limit that is infinite."""
    if isinstance(node, list):
        return [_finite(part) for part in node]
    if not isinstance(node, dict):
        return node
    return {key: _finite(part) for key, part in node.items() if not isinstance(part, int | float) or _is_finite(part)}


def _is_finite(number: int | float) -> bool:
    return abs(number) <= sys.float_info.max


def _no_title(_maker: object, _schema: object) -> bool:
    return False  # it would repeat the name of the field


def _is_pydantic(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "pydantic"


def compile_module(text: str, path: str, module: str) -> Frame:
    """Return the reply with the compiled code, or with the syntax error and its line."""
    try:
        tree = ast.parse(text, path)
        names = sorted(_imports(tree, module))[:MOST_IMPORTS]
        code = compile(tree, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 0
        message = getattr(error, "msg", None) or str(error) or "nested too deep to be compiled"
        return {"kind": "broken", "path": path, "line": line, "message": message[:MOST_MESSAGE]}
    return {"kind": "code", "path": path, "code": b2a_base64(marshal.dumps(code)).decode(), "imports": names}


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
            names.update(f"{base}.{alias.name}" for alias in node.names if base.startswith("functions"))
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
        self.finder = Finder(channel)
        self.own_paths = self.finder.served
        self.debugger = WorkerDebugger(channel, self.own_paths)
        self.finder.imported = self.debugger.imported
        self.is_trial = False
        """True for attempts, in which `breakpoint()` is ignored."""

    def load(self, frame: Frame) -> ModuleType:
        """Import the job's module and return it."""
        install()
        if frame["kind"] in _ASKING or frame.get("asks"):
            files.install(self._channel, self._scratch, self.own_paths)
        web.install(self._channel)
        self.finder.install()
        self.debugger.install()
        for module, answer in frame["modules"].items():
            self.finder.offer(module, answer)
            self.own_paths.add(answer.get("path", ""))
        return importlib.import_module(f"{ROOT}.{frame['module']}")

    def compile(self, text: str | ast.AST, label: str, mode: str) -> CodeType:
        """Compile a part of an example, or a program. Its frames count as function code."""
        self.own_paths.add(label)
        code: CodeType = compile(text, label, mode, dont_inherit=True)  # type: ignore[arg-type]
        return code

    def perform(self, frame: Frame) -> Frame:
        """Run a program, whose module is empty."""
        self.load(frame)
        return programs.perform(frame, self._channel, lambda tree, mode: self.compile(tree, programs.PATH, mode))


def _return_frame(value: Any, most: int = MOST_SHOWN) -> Frame:  # any value from function code
    value = bounded(value) if is_iterator(value) else value
    encoded = encode(value, simplify)
    return {"kind": "returned", "value": encoded, "shown": failure.shown(value, most)}


def call_in(module: ModuleType, jobs: WorkerJobs, frame: Frame, most: int = MOST_SHOWN) -> Frame:
    """Call one of a module's functions and return the reply."""
    jobs.debugger.begin(frame.get("debug"), is_trial=jobs.is_trial)
    function = getattr(module, frame["function"], None)
    if not callable(function):
        raise Unfit(f"{frame['module']} has no function {frame['function']!r}")
    jobs.context.begin()
    value = call(function, decode(frame["arguments"]), jobs.context)
    reply = _return_frame(value, most)  # an iterator runs here
    jobs.context.keep_state()
    return reply


def evaluate_in(module: ModuleType, jobs: WorkerJobs, frame: Frame, most: int = MOST_SHOWN) -> Frame:
    """Evaluate an example in a copy of the module's namespace and return the reply."""
    jobs.context.begin()
    namespace = {"self": jobs.context} | vars(module)  # `self.scratch` holds the files of an example
    for name, value in vars(module).items():
        if is_bare(value):
            namespace[name] = with_context(value, jobs.context)
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
    return _return_frame({name: _claim_schemas(getattr(module, name, None), name) for name in frame["functions"]})


def _claim_schemas(function: object, name: str) -> dict[str, Any] | str:
    """Return the schemas of a function's types, or the reason why there are none."""
    try:
        return of(function, name)
    except Unfit as error:
        return str(error)


_ASKING = frozenset({"call", "kept"})  # the jobs in which the user can be asked for a file
_JOBS: dict[str, Callable[[WorkerJobs, Frame], Frame]] = {
    "call": lambda jobs, frame: call_in(jobs.load(frame), jobs, frame),
    "evaluate": lambda jobs, frame: evaluate_in(jobs.load(frame), jobs, frame),
    "load": _load,
    "describe": _describe,
    "compile": lambda _jobs, frame: compile_module(frame["text"], frame["path"], frame["module"]),
    "canaries": lambda _jobs, frame: canaries.run_self_test(frame["folder"], frame["port"]),
    "program": WorkerJobs.perform,
}


def serve_calls(first_frame: Frame, channel: Channel, scratch: Path) -> None:
    """Answer calls until the host has no more."""
    state = _StatefulModule(WorkerJobs(channel, scratch))
    job: Frame | None = first_frame
    while job is not None:
        reply = state.reply(job)
        attempt(sys.stdout.flush)
        attempt(sys.stderr.flush)
        channel.reply(reply, job["result"])
        job = channel.hear()


class _StatefulModule:
    """The module of a stateful worker, imported by the first call."""

    def __init__(self, jobs: WorkerJobs) -> None:
        self._jobs = jobs
        self._module: ModuleType | None = None

    def reply(self, frame: Frame) -> Frame:
        """Return the reply to one call."""
        return reply_of(lambda: self._call(frame), self._jobs)

    def _call(self, frame: Frame) -> Frame:
        surround(frame)
        if self._module is None:
            self._module = self._jobs.load(frame)
        return call_in(self._module, self._jobs, frame)


_SCALARS: Final[dict[Any, Schema]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    complex: {"type": "string"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    decimal.Decimal: {"type": ["string", "number"], "format": "decimal"},
    type(None): {"type": "null"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    datetime.timedelta: {"type": "string", "format": "duration"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    **{
        kind: {"type": "string", "format": "path"}
        for kind in (pathlib.Path, pathlib.PurePath, pathlib.PosixPath, pathlib.PurePosixPath)
    },
}
_SETS: Final = frozenset({set, frozenset, collections.abc.Set, collections.abc.MutableSet})
_LISTS: Final = frozenset({
    list, collections.deque, collections.abc.Sequence, collections.abc.MutableSequence, collections.abc.Iterable,
    collections.abc.Iterator, collections.abc.Container, collections.abc.Collection,
})  # fmt: skip
_OBJECTS: Final = frozenset({
    dict, collections.abc.Mapping, collections.abc.MutableMapping, collections.defaultdict, collections.OrderedDict,
    collections.Counter,
})  # fmt: skip
_BOUNDS: Final = {
    "gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum", "multiple_of": "multipleOf",
}  # fmt: skip
_MOST_PARTS, _MOST_TEXT, _LARGEST = 1_000, 4_000, 10**40  # parts of an inlined schema; size of a shown default


def schema_of(hint: Hint) -> Schema:
    """Return the schema of a hint. Raise Unfit if it has a type that `build` leaves to pydantic."""
    writer = _Writer()
    written = writer.of(hint)
    return written | ({"$defs": writer.definitions} if writer.definitions else {})


class _Inexpressible(Unfit):
    """A type without a JSON form, which a union can do without."""


class _Writer:
    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self._names: dict[type, str] = {}

    def of(self, hint: Hint) -> Schema:
        """Return the schema of one annotation."""
        if origin_of(hint) is typing.Annotated:
            annotated, *marks = typing.get_args(hint)
            return _add_marks(self.of(annotated), marks)
        if origin_of(hint) in (typing.Required, typing.NotRequired):
            return self.of(typing.get_args(hint)[0])
        if members := alternatives(hint):
            return self._union(members)
        hint = peel(hint)
        if hint in NOTHING_TO_CHECK or isinstance(hint, str | typing.ForwardRef):  # within a recursive alias
            return {}
        origin, inner = origin_of(hint), typing.get_args(hint)
        if origin is typing.Literal:
            values = [each.value if isinstance(each, enum.Enum) and _default_keyword(each) else each for each in inner]
            return _enum_schema([each.name if isinstance(each, enum.Enum) else each for each in values])
        if origin in (collections.abc.Callable, type):
            raise _Inexpressible(f"{words(hint)} cannot be written as JSON")
        try:
            return dict(_SCALARS[hint]) if hint in _SCALARS else self._container(origin, inner, hint)
        except TypeError as error:  # not hashable
            raise Unfit(f"{words(hint)} has no schema") from error

    def _union(self, members: tuple[Hint, ...]) -> Schema:
        written: list[Schema] = []
        for member in members:
            try:
                written.append(self.of(member))
            except _Inexpressible:
                continue
        if not written or all(schema == {"type": "null"} for schema in written):
            raise _Inexpressible(f"none of {', '.join(map(words, members))} can be written as JSON")
        return {"anyOf": written} if len(written) > 1 else written[0]

    def _container(self, origin: Any, inner: tuple[Hint, ...], hint: Hint) -> Schema:
        if origin in _SETS:
            return {"type": "array", "items": self.of(inner[0] if inner else Any), "uniqueItems": True}
        if origin in _LISTS:
            return {"type": "array", "items": self.of(inner[0] if inner else Any)}
        if origin is tuple:
            if not inner or inner[-1] is Ellipsis:
                return {"type": "array", "items": self.of(inner[0] if inner else Any)}
            items = [self.of(member) for member in inner]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        if origin in _OBJECTS:
            inner = (*inner, int) if origin is collections.Counter and inner else inner or (str, Any)
            if len(inner) != 2:
                raise Unfit(f"{words(hint)} has not two types")
            key, value = inner
            names, values = self.of(key), self.of(value)
            rule: Schema = {"pattern": "^-?[0-9]+$"} if names.get("type") == "integer" else {}
            if listed := names.get("enum", [names["const"]] if "const" in names else []):
                rule = {"enum": [str(name) for name in listed]}
            return {"type": "object", **({"propertyNames": rule} if rule else {}), "additionalProperties": values}
        if isinstance(origin, type):
            return self._class(origin)
        raise Unfit(f"{words(hint)} has no schema")

    def _class(self, kind: type) -> Schema:
        if issubclass(kind, enum.Flag):
            parts = ", ".join(f"{member.value} ({member.name})" for member in kind)
            return {
                "type": "integer",
                "description": " ".join([*_summary(kind).values(), f"The sum of any of {parts}."]),
            }
        if issubclass(kind, enum.Enum):
            values = [member.value if _default_keyword(member) else member.name for member in kind]
            return _enum_schema(values) | _summary(kind)
        if dataclasses.is_dataclass(kind) and not hasattr(kind, "__pydantic_validator__"):
            absent = dataclasses.MISSING
            fields = init_fields(kind)
            needed = {field.name for field in fields if field.default is absent and field.default_factory is absent}
            return self._define(kind, {field.name: field.default for field in fields}, needed)
        if typing.is_typeddict(kind):
            return self._define(kind, dict.fromkeys(of_class(kind), Ellipsis), {*required_keys(kind)})
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            given: dict[str, Any] = getattr(kind, "_field_defaults", {})
            return self._define(kind, dict.fromkeys(kind._fields, Ellipsis) | given, {*kind._fields} - given.keys())
        raise Unfit(f"{kind.__qualname__} has no schema without pydantic, which functions cannot import here")

    def _define(self, kind: type, fields: dict[str, Any], needed: Set[str]) -> Schema:
        """Return a reference to the schema of a class with these fields and defaults; it may be recursive."""
        name = self._names.get(kind, "")
        if not name:
            name = re.sub(r"\W", "_", kind.__name__)
            name = self._names[kind] = f"{name}_{len(self._names)}" if name in self._names.values() else name
            hints = of_class(kind)
            properties = {field: self.of(hints.get(field, Any)) | _default_keyword(fields[field]) for field in fields}
            required = [field for field in fields if field in needed]
            closed = {"properties": properties, "required": required, "additionalProperties": False}
            self.definitions[name] = {"type": "object", **_summary(kind), **closed}
        return {"$ref": f"#/$defs/{name}"}


def _summary(kind: type) -> Schema:
    """Return the docstring of a class as its description, unless Python made it."""
    text = kind.__dict__.get("__doc__") or ""
    return {} if not text or text.startswith(f"{kind.__name__}(") else {"description": inspect.cleandoc(text)}


def _default_keyword(default: object) -> Schema:
    """Return a default in the form of a schema, if it is a short scalar of JSON or a member with such a value."""
    value = default.value if isinstance(default, enum.Enum) else default
    is_short = isinstance(value, str) and len(value) <= _MOST_TEXT
    is_number = isinstance(value, int | float) and abs(value) < _LARGEST  # neither infinite nor too long to be written
    return {"default": value} if value is None or is_short or is_number else {}


def _inline(schema: Schema) -> Schema:
    """Return a schema with its definitions in place of the references, unless one is recursive or it grows too large.

    Models and programs that show it read it more easily.
    """
    definitions = schema.get("$defs", {})
    parts = 0

    def put(node: Any, around: tuple[str, ...]) -> Any:
        nonlocal parts
        if isinstance(node, list):
            return [put(part, around) for part in node]
        if not isinstance(node, dict):
            return node
        parts += 1
        name = str(node.get("$ref")).removeprefix("#/$defs/")
        if name in around or parts > _MOST_PARTS:
            raise RecursionError
        is_union = "oneOf" in node  # whose `discriminator` names definitions
        own = {key: put(part, around) for key, part in node.items() if not (is_union and key == "discriminator")}
        if name not in definitions:
            return own
        own.pop("$ref")
        return {**put(definitions[name], (*around, name)), **own}

    try:
        inlined: Schema = put({key: part for key, part in schema.items() if key != "$defs"}, ())
    except RecursionError:
        return schema
    return inlined


def _enum_schema(values: list[Any]) -> Schema:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    found = {kinds.get(next((kind for kind in kinds if isinstance(value, kind)), object)) for value in values}
    only = found.pop() if len(found) == 1 else None
    listed: Schema = {"const": values[0]} if len(values) == 1 else {"enum": values}
    return ({"type": only} if only else {}) | listed


def _add_marks(schema: Schema, marks: list[Any]) -> Schema:
    """Return a schema with a type's metadata: a description, or limits as in `annotated_types`.

    Raise Unfit for the metadata of pydantic.
    """
    sizes = {"array": "Items", "object": "Properties"}.get(str(schema.get("type")), "Length")
    for mark in marks:
        if _is_pydantic(mark):
            raise Unfit("pydantic's limits have no schema without pydantic, which functions cannot import here")
        text = mark if isinstance(mark, str) else getattr(mark, "documentation", None)
        if isinstance(text, str):
            schema = {"description": text.strip(), **schema}
        for name, key in {**_BOUNDS, "min_length": f"min{sizes}", "max_length": f"max{sizes}"}.items():
            if isinstance(value := getattr(mark, name, None), int | float) and _is_finite(value):
                schema[key] = value
    return schema
