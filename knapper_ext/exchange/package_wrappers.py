"""Functions of a package from the index: the package is granted, and each function gets a thin wrapper.

A worker with the package reports the signatures. The report is untrusted: only names, literals, built-in types and a
line of description are used.
"""

import ast
import keyword
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

from agent_core.access.grants import Grants, Question
from agent_core.access.grants.content import content_of
from agent_core.base import syntax
from agent_core.base.errors import UsageError
from agent_core.base.untrusted import one_line
from agent_core.functions.service.file_sync import require_same
from agent_core.registry.source import ModuleSource, is_literal
from sandbox import FunctionCall, Job, Raised, Returned
from sandbox.wire.lines import bare_lines

from .library import ImportedFunction, ImportReport, ImportRequest, import_library
from .library_files import fitting

if TYPE_CHECKING:
    from agent_core.functions.service import FunctionService

_LOOK: Final = """
import importlib
import inspect


def look(names):
    return [_of(*name.rpartition(".")) for name in names]


def _of(module, _, name):
    function = getattr(importlib.import_module(module), name)
    signature = inspect.signature(function)
    parameters = [[each.name, each.kind.name, _shown(each.annotation), _default(each.default)]
                  for each in signature.parameters.values()]
    return [parameters, _shown(signature.return_annotation), inspect.getdoc(function) or ""]


def _default(value):
    return "" if value is inspect.Parameter.empty else repr(value)


def _shown(hint):
    return hint if isinstance(hint, str) else "" if hint is inspect.Parameter.empty else inspect.formatannotation(hint)
"""
_TYPES: Final = frozenset({"str", "int", "float", "bool", "bytes", "list", "dict", "tuple", "set"})
_TYPING: Final = (
    "Any",
    "Dict",
    "Iterable",
    "List",
    "Literal",
    "Mapping",
    "Optional",
    "Sequence",
    "Union",
)
_MAX_DESCRIPTION: Final = 300  # characters of a description
_DRY: Final = "Leave out --dry-run: you are shown what would be installed, and asked."
_LOOKS: Final = TypeAdapter(list[tuple[list[tuple[str, str, str, str]], str, str]])
_PARSED: Final = (
    ast.Name,
    ast.Constant,
    ast.Subscript,
    ast.Tuple,
    ast.List,
    ast.BinOp,
    ast.BitOr,
    ast.Load,
)


async def wrap(
    service: "FunctionService",
    request: ImportRequest,
    names: Sequence[str],
    agrees: Callable[[Question], Awaitable[bool]] | None,
    tell: Callable[[ImportedFunction], None],
) -> ImportReport | None:
    """Grant the package in `request.path`, and import a wrapper of each `module.function`; None if `agrees` said no.

    Raises:
        UsageError: a function does not exist, or its signature is not available.
        WorkspaceError: the package cannot be granted or installed.
    """
    requirement = str(request.path)
    grants = service.grants.wanted({"packages": (requirement,)})
    packages = service.granting.packages
    shown = ", ".join(name.rpartition(".")[2] for name in names)
    if request.dry_run and packages.needs_install(grants):
        raise UsageError(
            f"{requirement} is not installed, and before it is nothing can be told.", fix=_DRY
        )
    if not request.dry_run:
        question = Question.of_text(shown, "\n".join(names), "grant", grants)
        question = await service.granting.explained(question, grants)
        if agrees is not None and not await agrees(question):
            return None
        await packages.install(grants)
    text = await _text(service, grants, names)
    module = fitting(re.split(r"[^\w.-]", requirement)[0].lower())
    module_request = replace(request, path=Path(f"{module}.py"), text=text)
    report = await import_library(service, module_request, tell, lambda _: None)
    snapshot = service.registry.snapshot()
    written = {module.module: module.version for module in report.modules}
    for function in report.functions:
        if function.outcome in ("joined", "fixed") and not request.dry_run:
            require_same(
                function.name, written[function.module], snapshot.modules[function.module].version
            )
            content = content_of(snapshot.functions[function.name], snapshot)
            await service.grants.grant(function.name, grants, version=content.digest)
    return report


async def _text(service: "FunctionService", grants: Grants, names: Sequence[str]) -> str:
    """Return the module with the wrappers, made from the signatures that a worker reports."""
    source = ModuleSource.of("wrapped", _LOOK)
    access = service.granting.packages.together([grants]).access
    call = FunctionCall("look", {"names": [*names]})
    outcome = await service.parts.sandbox().run(
        Job({"wrapped": source}, "wrapped", call, access=access)
    )
    try:
        looks = _LOOKS.validate_python(outcome.value if isinstance(outcome, Returned) else None)
    except ValidationError as error:
        said = outcome.failure.message if isinstance(outcome, Raised) else type(outcome).__name__
        message = f"It cannot be told how {', '.join(names)} can be called: {said[:300]}."
        raise UsageError(
            message, fix="Name each as MODULE.FUNCTION, such as slugify.slugify."
        ) from error
    if len(looks) != len(names):
        raise UsageError(
            f"The package {grants.packages[0]} answered for others than {', '.join(names)}."
        )
    wrappers = [_wrapper(name, *look) for name, look in zip(names, looks, strict=True)]
    words = {
        word for wrapper in wrappers for word in re.findall(r"\w+", wrapper.partition('"""')[0])
    }
    imported = [name for name in _TYPING if name in words]
    head = [f"from typing import {', '.join(imported)}\n"] if imported else []
    return "\n\n".join([*head, *wrappers])


def _wrapper(
    target: str, parameters: list[tuple[str, str, str, str]], returned: str, description: str
) -> str:
    """Return a function that passes its arguments on.

    A parameter whose default cannot be written is left out, as are those after it that would take its place.
    """
    module, _, name = target.rpartition(".")
    taken = list[str]()
    passed = list[str]()
    has_gap = False
    in_order = any(kind == "VAR_POSITIONAL" for _, kind, *_ in parameters)
    for word, kind, hint, default in parameters:
        _require_name(word)
        value = _expression_text(default, is_literal)
        if (default and not value) or (has_gap and kind in ("POSITIONAL_ONLY", "VAR_POSITIONAL")):
            has_gap = True
        elif kind.startswith("VAR_"):
            taken.append(f"{'*' if kind == 'VAR_POSITIONAL' else '**'}{word}")
            passed.append(taken[-1])
        else:
            if kind == "KEYWORD_ONLY" and not any(each.startswith("*") for each in taken):
                taken.append("*")
            annotation = _expression_text(hint, _is_type)
            taken.append(
                word + (f": {annotation}" if annotation else "") + (f" = {value}" if value else "")
            )
            is_placed = kind == "POSITIONAL_ONLY" or (
                in_order and not has_gap and kind == "POSITIONAL_OR_KEYWORD"
            )
            passed.append(word if is_placed else f"{word}={word}")
    result = _expression_text(returned, _is_type)
    first = next(
        iter(bare_lines(description.strip().replace("\r", "\n"))), ""
    )  # a lone \r also ends a line
    words = (
        ""
        if ">>>" in first
        else one_line(first, _MAX_DESCRIPTION).replace("\\", "/").replace('"', "'")
    )
    arrow = f" -> {result}" if result else ""
    return f'''def {_require_name(name)}({", ".join(taken)}){arrow}:
    """{words or f"Call `{target}`."}"""
    from {".".join(map(_require_name, module.split(".")))} import {name} as _{name}

    return _{name}({", ".join(passed)})
'''


def _require_name(word: str) -> str:
    if not word.isidentifier() or keyword.iskeyword(word):
        raise UsageError(f"{word[:80]!r} is no name.", fix="Name each function as MODULE.FUNCTION.")
    return word


def _expression_text(text: str, is_fit: Callable[[ast.expr], bool]) -> str:
    """Return the normalized text of an expression, or an empty text if it is not allowed."""
    try:
        node = syntax.parse(text, "", "eval")
        return ast.unparse(node) if isinstance(node, ast.Expression) and is_fit(node.body) else ""
    except SyntaxError:
        return ""


def _is_type(node: ast.expr) -> bool:
    """Check that a hint only uses built-in types. Strings are only allowed with a `Literal`: others are evaluated."""
    inner = [*ast.walk(node)]
    names = {part.id for part in inner if isinstance(part, ast.Name)}
    has_text = any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in inner)
    is_fit = all(isinstance(part, _PARSED) for part in inner) and names <= {*_TYPES, *_TYPING}
    return is_fit and not (has_text and "Literal" not in names)
