"""The stage "capability": compares the grants that a function needs with those that it has.

`reach` describes the same for people, in a few words.
"""

import ast
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeGuard

from agent_core.access.grants import NOTHING, Grants
from agent_core.access.grants.value import KINDS, UNSAID, joined, modules_of_workspace, spelled
from agent_core.base.problem import Problem
from agent_core.base.syntax import tree_room
from agent_core.base.untrusted import one_line
from agent_core.registry.approved import ApprovedModule, approved_parts, without_unused_imports
from agent_core.registry.depends import (
    Part,
    callees,
    callers,
    is_program,
    mentioned_outside,
    running_with,
)
from agent_core.registry.source import FOLDER, first_line, is_literal
from agent_core.registry.tree import imported_module, survey
from sandbox.wire.lines import kept_lines
from sandbox.wire.statements import StatementPart

from .draft import D, Draft, Finding
from .tree import (
    FunctionNode,
    bound_names,
    context_nodes,
    is_given_self,
    is_self,
    missing_names,
    nodes_of,
    parse,
)
from .uses import (
    CONTEXT,
    FIXES,
    Use,
    files_of_parameters,
    gives_text,
    gives_text_to_packages,
    is_in,
    local_names,
    needs_of,
    use_of,
    uses,
)

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

    from .draft import Way

STAGE = "capability"
EFFECTS = frozenset({"call", "fetch", "secret", "memory", "now"})


def capability(draft: D) -> D:
    """Return the draft with its needs, and findings about uses that are not granted."""
    if draft.tree is None:
        return draft.skip("the code could not be read")
    own = modules_of_workspace(draft.snapshot, draft.granted)
    all_uses = [
        *uses(draft.tree, draft.rules.packages, draft.guarded, own),
        *_through_names(draft, own),
    ]
    missing = _missing(all_uses, draft.granted)
    is_asked = all(use.kind for use in missing)  # otherwise no human can allow it
    draft = replace(draft, needs=needs_of(all_uses))
    is_due_later = _waits_for_a_call(draft, missing)
    is_imported = draft.policy == "import" and draft.approval_mode == "absent"
    way = "importing" if is_imported or is_due_later else draft.approval_mode
    lines = [use.finding.line for use in missing] if is_asked and not is_due_later else []
    draft = replace(draft, asking=tuple(dict.fromkeys(lines)))
    return draft.with_findings(STAGE, lacking(missing, draft.granted, way), is_mild=is_due_later)


def _waits_for_a_call(draft: Draft, missing: Iterable[Use]) -> bool:
    """Check whether a candidate lacks packages alone, and its call asks anyway: to write a file that it is given.

    Without an example, nothing of it runs before. Types that its text leaves open, and functions that call it, need an
    import. What only reads asks as it joins: its calls may have a folder without a question.
    """
    function = draft.own_function
    name = draft.candidate.name
    files = files_of_parameters(draft.tree, name) if isinstance(draft.tree, ast.Module) else {}
    return (
        draft.approval_mode == "joining"
        and {use.kind for use in missing} == {"packages"}
        and function is not None
        and not (draft.examples or function.unresolved or callers(name, draft.snapshot))
        and any(file.writes for file in files.values())
    )


def _through_names(draft: D, own: frozenset[str]) -> Iterator[Use]:
    """Yield what a candidate needs because of other code of the workspace, which runs in its process.

    That is all that the functions need which it calls by their names, at the line that names the first one; and the
    packages that its own module imports at its top for it or for all, at the candidate's first line.
    """
    known = (*draft.rules.packages, *sorted(own))
    found = [*_through_calls(draft, known)]
    # Usually its own module imports none, which saves composing it.
    if (
        draft.function is not None
        and draft.around is not None
        and imported_at_the_top(draft.around.text, known)
    ):
        text, present = draft.placed, imported_at_the_top(draft.text, draft.rules.packages)
        module = draft.candidate.module
        served, for_all = (
            ()
            if isinstance(text, Problem)
            else uses_at_import(text_with((module, name), text), known)
            for name in (draft.candidate.name, _AT_IMPORT)
        )
        always = {use.item for use in for_all}
        found = [use for use in found if use.kind != "packages" or use.item not in always]
        named = {use.item for use in found if use.kind == "packages"}
        for use in served:
            if use.kind == "packages" and use.item not in present | named:
                message = (
                    f"module `{module}`, which it joins, needs the grant `packages` ({use.item})"
                )
                yield replace(
                    use,
                    finding=replace(
                        use.finding, message=message, line=draft.function.lineno, column=0
                    ),
                )
    yield from found


def _through_calls(draft: D, known: tuple[str, ...]) -> Iterator[Use]:
    if not isinstance(draft.tree, ast.Module) or not draft.candidate.name:
        return
    near = missing_names(draft.text, draft.tree) & draft.module_names
    node = next((node for node in nodes_of(draft.tree) if _is_of_others(node, near)), None)
    text = draft.placed if near else draft.text
    if node is None or isinstance(text, Problem):
        return
    texts = {module: source.text for module, source in draft.snapshot.modules.items()}
    function = draft.candidate.module, draft.candidate.name
    others = tuple(sorted({**texts, draft.candidate.module: text}.items()))
    needs = needs_of_others(function, others, known, draft.guarded, bound_names(draft.tree))
    own_needs = needs_of(uses(draft.tree, known, draft.guarded))
    missing = [(kind, item) for kind in KINDS for item in needs.items(kind)]
    missing = [
        (kind, item) for kind, item in missing if item == UNSAID or not own_needs.gives(kind, item)
    ]
    needing = (
        [each for each in nodes_of(draft.tree) if _is_of_others(each, near)] if missing else []
    )
    reached = [
        (each, _needs_by(each, function[0], others, known, draft.guarded)) for each in needing
    ]
    for kind, item in missing:
        cause = next((each for each, grants in reached if item in grants.items(kind)), node)
        yield use_of(kind, item, one_line(ast.unparse(cause), _LONGEST), cause)


def _needs_by(
    node: ast.Import | ast.ImportFrom | ast.Name,
    module: str,
    texts: tuple[tuple[str, str], ...],
    listed: tuple[str, ...],
    guarded: frozenset[str],
) -> Grants:
    """Return what other code of the workspace needs that this node of a candidate of a module names."""
    if isinstance(node, ast.Name):
        parts = [(module, node.id)]
    elif isinstance(node, ast.Import):
        parts = [(_inside(alias.name), "") for alias in node.names]
    else:
        base = _inside(imported_module(node.module or "", node.level, f"{FOLDER}.{module}"))
        parts = [
            part
            for alias in node.names
            for part in ((base, alias.name), (f"{base}.{alias.name}".lstrip("."), ""))
        ]
    return joined(needs_of_others(part, texts, listed, guarded, frozenset()) for part in parts)


def _inside(module: str) -> str:
    return module.removeprefix(FOLDER).lstrip(".")


def _is_of_others(
    node: ast.AST, near: Collection[str]
) -> TypeGuard[ast.Import | ast.ImportFrom | ast.Name]:
    """Check whether a node uses other code of the workspace: an import of it, or a name of its own module."""
    if isinstance(node, ast.Name):
        return node.id in near
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return False
    return bool(getattr(node, "level", 0)) or "functions" in ast.unparse(node)


@lru_cache(maxsize=512)
def needs_of_others(
    function_part: Part,
    texts: tuple[tuple[str, str], ...],
    listed: tuple[str, ...],
    guarded: frozenset[str] = frozenset(),
    own: frozenset[str] | None = None,
) -> Grants:
    """Return what a function needs because of other code in these modules, which runs in its process.

    That is the code of other modules, and if the function's `own` names are given, the rest of its module. What its
    examples use counts, too.
    """
    found = dict[str, dict[StatementPart, str]]()
    for (module, name), statements in approved_parts(
        function_part, texts, with_examples=True
    ).parts.items():
        if module != function_part[0] or (own is not None and name not in own):
            found.setdefault(module, {}).update((each.at, each.text) for each in statements)
    joint = ("\n".join(lines[at] for at in sorted(lines)) for lines in found.values())
    return joined(needs_of_text(text, listed, guarded) for text in joint)


def text_with(function_part: Part, text: str) -> str:
    """Return a module's text as it is imported for one of its functions: without the imports that others use."""
    module = ApprovedModule.of(text, function_part[0])
    if not module.is_reducible:
        return text
    parts = approved_parts(function_part, ((function_part[0], text),), with_examples=True)
    return without_unused_imports(text, module, {*parts.statements.get(function_part[0], ())})


def imported_at_the_top(text: str, listed: tuple[str, ...]) -> frozenset[str]:
    """Return the projects that importing a module with this text needs, whichever function is called."""
    return (
        frozenset(needs_of(uses_at_import(text, listed)).packages)
        if "import" in text
        else frozenset()
    )


@lru_cache(maxsize=512)
def uses_at_import(text: str, listed: tuple[str, ...]) -> tuple[Use, ...]:
    """Return the uses in statements that run when a module with this text is imported."""
    tree = parse(text)
    return (
        tuple(uses(ast.Module([*_running(tree.body)], []), listed))
        if isinstance(tree, ast.Module)
        else ()
    )


def _running(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run at import, without function bodies and `if __name__` blocks."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _running(node.body)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_program(node):
            yield node


def lacking(uses: Iterable[Use], grants: Grants, approval_mode: "Way" = "absent") -> list[Finding]:
    """Return the findings for uses that are not granted, with how the user is asked in the fix."""
    findings: dict[tuple[str, str | int], Finding] = {}
    for use in _missing(uses, grants):
        fix = FIXES[approval_mode].format(use.finding.fix) if use.kind else use.finding.fix
        key = (use.kind, use.item) if use.kind else (use.finding.code, use.finding.line)
        findings.setdefault(key, replace(use.finding, fix=fix))
    return list(findings.values())


def _missing(uses: Iterable[Use], grants: Grants) -> list[Use]:
    return [
        use
        for use in uses
        if not use.is_asked_later and not (use.kind and grants.gives(use.kind, use.item))
    ]


@tree_room.kept(64)
def uses_context(tree: ast.AST) -> frozenset[str]:
    """Return the attributes of `self` that a function uses: `call`, `progress`, `scratch`, …"""
    if isinstance(
        tree, ast.Module
    ):  # each statement is read once, however many functions it runs with
        return frozenset[str]().union(*map(_uses_of_statement, tree.body))
    return _uses_of_statement(tree)


@tree_room.kept(4096)
def _uses_of_statement(tree: ast.AST) -> frozenset[str]:
    attributes = [node for node in context_nodes(tree) if isinstance(node, ast.Attribute)]
    return frozenset(
        node.attr
        for node in attributes
        if isinstance(node.value, ast.Name) and node.value.id == "self"
    )


_REACHES = {  # by kind of grant: the phrase for items, and the phrase for items that the text does not name
    "network": ("fetches {}", "hosts that you name"),
    "read": ("reads {}", "files that you name"),
    "write": ("writes {}", "files that you name"),
    "secrets": ("uses the secret {}", "that you name"),
    "memory": ("changes the block {}", "that you name"),
    "packages": ("imports {}", "packages"),
    "functions": ("calls {}", "functions that it names as it runs"),
    "": ("uses {} of its module", ""),
}
_MOST_ITEMS = 3
_LONGEST = 160  # characters of an import that is shown
_AT_IMPORT: Final = "."  # a name that nothing has: only what runs for all of a module
_HARMLESS = frozenset(
    {"progress", "scratch", "state", "now", "call", "call_key", *CONTEXT}
)  # attributes of `self`; the last ones are reported as uses
_COMPUTING = """__future__ abc array ast base64 binascii bisect calendar cmath collections colorsys copy csv dataclasses
datetime decimal difflib enum fractions functools graphlib hashlib heapq hmac html io.BytesIO io.StringIO itertools json
keyword math numbers operator random re secrets statistics string struct textwrap time typing unicodedata urllib.parse
uuid.UUID uuid.uuid3 uuid.uuid4 uuid.uuid5 zlib zoneinfo"""
_OTHER_WAYS = """open eval exec compile input breakpoint globals locals vars getattr __import__ __builtins__ attrgetter
methodcaller get_type_hints Formatter singledispatch singledispatchmethod gi_frame cr_frame ag_frame tb_frame f_back
f_globals f_builtins f_locals"""
COMPUTING: Final = frozenset(_COMPUTING.split())
"""Modules, and names in modules, that open, start and evaluate nothing, except through one of the `OTHER_WAYS`."""
OTHER_WAYS: Final = frozenset(_OTHER_WAYS.split())
"""Names by which code can access more than its imports show."""
_PLAIN_DUNDERS = frozenset(
    {"__name__", "__qualname__", "__doc__", "__class__", "__init__", "__post_init__", "__len__"}
)
KEEPS_STATE: Final = "keeps a value between its calls"
_UNCERTAIN = "may ask as it runs"


def reach(text: str, grants: Grants = NOTHING) -> tuple[str, ...]:
    """Return short descriptions of what a function accesses apart from its arguments.

    They follow from its text and from `grants`, which it has or needs. The result is empty if it only computes: nothing
    in the text, its imports or the grants leads out of the sandbox.
    """
    tree = parse(text)
    if not isinstance(tree, ast.Module):
        return (_UNCERTAIN,)
    all_uses = uses(tree, ())
    grants |= needs_of(all_uses)
    called = called_by_self(tree)
    for node in nodes_of(tree):
        match node:
            case ast.ImportFrom(module=module, level=level, names=names) if level or _is_own(
                module or ""
            ):
                called |= {alias.name for alias in names}
            case ast.Import(names=names):
                called |= {alias.name for alias in names if _is_own(alias.name)}
    words = reach_of(grants, missing_names(text, tree), called)
    words = words or (
        (_UNCERTAIN,) if any(not use.kind for use in all_uses) or not _is_plain(tree) else ()
    )
    return (*words, KEEPS_STATE) if "state" in uses_context(tree) else words


@lru_cache(maxsize=8192)
def reach_in(module_text: str, name: str, grants: Grants = NOTHING) -> tuple[str, ...]:
    """Return what a function of a module accesses, including the imports, constants and helpers that it uses.

    The result is cached, so that listing functions reads each text once.
    """
    text = _text_running(module_text, name)
    return (_UNCERTAIN,) if text is None else reach(text, grants)


@lru_cache(maxsize=2048)
def _text_running(module_text: str, name: str) -> str | None:
    """Return the text of a function and of what it uses of its module; None if it cannot be parsed."""
    return _text_of_statements(module_text, name, frozenset())


@lru_cache(maxsize=2048)
def _text_reaching(module_text: str, name: str) -> str | None:
    """Return the text of a function and of what it uses of its module and is not quiet; None if it cannot be parsed."""
    return _text_of_statements(module_text, name, quiet_functions(module_text))


def _text_of_statements(module_text: str, name: str, without: frozenset[str]) -> str | None:
    if not isinstance(parse(module_text), ast.Module):
        return None
    lines = kept_lines(module_text)
    try:
        statements = running_with(module_text, name, without)
    except RecursionError:  # nested too deeply to be parsed
        return None
    # Statements that share a line count once.
    spans = dict.fromkeys(
        (first_line(statement) - 1, statement.end_lineno) for statement in statements
    )
    return "".join("".join(lines[start:end]).rstrip("\n") + "\n" for start, end in spans)


@lru_cache(maxsize=64)
def quiet_functions(text: str) -> frozenset[str]:
    """Return the functions of a module that reach nothing by themselves, so nobody needs to read them again for others.

    Each shows it by its own text: it does nothing with its `self` but hand it to other functions of its module, which
    are read for themselves; it shares nothing, and all that it reads of its module are other functions, imports that
    only compute, and literals. If each function of a file calls the one above, reading all that run with each would
    take the square.
    """
    tree = parse(text)
    if not isinstance(tree, ast.Module):
        return frozenset()
    functions = [node for node in tree.body if isinstance(node, FunctionNode)]
    imports = dict[str, ast.stmt]()
    others = {
        name for node in nodes_of(tree) if isinstance(node, ast.Global) for name in node.names
    }
    for node in tree.body:
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                bound = {alias.asname or alias.name.partition(".")[0] for alias in names}
                others |= bound & imports.keys()
                imports |= dict.fromkeys(bound, node)
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value) if is_literal(
                value
            ):
                pass
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                pass
            case _:
                others |= bound_names(ast.Module([node], []))
    others |= {
        name
        for name, count in Counter(node.name for node in functions).items()
        if count > 1 or name in imports
    }
    if "*" in imports:
        return frozenset()
    known = frozenset(node.name for node in functions) - others
    return frozenset(node.name for node in functions if _is_quiet(node, imports, others, known))


def _is_quiet(
    node: FunctionNode, imports: Mapping[str, ast.stmt], others: Set[str], known: Set[str]
) -> bool:
    nodes = nodes_of(node)
    names = {each.id for each in nodes if isinstance(each, ast.Name)}
    shares = any(isinstance(each, ast.Global) for each in nodes)
    if names & others or node.name in others or shares:
        return False
    handed = _handed_selves(node, known)
    if any(is_self(each) and id(each) not in handed for each in nodes):
        return False
    alone = ast.Module(
        [*dict.fromkeys(imports[name] for name in names if name in imports), node], []
    )
    return _is_plain(alone, handed) and not uses(alone, ())


def _handed_selves(node: FunctionNode, known: Set[str]) -> frozenset[int]:
    """Return the nodes, by ID, by which a function hands its `self` to one of these functions, by its plain name."""
    names = known - local_names(node)
    handed = set[int]()
    for call in nodes_of(node):
        if (
            isinstance(call, ast.Call)
            and is_given_self(call)
            and getattr(call.func, "id", "") in names
        ):
            handed.add(id(call.args[0]))
    return frozenset(handed)


def needs_of_callees(name: str, snapshot: "Snapshot") -> Grants:
    """Return the grants that the texts of the functions need that a function calls, directly or indirectly.

    What runs with a function includes those of its module that it calls by name, so these are not read again: of a
    chain, each would be read with all that are below it.
    """
    needs, waiting, seen, included = NOTHING, [name], {name}, set[tuple[str, str]]()
    while waiting:
        for callee in callees(waiting.pop(), snapshot):
            if callee in seen:
                continue
            seen.add(callee)
            module = snapshot.functions[callee].module
            if _needs_nothing(snapshot.modules[module].text, callee, snapshot):
                continue
            waiting.append(callee)
            if (module, callee) in included:
                continue
            text = _text_reaching(snapshot.modules[module].text, callee)
            needs |= needs_of_text(text) | _calls_elsewhere(text, snapshot) if text else NOTHING
            statements = running_with(snapshot.modules[module].text, callee) if text else ()
            included |= {
                (module, node.name) for node in statements if isinstance(node, FunctionNode)
            }
    return needs


def _needs_nothing(text: str, name: str, snapshot: "Snapshot") -> bool:
    """Check whether a function of a module is quiet, as is all that it leads to, and that is all in its module."""
    bits, words = mentioned_outside(text).get(name, (0, frozenset[str]()))
    return bool(bits) and not bits & ~_quiet_bits(text) and words.isdisjoint(snapshot.functions)


@lru_cache(maxsize=64)
def _quiet_bits(text: str) -> int:
    """Return the bits of the quiet functions in the order of `mentioned_outside`."""
    quiet = quiet_functions(text)
    return sum(1 << at for at, name in enumerate(mentioned_outside(text)) if name in quiet)


def _calls_elsewhere(text: str, snapshot: "Snapshot") -> Grants:
    """Return the calls of what is no function of the workspace: a helper, or a function of another program."""
    tree = parse(text)
    called = called_by_self(tree) if isinstance(tree, ast.Module) else set()
    return Grants(functions=tuple(name for name in called if name not in snapshot.functions))


Reached: TypeAlias = Literal["nothing", "this", "unknown"]
"""What a text reaches besides its arguments: nothing, what its grants say, or what only a call can tell."""


def reached_by(draft: Draft) -> Reached:
    """Return what a candidate reaches: by a grant that it has or needs, itself or by a function that it calls."""
    needs, tree = _all_needs(draft)
    if (draft.granted | needs).is_outward or may_open(draft):
        return "this"
    return "nothing" if tree is not None and _is_plain(tree) and not needs.packages else "unknown"


def may_keep(draft: Draft) -> bool:
    """Check whether a candidate may keep or read something without a use that its text shows.

    It has a state, or hands a text to a module that is not known to open nothing, such as `logging`.
    """
    _, tree = _all_needs(draft)
    if tree is None:
        return False
    return "state" in uses_context(tree) or gives_text(tree, COMPUTING | {FOLDER, ""})


def may_open(draft: Draft) -> bool:
    """Check whether a candidate may open a file or reach a host: itself, by a function, or by a package."""
    needs, tree = _all_needs(draft)
    if needs.read or needs.write or needs.network:
        return True
    return tree is not None and gives_text_to_packages(tree, draft.rules.packages)


def _all_needs(draft: Draft) -> tuple[Grants, ast.Module | None]:
    """Return the needs of a candidate with those of what it uses and calls, and the tree of what runs of its module."""
    name, snapshot = draft.candidate.name, draft.trial
    if snapshot is None or name not in snapshot.functions:
        return draft.needs, draft.tree
    text = _text_reaching(snapshot.modules[snapshot.functions[name].module].text, name)
    if text is None:
        return draft.needs, None
    needs = (
        draft.needs | needs_of_callees(name, snapshot) | needs_of_text(text, draft.rules.packages)
    )
    needs |= _calls_elsewhere(text, snapshot)
    tree = parse(text)
    return needs, tree if isinstance(tree, ast.Module) else None


def reach_of(
    grants: Grants, missing: Iterable[str] = (), called: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return short descriptions of what grants allow a function to access.

    `missing` are names that it uses of its module, and `called` are functions that it calls.
    """
    items = {kind: {*grants.items(kind)} for kind in KINDS} | {"": {*missing}}
    items["functions"] |= {*called}
    words = []
    for kind, found in items.items():
        shown, unsaid = _REACHES[kind]
        named = [spelled(item) for item in sorted(found) if item != UNSAID]
        more = [f"{len(named) - _MOST_ITEMS} more"] if len(named) > _MOST_ITEMS else []
        listed = [*named[:_MOST_ITEMS], *more, *([unsaid] if UNSAID in found else [])]
        words += [shown.format(", ".join(listed))] if found else []
    return tuple(words)


@lru_cache(maxsize=2048)
def needs_of_text(
    text: str, listed: tuple[str, ...] = (), guarded: frozenset[str] = frozenset()
) -> Grants:
    """Return the grants that a text visibly needs; packages in `listed` need none."""
    tree = parse(text)
    return needs_of(uses(tree, listed, guarded)) if isinstance(tree, ast.Module) else NOTHING


def _is_own(module: str) -> bool:
    return module.partition(".")[0] == FOLDER


def called_by_self(tree: ast.Module) -> set[str]:
    """Return the functions that are called by `self.call`; UNSAID represents one that the text does not name."""
    return set[str]().union(*map(_called_by_statement, tree.body))


@tree_room.kept(4096)  # a statement is read once, however many functions it runs with
def _called_by_statement(statement: ast.stmt) -> frozenset[str]:
    called = set[str]()
    for node in nodes_of(statement):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="call", value=ast.Name(id="self")), args=arguments
            ):
                name = getattr(arguments[0], "value", None) if arguments else None
                called.add(name if isinstance(name, str) else UNSAID)
    return frozenset(called)


def _is_plain(tree: ast.Module, handed: frozenset[int] = frozenset()) -> bool:
    """Check whether a text shows everything that it accesses: it only imports computing modules, and passes none on.

    The nodes in `handed`, by ID, may pass the context on: the functions that get it are read as well.
    """
    nodes = nodes_of(tree)
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    whole = [alias for node in imports if isinstance(node, ast.Import) for alias in node.names]
    modules = {alias.asname or alias.name.partition(".")[0] for alias in whole}
    scope = survey(ast.Module([*imports], []))
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    looked_into = {id(node.value) for node in attributes}
    origins = {
        *map(scope.origin, attributes),
        *(scope.imports[name] for name in scope.imports.keys() - modules),
    }
    stars = [
        node for node in imports if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
    ]
    origins |= {f"{node.module}.*" for node in stars}
    imports_builtins = any(
        is_in(origin, frozenset({"builtins"})) for origin in scope.imports.values()
    )
    own = [
        origin
        for origin in origins
        if origin and (imports_builtins or not origin.startswith("builtins."))
    ]
    # Modules also expose their own imports, as in `json.codecs.open`.
    parts = {part for origin in own for part in origin.split(".")[1:]}
    doors = {
        part
        for part in parts
        if part in OTHER_WAYS or part.lstrip("_") in sys.stdlib_module_names - COMPUTING
    }
    read = [node for node in nodes if isinstance(node, ast.Name)]
    # `self` gives access to the host: only its known attributes are used, and it is not passed on.
    in_context = context_nodes(tree)
    known = {
        id(node.value)
        for node in in_context
        if isinstance(node, ast.Attribute) and node.attr in _HARMLESS
    }
    known |= handed
    return (
        all(id(node) in known for node in in_context if is_self(node))
        and not doors
        and all(is_in(origin, COMPUTING) for origin in own)
        and not any(
            node.attr in OTHER_WAYS
            or (node.attr.startswith("__") and node.attr not in _PLAIN_DUNDERS)
            for node in attributes
        )
        and not any(
            node.id in OTHER_WAYS or (node.id in modules and id(node) not in looked_into)
            for node in read
        )
    )


FOREIGN_REACH: Final = ("calls another program",)


def reach_of_function(
    function: "Function", snapshot: "Snapshot", grants: Grants = NOTHING
) -> tuple[str, ...]:
    """Return descriptions of what a function accesses apart from its arguments, by its module's text and its grants."""
    source = snapshot.modules.get(function.module)
    return reach_in(source.text, function.name, grants) if source else FOREIGN_REACH


def only_computes(function: "Function", snapshot: "Snapshot") -> bool:
    """Check whether the text of a function shows that it accesses nothing but its arguments and its own state."""
    return not {*reach_of_function(function, snapshot)} - {KEEPS_STATE}


def shares_state(function: "Function", snapshot: "Snapshot") -> bool:
    """Check whether calls of a function change the same state: its own, or that of a function that it uses."""
    waiting, seen = [function.name], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen or not snapshot.functions[name].takes_self:
            continue
        if KEEPS_STATE in reach_of_function(snapshot.functions[name], snapshot):
            return True
        seen.add(name)
        waiting += callees(name, snapshot)
    return False
