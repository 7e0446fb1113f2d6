"""A module's text → the functions it offers, and every problem that keeps others out. Nothing is run."""

import ast
import hashlib
import re

from sandbox.lines import lines_of

from ..problem import Place, Problem
from . import docstring, examples
from .annotation import Budget, Converter
from .collected import caller_of
from .docstring import Described
from .function import Function, Reading
from .literals import json_literal
from .source import MODULE_LIMIT, Source, is_helper, parse
from .tree import Definition, Scope, survey, workspace_imports
from .typenames import Impossible, Schema, Unresolved

_NAME = re.compile(r"^[a-zA-Z0-9_]{1,64}$")


def read_module(source: Source, limit: int = MODULE_LIMIT, *, tree: ast.Module | None = None) -> Reading:
    """The functions that a module offers, and every problem that keeps others out; `tree` saves parsing it again."""
    parsed = tree or parse(source, limit)
    if isinstance(parsed, Problem):
        return Reading(source, (), (parsed,), (), parsed=False)
    try:
        return _Reader(source, survey(parsed)).read(parsed)
    except RecursionError:
        what = "the code is nested too deeply to be read"
        problem = Problem("too-deep", what, Place(source.path), "split long expressions and nested types")
        return Reading(source, (), (problem,), (), parsed=False)


class _Reader:
    """Reads one module; collects its problems on the way."""

    def __init__(self, source: Source, scope: Scope) -> None:
        self.source, self.scope = source, scope
        self.lines = lines_of(source.text)
        self.problems: list[Problem] = []
        self.refusals = 0
        self.budget = Budget()

    def read(self, tree: ast.Module) -> Reading:
        for earlier, later in self.scope.redefined:
            what = f"`{later.name}` is defined again, so the one on line {earlier.lineno} is lost"
            self.warn("redefined", what, later, "remove or rename one of the two")
        nodes = [] if is_helper(self.source.module) else self.scope.public()
        found = tuple(function for node in nodes if (function := self.function(node)) is not None)
        is_package = self.source.path.endswith("/__init__.py")
        imports = workspace_imports(tree, self.source.text, self.source.module, is_package=is_package)
        return Reading(self.source, found, tuple(self.problems), imports)

    def function(self, node: Definition) -> Function | None:
        """One function, or None when it cannot be offered; the reason is among the problems."""
        reasons = _cannot_be_offered(node)
        for reason in reasons:
            self.refuse(*reason)
        if reasons:
            return None
        text = ast.get_docstring(node, clean=False)
        described = docstring.read(text)
        takes_self, arguments = _without_self(node.args)
        refusals_before = self.refusals
        parameters, unresolved = self.parameters(node.name, arguments, described)
        if self.refusals > refusals_before:
            return None
        start = min([node.lineno, *(one.lineno for one in node.decorator_list)])
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
            returns=_shown(node.returns),
            unresolved=unresolved,
            version=self.source.version,
            body_hash=hashlib.sha256("".join(self.lines[start - 1 : end]).encode("utf-8", "replace")).hexdigest(),
            examples=self.examples(node, text),
        )

    def examples(self, node: Definition, text: str | None) -> tuple[examples.Example, ...]:
        if text is None or ">>>" not in text:
            return ()
        found = examples.read(text, self.lines, node.body[0].lineno, self.source.path)
        if isinstance(found, Problem):
            self.problems.append(found)
            return ()
        return found

    def parameters(
        self, name: str, arguments: list[tuple[ast.arg, ast.expr | None]], described: Described
    ) -> tuple[Schema, tuple[str, ...]]:
        """The schema of the arguments' object, and the parameters whose type only an import can tell."""
        converter = Converter(self.scope, self.budget)
        properties: Schema = {}
        unresolved = []
        for argument, default in arguments:
            schema = self.typed(name, argument, converter)
            if schema is None:
                unresolved.append(argument.arg)
                schema = {}
            properties[argument.arg] = self.described(name, argument, schema, described)
            shown = json_literal(default) if default is not None else None
            if shown is not None:
                properties[argument.arg]["default"] = shown.value
        self.check_documented(name, properties, described, arguments)
        parameters: Schema = {
            "type": "object",
            "properties": properties,
            "required": [argument.arg for argument, default in arguments if default is None],
            "additionalProperties": False,
        }
        if converter.definitions:
            parameters["$defs"] = converter.definitions
        return parameters, tuple(unresolved)

    def typed(self, name: str, argument: ast.arg, converter: Converter) -> Schema | None:
        if argument.annotation is None:
            what = f"parameter `{argument.arg}` of `{name}` has no type, so the model may pass anything"
            self.warn("no-type", what, argument, f"write a type: `{argument.arg}: str`, say")
            return {}
        try:
            return dict(converter.convert(argument.annotation))
        except Unresolved:
            return None
        except Impossible as error:
            what = f"parameter `{argument.arg}` of `{name}`: {error}, so no model can pass it"
            self.refuse("inexpressible-type", what, argument, "take text, numbers, lists or dictionaries")
            return {}

    def described(self, name: str, argument: ast.arg, schema: Schema, described: Described) -> Schema:
        text = described.parameters.get(argument.arg) or schema.get("description")
        if text:
            return {**schema, "description": text}
        what = f"parameter `{argument.arg}` of `{name}` has no description, so the model would have to guess it"
        mend = f'add `{argument.arg}: …` under `Args:`, or write `{argument.arg}: Annotated[…, "…"]`'
        self.warn("undescribed-parameter", what, argument, mend)
        return schema

    def check_documented(
        self, name: str, properties: Schema, described: Described, arguments: list[tuple[ast.arg, ast.expr | None]]
    ) -> None:
        for documented in described.parameters:
            if documented not in properties and documented != "self":
                what = f"the docstring of `{name}` describes `{documented}`, which is not a parameter"
                at = arguments[0][0] if arguments else self.scope.definitions[name]
                self.warn("unknown-parameter", what, at, "rename the entry, or remove it")

    def place(self, node: ast.arg | ast.expr | Definition) -> Place:
        line = self.lines[node.lineno - 1] if node.lineno <= len(self.lines) else ""
        column = len(line.encode("utf-8", "surrogatepass")[: node.col_offset].decode("utf-8", "replace")) + 1
        return Place(self.source.path, node.lineno, column)

    def refuse(self, code: str, what: str, node: ast.arg | Definition, mend: str) -> None:
        self.refusals += 1
        self.problems.append(Problem(code, what, self.place(node), mend))

    def warn(self, code: str, what: str, node: ast.arg | Definition, mend: str) -> None:
        self.problems.append(Problem(code, what, self.place(node), mend, "warns"))


def _shown(annotation: ast.expr | None) -> str:
    if annotation is None:
        return ""
    return annotation.id if isinstance(annotation, ast.Name) else ast.unparse(annotation)


def _without_self(arguments: ast.arguments) -> tuple[bool, list[tuple[ast.arg, ast.expr | None]]]:
    """Whether the function takes the call's context, and its other parameters with their defaults."""
    plain = arguments.args
    missing: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    pairs = [*zip(plain, [*missing, *arguments.defaults], strict=True)]
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    takes_self = bool(plain) and plain[0].arg == "self"
    return takes_self, pairs[takes_self:]


def _cannot_be_offered(node: Definition) -> list[tuple[str, str, ast.arg | Definition, str]]:
    """Why a model cannot call a function: code, what, where, mend."""
    found: list[tuple[str, str, ast.arg | Definition, str]] = []
    if not _NAME.match(node.name):
        what = f"`{node.name}` cannot be sent to a model: names have 1 to 64 letters (a–z), digits and underscores"
        found.append(("function-name", what, node, "rename the function"))
    if caller := caller_of(node.name):
        what = f"`{node.name}` cannot be offered: {caller} calls it by that name, outside of the sandbox"
        found.append(("function-name", what, node, f"rename the function, say to `my_{node.name}`"))
    for star, argument in (("*", node.args.vararg), ("**", node.args.kwarg)):
        if argument is not None:
            what = f"`{node.name}` takes `{star}{argument.arg}`, which a schema cannot describe"
            found.append(("star-parameter", what, argument, "name each parameter, or take one list or dictionary"))
    for argument in node.args.posonlyargs:
        what = f"parameter `{argument.arg}` of `{node.name}` is positional-only, and models pass arguments by name"
        found.append(("positional-only", what, argument, "remove the `/`"))
    return found
