"""The stage "neighbours": checks whether the callers of a function still work with its new version.

The stored examples of every direct or indirect caller run with the new version, each in a separate worker. An example
that fails now but did not before is broken by the change. Arguments that no longer fit are detected in the source.

A caller that the same reply changes next is not held against the new version, nor is one that only uses it through such
a caller: they are broken until then, and the verdict says how.
"""

import ast
import asyncio
from collections.abc import Iterator, Sequence

from agent_core.base.offload import results_of
from agent_core.base.problem import Evidence
from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import fence
from agent_core.registry.depends import (
    callers,
    changed_functions,
    code_hash,
    dependents,
    using_modules,
)
from agent_core.registry.function import Function
from agent_core.registry.registry import Snapshot
from agent_core.registry.tree import survey

from .draft import NOT_IMPORTED, D, Draft, Finding
from .proof import MOST, ExampleResult, run
from .tree import FunctionNode, defaults, function_in, is_given_self, nodes_of, parse, takes_self
from .trial import TrialTools
from .uses import local_names
from .verdict import Breakage

STAGE = "neighbours"
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class BrokenCaller:
    """An example of a caller that agrees with the old version but not with the new one."""

    caller: Function
    before: ExampleResult
    now: ExampleResult


async def neighbours(draft: Draft, trial: TrialTools) -> Draft:
    """Return the draft with findings about the callers that the new version would break."""
    name, module, snapshot = draft.candidate.name, draft.candidate.module, draft.snapshot
    node = draft.function
    if draft.trial is None or node is None:
        return draft.skip(NOT_IMPORTED)
    if name not in snapshot.functions or draft.trial.modules[module] == draft.around:
        return draft
    users = await asyncio.to_thread(_users_of, draft, draft.trial)
    if not users:
        return replace(draft, note="no function calls it")
    coming = draft.candidate.together.coming
    let_go = await asyncio.to_thread(_let_go, name, users, coming, snapshot)
    misfits = await asyncio.to_thread(_misfits, name, node, snapshot)
    breakages = dict[str, Breakage]()
    after = draft.trial
    draft, broken = await try_callers(draft, users, snapshot, after, trial)
    for user_name in let_go & misfits.keys():
        user = snapshot.functions[user_name]
        message = misfits.pop(user_name).message
        breakages[user_name] = Breakage(name, user, code_hash(user, after), message)
    for each in broken:
        if each.caller.name in let_go:
            code = code_hash(each.caller, after)
            breakages[each.caller.name] = Breakage(name, each.caller, code, differs(each))
    draft = replace(draft, breakages=(*draft.breakages, *breakages.values()))
    held = [each for each in broken if each.caller.name not in let_go | misfits.keys()]
    return draft.with_findings(
        STAGE, [*misfits.values(), *(caller_finding(each, name) for each in held)]
    )


def _users_of(draft: Draft, new_snapshot: Snapshot) -> list[str]:
    """Return what calls a candidate's function, and what depends on it through a class, a value or a helper."""
    name, module, snapshot = draft.candidate.name, draft.candidate.module, draft.snapshot
    modules = {module, *using_modules(module, snapshot)}
    around = [
        other
        for other, function in snapshot.functions.items()
        if function.module in modules and other != name
    ]
    changed = changed_functions(around, snapshot, new_snapshot)
    users = dependents([name], snapshot)
    return [*dict.fromkeys([*users, *(other for other in around if other in changed)])]


def _misfits(name: str, node: FunctionNode, snapshot: Snapshot) -> dict[str, Finding]:
    """Return the findings about the callers whose arguments do not fit the new signature, by their names."""
    misfits = dict[str, Finding]()
    function = snapshot.functions[name]
    old = function_in(snapshot.modules[function.module].text, name)
    for user in (snapshot.functions[caller] for caller in callers(name, snapshot)):
        calls = _calls(user, function, snapshot)
        call = next(
            (call for call in calls if old and not misfit(call, old) and misfit(call, node)), None
        )
        if call is not None:  # it fits the old signature but not the new one
            shown_call, place = ast.unparse(call)[:120], f"{user.path}:{call.lineno}"
            message = f"`{user.name}` ({place}) calls `{shown_call}`, but {misfit(call, node)}"
            fix = f"keep the signature, with a default for what is new in `{name}`"
            facts = (Evidence(f"{place}: {shown_call}"),)
            misfits[user.name] = Finding("breaks-caller", message, fix, evidence=facts)
    return misfits


def _let_go(
    name: str, users: Sequence[str], coming: frozenset[str], snapshot: Snapshot
) -> frozenset[str]:
    """Return the users that are changed next, or that only use the function through one that is."""
    if not coming:
        return frozenset()
    held, waiting = {name}, [name]
    while waiting:
        near = [
            caller for caller in callers(waiting.pop(), snapshot) if caller not in held | coming
        ]
        held.update(near)
        waiting += near
    through = {*dependents([name], snapshot)} - held
    return frozenset(user for user in users if user in coming or user in through)


async def try_callers(
    draft: D, names: Sequence[str], snapshot: Snapshot, new_snapshot: Snapshot, trial: TrialTools
) -> tuple[D, list[BrokenCaller]]:
    """Return the draft with the callers that it upholds, and those whose examples fail only with the new version.

    What an earlier change of the same reply broke has to be right again: it is compared with what was before both.
    """
    together = draft.candidate.together
    there = [new_snapshot.functions[name] for name in names if name in new_snapshot.functions]
    users = [function for function in there if function.examples]
    until = asyncio.get_running_loop().time() + draft.rules.neighbours_s
    upheld = set[str]()

    def before(user_function: Function) -> tuple[Function, Snapshot]:
        name, ground = user_function.name, together.before
        if ground is None or name not in together.broken or name not in ground.functions:
            return user_function, snapshot
        return ground.functions[name], ground

    async def try_one(user_function: Function) -> list[BrokenCaller] | None:
        try:
            async with asyncio.timeout_at(until):
                results = await run(
                    user_function.examples[:MOST], user_function, new_snapshot, trial
                )
                failing = [result for result in results if not result.agreed]
                if not failing:
                    upheld.add(user_function.name)
                old = await run(
                    [result.example for result in failing], *before(user_function), trial
                )
        except TimeoutError:
            return None
        pairs = zip(old, failing, strict=True)
        return [BrokenCaller(user_function, was, result) for was, result in pairs if was.agreed]

    reached = [found for found in await results_of(try_one, users, _AT_ONCE) if found is not None]
    is_late = len(reached) < len(users)
    note = f"{len(reached)} of {len(users)} callers with examples tried{': time was up' if is_late else ''}"
    return replace(draft, note=note, late=is_late, upheld=frozenset(upheld)), [
        broken for found in reached for broken in found
    ]


def caller_finding(broken: BrokenCaller, name: str) -> Finding:
    """Return the finding about a broken caller."""
    user = broken.caller
    message = f"`{user.name}` ({user.path}:{user.line}) uses `{name}`: {differs(broken)}"
    fix = f"keep what `{user.name}` relies on, or give the new behavior a function of its own"
    evidence = (
        Evidence(
            call=broken.now.call, returned=broken.now.returned, expected=broken.before.returned
        ),
    )
    return Finding("breaks-caller", message, fix, evidence=evidence)


def differs(broken: BrokenCaller) -> str:
    """Return what a caller's example returned before, and what it returns now."""
    gave, gives = fence(broken.before.returned, 120), fence(broken.now.returned, 120)
    return f"`{broken.now.call}` gave {gave}, and now {gives}"


def _calls(user_function: Function, function: Function, snapshot: Snapshot) -> Iterator[ast.Call]:
    """Yield the calls in a function that certainly call the other one."""
    text = snapshot.modules[user_function.module].text
    tree, body = parse(text), function_in(text, user_function.name)
    if body is None or not isinstance(tree, ast.Module):
        return
    inner = [node for node in nodes_of(body) if isinstance(node, ast.Import | ast.ImportFrom)]
    scopes, own = [survey(ast.Module(list(inner), [])), survey(tree)], local_names(body)
    is_near = user_function.module == function.module
    for node in nodes_of(body):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in own:
                pass
            case ast.Call(func=ast.Name(id=function.name)) if is_near:
                yield node
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="self"), attr="call"), args=[first, *_]
            ):
                if isinstance(first, ast.Constant) and first.value == function.name:
                    yield node
            case ast.Call(func=func):
                if f"functions.{function.module}.{function.name}" in {
                    scope.origin(func) for scope in scopes
                }:
                    yield node


def misfit(call: ast.Call, node: FunctionNode) -> str:
    """Return why a call's arguments do not fit a signature; empty if they do, or if this cannot be determined."""
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    ):
        return ""
    by_name = isinstance(call.func, ast.Attribute) and call.func.attr == "call"
    arguments = [] if by_name else call.args[takes_self(node) and is_given_self(call) :]
    placed = [parameter.arg for parameter in [*node.args.posonlyargs, *node.args.args]][
        takes_self(node) :
    ]
    only = [parameter.arg for parameter in node.args.kwonlyargs]
    named = {keyword.arg for keyword in call.keywords if keyword.arg}
    if len(arguments) > len(placed) and not node.args.vararg:
        return f"`{node.name}` takes {len(placed)} arguments by place"
    unknown = named - {*placed, *only}
    if unknown and not node.args.kwarg:
        return f"`{node.name}` has no parameter `{min(unknown)}`"
    given = {*placed[: len(arguments)], *named, *defaults(node.args)}
    missing = [name for name in (*placed, *only) if name not in given]
    return f"`{node.name}` needs `{missing[0]}`" if missing else ""
