"""Stage 1, read: requires one function of the promised name, in a text of reasonable size that parses.

Pure. The wrapping around the code is taken off (each a fix); all else that is not as promised is a problem.
"""

import ast
import keyword
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from agent_core.base.characters import Flaw, flaw_of, name_flaw_of
from agent_core.registry.loader_names import caller_of
from agent_core.registry.source import check_module_name
from sandbox.wire.lines import bare_lines, lines_of

from .draft import Draft, Finding
from .text_fixes import UNWRAPPINGS, make_private, strip_tryouts, write_escapes
from .tree import BUILTINS, Unparsable, functions, parse

NAME = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_]{0,63}$", re.ASCII)
STAGE = "read"
_REPAIRS: tuple[tuple[str, str, Callable[[str, str], str]], ...] = (
    ("trailing-code", "removed what only tries the function out", strip_tryouts),
    ("private-helper", "gave the helpers that it calls a leading underscore", make_private),
)

ESCAPES = "hidden-characters"
FIXES = frozenset({ESCAPES, *(repair[0] for repair in (*UNWRAPPINGS, *_REPAIRS))})


def read(draft: Draft) -> Draft:
    """Return the draft with its tree, or with the reasons why there is none."""
    draft = draft.with_findings(STAGE, _names(draft))
    sized = list(_size(draft))
    if sized:
        return draft.with_findings(STAGE, sized)
    draft = _unwrap(draft)
    draft = _escape(draft)
    draft = draft.with_findings(STAGE, _flaws(flaw_of(draft.text)))
    tree = parse(draft.text)
    if isinstance(tree, Unparsable):
        return draft.with_findings(STAGE, [_unparsable(tree, draft.text)])
    draft = replace(draft, tree=tree).with_findings(STAGE, _flaws(name_flaw_of(draft.text, tree)))
    for code, message, repair in _REPAIRS:
        if code == "private-helper" and draft.candidate.helpers:
            continue
        text = repair(draft.text, draft.candidate.name) if draft.rules.makes(code) else draft.text
        draft = draft.with_fix(code, message, text) if text != draft.text else draft
    return draft.with_findings(STAGE, _shape(draft))


def _size(draft: Draft) -> Iterator[Finding]:
    try:
        size = len(draft.text.encode("utf-8"))
    except UnicodeEncodeError:
        yield Finding("not-text", "the code holds half a character (a lone surrogate)", "send valid Unicode text")
        return
    limit = draft.rules.module_bytes if draft.policy == "import" else draft.rules.candidate_bytes
    if size > limit:
        message = f"the code is {size:,} bytes long; at most {limit:,} are read"
        yield Finding("too-long", message, "split it into smaller functions")
    elif "\0" in draft.text:
        yield Finding("not-text", "the code holds a NUL byte", "send plain Python text")
    elif not draft.text.strip():
        yield Finding("no-function", "there is no code", f"send the whole source, from `def {draft.candidate.name}(…)`")


def _names(draft: Draft) -> Iterator[Finding]:
    name, module = draft.candidate.name, draft.candidate.module
    reason = _bad_name(name, draft.rules.reserved | draft.snapshot.reserved)
    if draft.policy == "import" and name in BUILTINS:
        message = f"`{name}` hides the builtin of that name from the other functions of its module"
        yield Finding("hides-builtin", message, "rename it, unless that is meant")
    elif reason:
        yield Finding("bad-name", f"the function cannot be called `{name}`: {reason}", "choose another name")
    if caller := caller_of(name):
        what = f"the function cannot be called `{name}`: {caller} calls it by that name, outside of the sandbox"
        yield Finding("bad-name", what, f"choose another name, say `my_{name}`")
    unusable = check_module_name(module)
    if unusable:
        yield Finding("bad-module", f"the module cannot be `{module[:80]}`: {unusable.message}", unusable.fix or "")
    yield from _name_conflict(draft)


def _name_conflict(draft: Draft) -> Iterator[Finding]:
    name = draft.candidate.name
    if name in draft.snapshot.helpers:
        message = f"there is already a helper `{name}` (helpers/{name}.toml), which agents call by that name"
        yield Finding("name-taken", message, "choose another name")
    present = draft.snapshot.functions.get(name)
    if present is None or (draft.candidate.replaces and present.module == draft.candidate.module):
        return
    fix = f'call replace_function or edit_function on "{name}" to change it, or choose another name'
    yield Finding("name-taken", f"there is already a function `{name}` ({present.path}:{present.line})", fix)


def _bad_name(name: str, reserved: frozenset[str]) -> str:
    if not name.isascii() or not NAME.match(name):
        return "a name is at most 64 ASCII letters, digits and underscores, and begins with no digit"
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        return "it is a word of the Python language"
    if name in BUILTINS:
        return "it would hide the builtin of that name"
    if name in reserved:
        return "a meta-function, or one that edits memory, has that name"
    if name.startswith("_"):
        return "a leading underscore keeps a function private"
    return ""


def _unwrap(draft: Draft) -> Draft:
    for code, message, unwrapping in UNWRAPPINGS:
        text = unwrapping(draft.text)
        if text != draft.text and draft.rules.makes(code):
            draft = draft.with_fix(code, message, text)
    return draft


def _escape(draft: Draft) -> Draft:
    text = write_escapes(draft.text) if draft.rules.makes(ESCAPES) else draft.text
    message = "wrote characters that cannot be seen as escapes, in its strings"
    return draft.with_fix(ESCAPES, message, text) if text != draft.text else draft


def _flaws(flaw: Flaw | None) -> list[Finding]:
    return [Finding(flaw.code, flaw.description, flaw.fix, flaw.line, flaw.column)] if flaw else []


def _unparsable(error: Unparsable, text: str) -> Finding:
    lines = lines_of(text)
    quoted = lines[error.line - 1].strip()[:120] if 0 < error.line <= len(lines) else ""
    if error.is_cut_off:
        message = (
            f"the code is cut off: it stops in the middle, at line {len(lines_of(text.rstrip()))} ({error.message})"
        )
        return Finding(
            "cut-off", message, "send the whole function again, shorter if need be", error.line, error.column
        )
    message = f"line {error.line} is not Python: {error.message}" + (f": `{quoted}`" if quoted else "")
    return Finding("syntax-error", message, "fix that line and send the whole function", error.line, error.column)


def _shape(draft: Draft) -> Iterator[Finding]:
    assert draft.tree is not None
    yield from (_statement(node) for node in draft.tree.body if not _belongs(node))
    name, helpers = draft.candidate.name, draft.candidate.helpers
    named = [node for node in functions(draft.tree) if node.name not in helpers]
    public = [node for node in named if node.name == name or not node.name.startswith("_")]
    others = sorted({node.name for node in public} - {name})
    promised = [node for node in public if node.name == name]
    if not promised:
        yield _absent(name, others)
    elif others:
        message = f"the code defines {', '.join(f'`{extra}`' for extra in others)} besides `{name}`"
        fix = f"send one function at a time, or name helpers `_{others[0]}`"
        yield Finding("several-functions", message, fix, public[0].lineno)
    if len(promised) > 1:
        message = f"`{name}` is defined {len(promised)} times"
        yield Finding("several-functions", message, "keep one definition", promised[1].lineno)


def _absent(name: str, others: list[str]) -> Finding:
    if not others:
        return Finding(
            "no-function", f"the code defines no function `{name}`", f"write `def {name}(…):` at the top level"
        )
    if len(others) == 1:
        message = f"the function was announced as `{name}`, but the code defines `{others[0]}`"
        return Finding("wrong-name", message, f"write `def {name}(…)`, or announce it as `{others[0]}`")
    message = f"the code defines {', '.join(f'`{extra}`' for extra in others)}, but no `{name}`"
    return Finding("wrong-name", message, f"send only `def {name}(…)`; name helpers with a leading underscore")


def _belongs(node: ast.stmt) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return True
        case ast.Assign() | ast.AnnAssign():
            return True
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case _:
            return False


def _statement(node: ast.stmt) -> Finding:
    shown = bare_lines(ast.unparse(node))[0][:80]
    message = f"`{shown}` would run whenever the module is imported"
    fix = "move it into the function, or leave it out; only imports, constants, classes and functions stand at the top"
    return Finding("top-level-statement", message, fix, node.lineno, node.col_offset + 1)
