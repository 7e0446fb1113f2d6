"""Stage 5, duplicate: is it there already, under another name or in other words?

Pure but for the index, which follows the snapshot. An equal form is a copy; what is only like another is said.
The override is explicit: the reason that comes with a candidate, or the docstring of one that stands in a file,
names the function that it is not.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..aside import aside
from ..registry.function import Function
from .alike.index import Alike, Likeness, Sketch, sketch, surroundings
from .draft import Draft, Finding
from .trial import Bench

STAGE = "duplicate"
NEAR, SAME_WORDS, SAME_BODY = 0.65, 0.9, 0.65
WORTH_TELLING = 0.3
SMALL = 15  # words of a form: what says so little means what its types say


async def duplicate(draft: Draft, bench: Bench) -> Draft:
    """The draft with the function that it repeats, if there is one."""
    name = draft.candidate.name
    if draft.function is None:
        return draft.skip("there is no function to compare")
    if not draft.snapshot.functions.keys() - {name, *draft.apart}:
        return replace(draft, note="there is no other function yet")
    one = await aside(draft.size, _sketch, draft)
    left = await bench.alike.see(draft.snapshot, draft.rules.duplicate_s)
    after = _compared(draft, one, bench)
    late = f"{left} functions not reached: time was up" if left else ""
    return replace(after, note="; ".join(filter(None, [late, after.note])))


def _compared(draft: Draft, one: Sketch, bench: Bench) -> Draft:
    name = draft.candidate.name
    reason = _reason(draft)
    apart = {other for other in draft.snapshot.functions if _names(other, reason)}
    copies = [other for other in bench.alike.copies(one) if other not in draft.apart]
    if name in copies and not draft.candidate.file:
        return replace(draft, note="it computes what it did")
    copies = [other for other in copies if other != name]
    if set(copies) & apart:
        return replace(draft, note=f"said to differ from `{copies[0]}`")
    return _with_nearest(draft, one, bench.alike, copies, apart)


def _sketch(draft: Draft) -> Sketch:
    module = draft.candidate.module
    held = draft.snapshot.modules.get(module)
    texts = (draft.text, surroundings(module, draft.snapshot))
    return sketch(draft.candidate.name, _description(draft), *texts, module=held.text if held else "")


def _with_nearest(draft: Draft, one: Sketch, alike: Alike, copies: list[str], apart: set[str]) -> Draft:
    functions = draft.snapshot.functions
    fitting = [other for other in copies if _fits(_own(draft), functions[other], is_small=one.size < SMALL)]
    if fitting:
        return draft.with_findings(STAGE, [_copy(draft, functions[fitting[0]])])
    if copies:
        return draft.with_findings(STAGE, [_other_types(draft, functions[copies[0]])])
    nearest = alike.nearest(one, [draft.candidate.name, *apart, *draft.apart])
    if nearest is None:
        return replace(draft, note="nothing is like it")
    found = list(_like(draft, functions[nearest.name], nearest))
    note = f"nearest: `{nearest.name}`, {nearest.score:.2f} of 1" if nearest.score >= WORTH_TELLING else ""
    return replace(draft.with_findings(STAGE, found), note=note)


def _like(draft: Draft, other: Function, nearest: Likeness) -> Iterator[Finding]:
    name = draft.candidate.name
    if nearest.words >= SAME_WORDS and nearest.body >= SAME_BODY:
        what = f"`{name}` is described as `{other.name}` is, and does nearly the same: {_shown(other)}"
        yield Finding("copy", what, _mend(draft, other), draft.function.lineno if draft.function else 0)
    elif nearest.score >= NEAR and not draft.candidate.replaces:
        what = f"`{name}` is much like {_shown(other)}"
        mend = f"if `{other.name}` does what is needed, call it; if it nearly does, change it with edit_function"
        yield Finding("near-copy", what, mend, draft.function.lineno if draft.function else 0)


def _copy(draft: Draft, other: Function) -> Finding:
    what = f"`{draft.candidate.name}` computes the same as a function that is there: {_shown(other)}"
    return Finding("copy", what, _mend(draft, other), draft.function.lineno if draft.function else 0)


def _other_types(draft: Draft, other: Function) -> Finding:
    what = f"`{draft.candidate.name}` computes the same as {_shown(other)}, for arguments of other types"
    mend = f"one function can serve both: give `{other.name}` the wider type with edit_function"
    return Finding("near-copy", what, mend, draft.function.lineno if draft.function else 0)


def _mend(draft: Draft, other: Function) -> str:
    place = "its docstring" if draft.candidate.file else "`reason`"
    return f"call `{other.name}` instead, or say in {place} how yours differs from `{other.name}`"


def _shown(other: Function) -> str:
    properties = other.parameters.get("properties", {})
    typed = [f"{name}: {_kind(schema) or 'any'}" for name, schema in properties.items()]
    returns = f" -> {other.returns}" if other.returns else ""
    first = other.description.strip().partition("\n")[0]
    return f"`{other.name}({', '.join(typed)}){returns}` ({other.path}:{other.line})" + (f": {first}" if first else "")


def _own(draft: Draft) -> Function | None:
    functions = draft.own.functions if draft.own else ()
    return next((one for one in functions if one.name == draft.candidate.name), None)


def _description(draft: Draft) -> str:
    own = _own(draft)
    return (own.description if own else "") or draft.candidate.description


def _reason(draft: Draft) -> str:
    said = ast.get_docstring(draft.function, clean=False) if draft.function and draft.candidate.file else None
    return f"{draft.candidate.reason} {said or ''}"


def _names(other: str, reason: str) -> bool:
    return other in reason and re.search(rf"(?<!\w){re.escape(other)}(?!\w)", reason) is not None


def _fits(own: Function | None, other: Function, *, is_small: bool) -> bool:
    """What one function takes, the other takes too, as far as their schemas tell."""
    if own is None:
        return True
    mine, others = (one.parameters.get("properties", {}).values() for one in (own, other))
    return all(_takes(wide, narrow, is_small=is_small) for wide, narrow in zip(others, mine, strict=False))


def _takes(wide: dict[str, Any], narrow: dict[str, Any], *, is_small: bool) -> bool:  # Any: JSON Schema
    one, other = _kind(wide), _kind(narrow)
    if one and not other:
        return not is_small
    if one and one != other:
        return (one, other) == ("number", "integer")
    inside, within = wide.get("items"), narrow.get("items")
    return not (isinstance(inside, dict) and isinstance(within, dict)) or _takes(inside, within, is_small=is_small)


def _kind(schema: dict[str, Any]) -> str:  # Any: JSON Schema
    kind = schema.get("type")
    return kind if isinstance(kind, str) else ""
