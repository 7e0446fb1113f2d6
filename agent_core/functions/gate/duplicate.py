"""Stage 5, duplicate: checks whether the function already exists, under another name or in other words.

Pure but for the index, which follows the snapshot. An equal form is a copy; what search takes for another is said.
The override is explicit: the reason that comes with a candidate, or the docstring of one that stands in a file,
names the function that it is not.
"""

import ast
import asyncio
import re
from dataclasses import replace
from typing import Any

from agent_core.base.offload import aside
from agent_core.base.problem import Evidence
from agent_core.base.untrusted import one_line
from agent_core.registry.function import Function

from ..search import FunctionSearch
from ..search.confusion import first_sentence, mistaken, told_apart
from .clones import Sketch, sketch, surroundings
from .draft import Draft, Finding
from .trial import TrialTools

STAGE = "duplicate"
_REQUEST = 120
_SEARCH_S = 5.0  # the first search of a process reads all functions
SMALL = 15  # words of a form: what says so little means what its types say


async def duplicate(draft: Draft, bench: TrialTools) -> Draft:
    """Return the draft with the function that it repeats, if there is one."""
    name = draft.candidate.name
    if draft.function is None:
        return draft.skip("there is no function to compare")
    if not draft.snapshot.functions.keys() - {name, *draft.apart}:
        return replace(draft, note="there is no other function yet")
    own_sketch = await aside(draft.size, _sketch, draft)
    pending = await bench.alike.see(draft.snapshot, draft.rules.duplicate_s)
    after = _compared(draft, own_sketch, bench)
    late = f"{pending} functions not reached: time was up" if pending else ""
    after = replace(after, note="; ".join(filter(None, [late, after.note])), late=pending > 0)
    if bench.finder is None or draft.policy == "import" or after.shows("copy", "near-copy"):
        return after
    return after.with_findings(STAGE, await _confusion(draft, bench.finder))


async def _confusion(draft: Draft, finder: FunctionSearch) -> list[Finding]:
    """Return what is wrong with a description by which search finds another function, as far as there is time."""
    own, name = _own(draft), draft.candidate.name
    if own is None or (draft.candidate.file and name not in draft.snapshot.functions):
        return []
    functions = draft.snapshot.functions
    if not draft.candidate.file:  # without its module, which lacks its text: once it has joined, it is read anew
        functions = {**functions, name: replace(own, module="")}
    snapshot = replace(draft.snapshot, functions=functions)
    try:
        async with asyncio.timeout(_SEARCH_S):
            pair = await mistaken(finder.index, snapshot, name)
            is_stuffed = name in await finder.index.word_lists(snapshot)
    except TimeoutError:
        return []
    line = draft.function.lineno if draft.function else 0
    if is_stuffed:
        message = f"the description of `{name}` is a list of words, which search does not read"
        return [Finding("stuffed-description", message, "say in a sentence what it does", line)]
    if pair is None or is_apart(draft, pair.other if pair.name == name else pair.name):
        return []
    asked, other = functions[pair.name], functions[pair.other]
    # A request that it served is some agent's, and a verdict is read by all: only the description is quoted.
    is_own = pair.request == first_sentence(asked.description)
    what = f"“{one_line(pair.request, _REQUEST)}”" if is_own else f"a request that `{asked.name}` has served"
    message = f"{what} finds `{other.name}` before `{asked.name}`: {shown_function(other)}"
    facts = (Evidence(shown_function(asked)), Evidence(shown_function(other)))
    return [Finding("confusable", message, f"of `{asked.name}`, {told_apart(asked, other)}", line, evidence=facts)]


def _compared(draft: Draft, own_sketch: Sketch, bench: TrialTools) -> Draft:
    name, functions = draft.candidate.name, draft.snapshot.functions
    copies = [copy for copy in bench.alike.copies(own_sketch) if copy not in draft.apart]
    if name in copies and not draft.candidate.file:
        return replace(draft, note="it computes the same as before")
    copies = [copy for copy in copies if copy != name]
    if told := [copy for copy in copies if is_apart(draft, copy)]:
        return replace(draft, note=f"said to differ from `{told[0]}`")
    fitting = [copy for copy in copies if _fits(_own(draft), functions[copy], is_small=own_sketch.size < SMALL)]
    if not copies:
        return replace(draft, note="no function computes the same")
    finding = _copy(draft, functions[fitting[0]]) if fitting else _other_types(draft, functions[copies[0]])
    return draft.with_findings(STAGE, [finding])


def _sketch(draft: Draft) -> Sketch:
    module = draft.candidate.module
    source = draft.snapshot.modules.get(module)
    texts = (draft.text, surroundings(module, draft.snapshot))
    return sketch(draft.candidate.name, *texts, module=source.text if source else "")


def _copy(draft: Draft, existing: Function) -> Finding:
    message = f"`{draft.candidate.name}` computes the same as a function that is there: {shown_function(existing)}"
    return _finding("copy", message, fix_of_copy(draft, existing), draft, existing)


def _other_types(draft: Draft, existing: Function) -> Finding:
    message = f"`{draft.candidate.name}` computes the same as {shown_function(existing)}, for arguments of other types"
    fix = f"one function can serve both: give `{existing.name}` the wider type with edit_function"
    return _finding("near-copy", message, fix, draft, existing)


def _finding(code: str, message: str, fix: str, draft: Draft, existing: Function) -> Finding:
    line = draft.function.lineno if draft.function else 0
    return Finding(code, message, fix, line, evidence=(Evidence(shown_function(existing)),))


def fix_of_copy(draft: Draft, existing: Function) -> str:
    """Return what to do about a function that exists already."""
    place = "its docstring" if draft.candidate.file else "`reason`"
    return f"call `{existing.name}` instead, or say in {place} how yours differs from `{existing.name}`"


def shown_function(function: Function) -> str:
    """Return a function as one line: signature, place and first sentence."""
    properties = function.parameters.get("properties", {})
    typed = [f"{name}: {_kind(schema) or 'any'}" for name, schema in properties.items()]
    returns = f" -> {function.returns}" if function.returns else ""
    first = function.description.strip().partition("\n")[0]
    return f"`{function.name}({', '.join(typed)}){returns}` ({function.path}:{function.line})" + (
        f": {first}" if first else ""
    )


def _own(draft: Draft) -> Function | None:
    functions = draft.own.functions if draft.own else ()
    return next((function for function in functions if function.name == draft.candidate.name), None)


def is_apart(draft: Draft, name: str) -> bool:
    """Check whether a candidate says how it differs from a function, or is not compared with it."""
    docstring = ast.get_docstring(draft.function, clean=False) if draft.function and draft.candidate.file else None
    reason = f"{draft.candidate.reason} {docstring or ''}"
    return name in draft.apart or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", reason) is not None


def _fits(own: Function | None, existing: Function, *, is_small: bool) -> bool:
    """Check whether one function takes everything that the other takes, as far as their schemas tell."""
    if own is None:
        return True
    mine, others = (function.parameters.get("properties", {}).values() for function in (own, existing))
    return all(_takes(wide, narrow, is_small=is_small) for wide, narrow in zip(others, mine, strict=False))


def _takes(wide: dict[str, Any], narrow: dict[str, Any], *, is_small: bool) -> bool:  # Any: JSON Schema
    wide_kind, narrow_kind = _kind(wide), _kind(narrow)
    if wide_kind and not narrow_kind:
        return not is_small
    if wide_kind and wide_kind != narrow_kind:
        return (wide_kind, narrow_kind) == ("number", "integer")
    inside, within = wide.get("items"), narrow.get("items")
    return not (isinstance(inside, dict) and isinstance(within, dict)) or _takes(inside, within, is_small=is_small)


def _kind(schema: dict[str, Any]) -> str:  # Any: JSON Schema
    kind = schema.get("type")
    return kind if isinstance(kind, str) else ""
