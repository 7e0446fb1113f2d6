"""The stage "capability": compares the grants that a function needs with those that it has.

`reach` describes the same for people, in a few words.
"""

import ast
from collections.abc import Collection, Iterable, Iterator
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
)
from agent_core.registry.source import FOLDER
from agent_core.registry.tree import imported_module
from sandbox.wire.statements import StatementPart

from .draft import D, Draft, Finding
from .running import (
    COMPUTING,
    called_by_self,
    is_plain,
    text_led_to,
    text_reaching,
    uses_context,
)
from .tree import bound_names, missing_names, nodes_of, parse
from .uses import (
    FIXES,
    Use,
    files_of_parameters,
    gives_text,
    gives_text_to_packages,
    needs_of,
    use_of,
    uses,
)

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

    from .draft import Way

STAGE = "capability"


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
KEEPS_STATE: Final = "keeps a value between its calls"
_UNCERTAIN = "may ask as it runs"


def reach(
    text: str, grants: Grants = NOTHING, known_names: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Return short descriptions of what a function accesses apart from its arguments.

    They follow from its text and from `grants`, which it has or needs. The result is empty if it only computes: nothing
    in the text, its imports or the grants leads out of the sandbox. `known_names` are those of its module.
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
    words = reach_of(grants, missing_names(text, tree, known_names), called)
    words = words or (
        (_UNCERTAIN,) if any(not use.kind for use in all_uses) or not is_plain(tree) else ()
    )
    return (*words, KEEPS_STATE) if "state" in uses_context(tree) else words


def reach_in(module_text: str, name: str, grants: Grants = NOTHING) -> tuple[str, ...]:
    """Return what a function of a module accesses, including the imports, constants and helpers that it uses."""
    text = text_reaching(module_text, name)
    return (_UNCERTAIN,) if text is None else _reach_of_part(module_text, text, grants)


@lru_cache(maxsize=8192)  # listing functions reads each text once
def _reach_of_part(module_text: str, text: str, grants: Grants) -> tuple[str, ...]:
    tree = parse(module_text)
    return reach(text, grants, bound_names(tree) if isinstance(tree, ast.Module) else frozenset())


def needs_with_callees(name: str, snapshot: "Snapshot") -> Grants:
    """Return the grants that the texts of a function and of those that it calls need, directly or indirectly."""
    needs, waiting, seen = NOTHING, [name], {name}
    while waiting:
        function = snapshot.functions[waiting.pop()]
        text = snapshot.modules[function.module].text
        near, words = text_led_to(text, function.name)
        if near is not None:
            needs |= needs_of_text(near) | _calls_elsewhere(near, snapshot)
        for word in () if words.isdisjoint(snapshot.functions) else words:
            if word in snapshot.functions and word not in seen:
                seen.add(word)
                waiting.append(word)
    return needs


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
    return "nothing" if tree is not None and is_plain(tree) and not needs.packages else "unknown"


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
    return tree is not None and _gives_text_to_packages(tree, draft.rules.packages)


@tree_room.kept(64)  # nearly all functions of a chain have the same tree
def _gives_text_to_packages(tree: ast.Module, packages: tuple[str, ...]) -> bool:
    return gives_text_to_packages(tree, packages)


def _all_needs(draft: Draft) -> tuple[Grants, ast.Module | None]:
    """Return the needs of a candidate with those of what it uses and calls, and the tree of what runs of its module."""
    name, snapshot = draft.candidate.name, draft.trial
    if snapshot is None or name not in snapshot.functions:
        return draft.needs, draft.tree
    text = text_reaching(snapshot.modules[snapshot.functions[name].module].text, name)
    if text is None:
        return draft.needs, None
    needs = (
        draft.needs | needs_with_callees(name, snapshot) | needs_of_text(text, draft.rules.packages)
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
