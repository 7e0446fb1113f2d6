"""Converts a module's text to the functions it offers and every problem that excludes others. Nothing runs.

The public methods of a class, and signatures that are written as data, are read by the same code. The classes are
trusted and already imported: only their text is needed here. A signature is of something with a schema but no source,
such as a helper: an annotation must be a single expression, and a default a single literal.
"""

import ast
import hashlib
import inspect
import keyword
import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from agent_core.base import syntax
from agent_core.base.errors import UsageError
from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import one_line
from sandbox.wire.lines import lines_of

from . import docstring, examples
from .annotation import Converter, annotated_default, default_of, field_default, limit, texts
from .function import Function, ModuleReading
from .literals import json_literal
from .source import (
    FOLDER,
    MODULE_LIMIT,
    ModuleSource,
    bound_names,
    callee,
    caller_of,
    first_line,
    is_helper,
    is_literal,
    parse,
)
from .tree import Definition, Scope, imports_own_name, survey, workspace_imports
from .typenames import Impossible, Schema, Unresolved

if TYPE_CHECKING:
    from .docstring import Described


_NAME = re.compile(r"^[a-zA-Z0-9_]{1,64}$")
_WORD = re.compile(r"\w+")
_PLAIN = frozenset({"bool", "int", "float", "str"})
_REST: Schema = {
    "type": "array",
    "description": "Further values, each of which becomes an argument of its own.",
}
_UNPASSABLE: Schema = {}  # for a parameter with a default that cannot be offered
_EXTRA: Schema = {"type": "object", "description": "Further arguments by their names."}
_CLASS_LIMIT = 1 << 20
_OTHER_KINDS = frozenset({"builtins.property", "builtins.staticmethod", "builtins.classmethod"})
_SIGNATURE_IMPORTS: Final = (
    "import datetime\nfrom collections.abc import Iterable, Mapping, Sequence\n"
    "from datetime import date, timedelta\nfrom decimal import Decimal\nfrom pathlib import Path\n"
    "from typing import Annotated, Any, Dict, List, Literal, Optional, Set, Tuple, Union\nfrom uuid import UUID\n"
)
_INPUT_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_LONGEST_INPUT: Final = 1_000
_TYPE_FIX: Final = "write it as in a function: `str`, `list[str]`, `int = 5`, `Literal['a', 'b']`"
PlaceOf = Callable[[str], Place]
"""Returns the place of a name in the file that contains the signature."""


def read_module(
    source: ModuleSource, limit: int = MODULE_LIMIT, *, tree: ast.Module | None = None
) -> ModuleReading:
    """Return a module's functions, and every problem that excludes others; a given `tree` saves parsing."""
    parsed = tree or parse(source, limit)
    imports_own_name(source)  # this runs beside the event loop, and what asks for it later may not
    if isinstance(parsed, Problem):
        return ModuleReading(source, (), (parsed,), (), parsed=False)
    try:
        return _Reader(source, survey(parsed, source)).read(parsed)
    except RecursionError:
        message = "the code is nested too deeply to be read"
        problem = Problem(
            "too-deep", message, Place(source.path), "split long expressions and nested types"
        )
        return ModuleReading(source, (), (problem,), (), parsed=False)


class _Reader:
    """A reader of one module, which collects the problems that it finds."""

    def __init__(self, source: ModuleSource, scope: Scope) -> None:
        self.source, self.scope = source, scope
        self.lines = lines_of(source.text)
        self.problems: list[Problem] = []
        self.refusals = 0
        self.converter = Converter(scope)
        self.open: list[ast.expr] = []  # annotations and defaults that only an import can resolve

    def read(self, tree: ast.Module) -> ModuleReading:
        for earlier, later in self.scope.redefined:
            message = (
                f"`{later.name}` is defined again, so the one on line {earlier.lineno} is lost"
            )
            self.warn("redefined", message, later, "remove or rename one of the two")
        nodes = [] if is_helper(self.source.module) else self.scope.public()
        functions = tuple(
            function for node in nodes if (function := self.function(node)) is not None
        )
        is_package = self.source.path.endswith("/__init__.py")
        imports = workspace_imports(
            tree, self.source.text, self.source.module, is_package=is_package
        )
        leans = (
            tuple((module, "") for module in imports) if self.open and self.borrows_types() else ()
        )
        return ModuleReading(self.source, functions, tuple(self.problems), imports, leans=leans)

    def borrows_types(self) -> bool:
        """Check whether open types may come from other modules of the workspace, directly or in a class or alias."""
        words: set[str] = set()
        for node in (*self.open, *self.scope.classes.values(), *self.scope.values.values()):
            for part in ast.walk(node):
                match part:
                    case ast.Name(id=name):
                        words.add(name)
                    case ast.Constant(value=str(text)):  # a quoted annotation
                        words.update(_WORD.findall(text))
        return any(self.is_borrowed(ast.Name(word)) for word in words)

    def is_borrowed(self, node: ast.expr) -> bool:
        """Check whether a name or attribute comes from another module of the workspace."""
        return f"{self.scope.origin(node)}.".startswith(f"{FOLDER}.")

    def function(self, node: Definition) -> Function | None:
        """Return one function, or None if it cannot be offered; the problems then have the reason."""
        refusals_before = self.refusals
        if not _NAME.match(node.name):
            message = "names have 1 to 64 letters (a–z), digits and underscores"
            self.refuse(
                "function-name",
                f"`{node.name}` cannot be sent to a model: {message}",
                node,
                "rename the function",
            )
        if caller := caller_of(node.name):
            message = f"`{node.name}` cannot be offered: {caller} calls it by that name, outside of the sandbox"
            self.refuse(
                "function-name", message, node, f"rename the function, say to `my_{node.name}`"
            )
        if self.refusals > refusals_before:
            return None
        text = ast.get_docstring(node, clean=False)
        described = docstring.read(text)
        plain = [*node.args.posonlyargs, *node.args.args]
        missing: list[ast.expr | None] = [None] * (len(plain) - len(node.args.defaults))
        arguments = [*zip(plain, [*missing, *node.args.defaults], strict=True)]
        arguments += zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        takes_self = bool(plain) and plain[0].arg == "self"
        parameters, unresolved = self.parameters(node, arguments[takes_self:], described)
        if self.refusals > refusals_before:
            return None
        calls = examples.read(text or "", self.lines, node.body[0].lineno, self.source.path)
        if isinstance(calls, Problem):
            self.problems.append(calls)
            calls = ()
        start = first_line(node)
        end = node.end_lineno or node.lineno
        return Function(
            name=node.name,
            module=self.source.module,
            path=self.source.path,
            line=start,
            end_line=end,
            description=described.text,
            parameters=parameters,
            is_async=isinstance(node, ast.AsyncFunctionDef),
            takes_self=takes_self,
            returns=ast.unparse(node.returns) if node.returns else "",
            unresolved=unresolved,
            version=self.source.version,
            body_hash=hashlib.sha256(
                "".join(self.lines[start - 1 : end]).encode("utf-8", "replace")
            ).hexdigest(),
            examples=calls,
            rest=_rest_parameter(node.args.vararg, parameters),
            extra=_rest_parameter(node.args.kwarg, parameters),
        )

    def parameters(
        self,
        node: Definition,
        arguments: list[tuple[ast.arg, ast.expr | None]],
        described: "Described",
    ) -> tuple[Schema, tuple[str, ...]]:
        """Return the schema of the arguments' object, and the parameters whose types only an import can resolve."""
        name, properties = node.name, Schema()
        self.converter.definitions = {}
        unresolved = []
        required = []
        for argument, default in arguments:
            schema = self.typed(name, argument, default)
            settled = default_of(default, self.scope)
            if settled.is_required:
                settled = annotated_default(argument.annotation, self.scope) or settled
            if settled.is_required:
                required.append(argument.arg)
            if schema is _UNPASSABLE:
                continue
            if schema is None:
                unresolved.append(argument.arg)
                schema = texts(argument.annotation, default, self.scope)
            properties[argument.arg] = {
                **self.described(name, argument, schema, described),
                **settled.shown,
            }
        properties = self.variadic(node, properties, described, unresolved)
        known = {"self", *properties, *(argument.arg for argument, _ in arguments)}
        for documented in described.parameters:
            if documented not in known:
                message = (
                    f"the docstring of `{name}` describes `{documented}`, which is not a parameter"
                )
                at = arguments[0][0] if arguments else self.scope.definitions[name]
                self.warn("unknown-parameter", message, at, "rename the entry, or remove it")
        parameters: Schema = {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
        if self.converter.definitions:
            parameters["$defs"] = self.converter.definitions
        return parameters, tuple(unresolved)

    def variadic(
        self, node: Definition, properties: Schema, described: "Described", unresolved: list[str]
    ) -> Schema:
        """Return the properties with `*args` inserted before the keyword-only ones, and `**kwargs` at the end."""
        schemas: Schema = {}
        for argument, schema, part in (
            (node.args.vararg, _REST, "items"),
            (node.args.kwarg, _EXTRA, "additionalProperties"),
        ):
            typed = self.typed(node.name, argument, ast.Constant(None)) if argument else _UNPASSABLE
            if argument is not None and typed is not _UNPASSABLE:
                words = described.parameters.get(argument.arg) or schema["description"]
                schemas[argument.arg] = {**schema, "description": words}
                if typed is None:
                    unresolved.append(argument.arg)
                else:
                    schemas[argument.arg][part] = typed
        own = {argument.arg for argument in node.args.kwonlyargs} if schemas else set[str]()
        before = {name: schema for name, schema in properties.items() if name not in own}
        rest = {
            name: schema
            for name, schema in schemas.items()
            if node.args.vararg and name == node.args.vararg.arg
        }
        return {**before, **rest, **properties, **schemas}

    def typed(self, name: str, argument: ast.arg, default: ast.expr | None) -> Schema | None:
        """Return the schema of a parameter, limited by a `Field(…)` default; None if only an import can resolve it."""
        annotation = argument.annotation
        if annotation is None:
            message = f"parameter `{argument.arg}` of `{name}` has no type, so the model may pass anything"
            shown = json_literal(default) if default is not None else None
            kind = type(shown.value).__name__ if shown is not None else ""
            suggested = (
                f"`{argument.arg}: {kind}`, as its default is"
                if kind in _PLAIN
                else f"`{argument.arg}: …`"
            )
            self.warn("no-type", message, argument, f"write its type: {suggested}")
        try:
            return self.limited(annotation, default)
        except Unresolved:
            self.open += [node for node in (annotation, default) if node is not None]
            return None
        except Impossible as error:
            message = f"parameter `{argument.arg}` of `{name}`: {error}, so no model can pass it"
            if default is not None:
                fix = "leave it out, or take text, numbers, lists or dictionaries"
                self.warn(
                    "unpassable-parameter", f"{message}, and it keeps its default", argument, fix
                )
                return _UNPASSABLE
            self.refuse(
                "inexpressible-type", message, argument, "take text, numbers, lists or dictionaries"
            )
            return {}

    def limited(self, annotation: ast.expr | None, default: ast.expr | None) -> Schema:
        schema = dict(self.converter.convert(annotation)) if annotation is not None else {}
        if isinstance(default, ast.Call) and field_default(default, self.scope):
            return limit(schema, default, self.scope)
        if annotation is not None and default is not None and self.is_borrowed(default):
            raise Unresolved("the default is a value of another module")
        return schema

    def described(
        self, name: str, argument: ast.arg, schema: Schema, described: "Described"
    ) -> Schema:
        text = described.parameters.get(argument.arg) or schema.get("description")
        if text:
            return {**schema, "description": text}
        message = f"parameter `{argument.arg}` of `{name}` has no description, so the model would have to guess it"
        fix = f'add `{argument.arg}: …` under `Args:`, or write `{argument.arg}: Annotated[…, "…"]`'
        self.warn("undescribed-parameter", message, argument, fix)
        return schema

    def place(self, node: ast.arg | ast.expr | Definition) -> Place:
        line = self.lines[node.lineno - 1] if node.lineno <= len(self.lines) else ""
        column = (
            len(line.encode("utf-8", "surrogatepass")[: node.col_offset].decode("utf-8", "replace"))
            + 1
        )
        return Place(self.source.path, node.lineno, column)

    def refuse(self, code: str, message: str, node: ast.arg | Definition, fix: str) -> None:
        self.refusals += 1
        self.problems.append(Problem(code, message, self.place(node), fix))

    def warn(self, code: str, message: str, node: ast.arg | Definition, fix: str) -> None:
        self.problems.append(Problem(code, message, self.place(node), fix, "warns"))


def _rest_parameter(argument: ast.arg | None, parameters: Schema) -> str:
    return argument.arg if argument and argument.arg in parameters["properties"] else ""


def read_methods(
    of: type, beyond: type = object
) -> tuple[tuple[Function, ...], tuple[Problem, ...]]:
    """Return the functions for the public methods of a class, inherited ones first, and the problems found.

    `beyond` and its base classes are left out.
    """
    functions_by_name: dict[str, Function] = {}
    problems: list[Problem] = []
    for cls in reversed([base for base in of.__mro__ if base not in beyond.__mro__]):
        functions, wrong = _methods_of(cls)
        functions_by_name |= {function.name: function for function in functions}
        problems += wrong
    methods = [
        function
        for function in functions_by_name.values()
        if inspect.isfunction(inspect.getattr_static(of, function.name))
    ]
    return tuple(methods), tuple(problems)


def _methods_of(of: type) -> tuple[tuple[Function, ...], tuple[Problem, ...]]:
    try:
        text = inspect.getsource(sys.modules[of.__module__])
    except (OSError, TypeError, KeyError) as error:
        raise UsageError(
            f"The source of the class `{of.__qualname__}` is not at hand, so its methods cannot be described.",
            fix="Put the class into a file that can be imported.",
        ) from error
    module = ".".join(part.strip("_") or "main" for part in of.__module__.split("."))
    source = ModuleSource.of(module, text, inspect.getsourcefile(of) or module)
    tree = parse(source, _CLASS_LIMIT)
    if isinstance(tree, Problem):
        return (), (tree,)
    node: ast.AST = tree
    for name in of.__qualname__.split("."):
        if name != "<locals>":  # the class may be defined in a function
            inner = [part for part in ast.walk(node) if isinstance(part, ast.ClassDef | Definition)]
            node = next((part for part in inner if part is not node and part.name == name), node)
    if not isinstance(node, ast.ClassDef):
        raise UsageError(
            f"The class `{of.__qualname__}` does not stand in the source of `{of.__module__}`."
        )
    names = survey(tree)
    methods = [  # that a model may call: without pydantic validators, properties and class methods
        method
        for method in survey(ast.Module(node.body, [])).public()
        if not any(
            (origin := names.origin(callee(mark))).startswith("pydantic.") or origin in _OTHER_KINDS
            for mark in method.decorator_list
        )
    ]
    # The module with the methods in place of its functions, so that imports and types keep their meaning.
    around = [
        part
        for part in tree.body
        if not isinstance(part, Definition) and bound_names(part) != {"__all__"}
    ]
    reading = read_module(source, _CLASS_LIMIT, tree=ast.Module([*around, *methods], []))
    problems = [*reading.problems]
    for function in reading.functions:
        if (
            function.rest or function.extra
        ):  # without a worker, nothing spreads them in a method call
            name = f"*{function.rest}" if function.rest else f"**{function.extra}"
            message = f"the method `{function.name}` takes `{name}`, which a model cannot pass"
            where = Place(function.path, function.line)
            fix = "Name each parameter, or take one list or dictionary."
            problems.append(Problem("star-parameter", message, where, fix))
    return reading.functions, tuple(problems)


@dataclass(frozen=True, slots=True)
class Signature:
    """The name and description of a function, its parameters as `type` or `type = default`, and its result."""

    name: str
    description: str
    inputs: Mapping[str, str]
    result: str


def read_signature(
    signature: Signature, module: str, path: str, place: PlaceOf
) -> Function | tuple[Problem, ...]:
    """Return the function that a signature describes, or every problem with it."""
    parameters: list[str] = []
    problems: list[Problem] = []
    for name, written in signature.inputs.items():
        parameter = _input(name, written, place(name))
        (problems if isinstance(parameter, Problem) else parameters).append(parameter)  # type: ignore[arg-type]  # by kind
    result = _input("result", signature.result, place("result"))
    if isinstance(result, str) and "=" in signature.result:
        (node,) = syntax.parse(f"_: {signature.result}").body
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            message = "`result` has a default, which no result has"
            result = Problem("inexpressible-type", message, place("result"), _TYPE_FIX)
    if isinstance(result, Problem):
        return (*problems, result)
    if problems:
        return tuple(problems)
    returns = result.partition(": ")[2]
    stars = "*, " if parameters else ""
    text = f"{_SIGNATURE_IMPORTS}\n\ndef {signature.name}({stars}{', '.join(parameters)}) -> {returns}:\n    pass\n"
    read = read_module(ModuleSource.of(module, text, path))
    own = next((function for function in read.functions if function.name == signature.name), None)
    refusing = [problem for problem in read.problems if problem.severity == "refuses"]
    if own is None:
        named = [
            [name for name in signature.inputs if f"`{name}`" in problem.message]
            for problem in refusing
        ]
        places = [place(names[0] if names else "purpose") for names in named]
        return tuple(
            replace(problem, where=where) for problem, where in zip(refusing, places, strict=True)
        )
    if unread := own.unresolved:
        return tuple(_unreadable(name, signature.inputs[name], place(name)) for name in unread)
    return replace(
        own, description=signature.description, returns=returns, line=place("purpose").line
    )


def _input(name: str, written: str, place: Place) -> str | Problem:
    """Return a parameter as source, after checking that it is only one expression and one literal."""
    shown = one_line(name, 80)
    if not _INPUT_NAME.fullmatch(name) or keyword.iskeyword(name) or name == "self":
        message = f"`{shown}` cannot be the name of an input"
        return Problem(
            "input-name", message, place, "use letters, digits and `_`, beginning with a letter"
        )
    try:
        body = syntax.parse(f"_: {written}").body if len(written) <= _LONGEST_INPUT else []
    except SyntaxError:
        body = []
    match body:
        case [ast.AnnAssign(annotation=annotation, value=None)]:
            return f"{name}: {ast.unparse(annotation)}"
        case [ast.AnnAssign(annotation=annotation, value=default)] if (
            default is not None and is_literal(default)
        ):
            return f"{name}: {ast.unparse(annotation)} = {ast.unparse(default)}"
    return _unreadable(name, written, place)


def _unreadable(name: str, written: str, place: Place) -> Problem:
    message = f"`{one_line(written, 120)}` is not a type that `{one_line(name, 80)}` can have"
    return Problem("inexpressible-type", message, place, _TYPE_FIX)
