"""The stage "read": requires one function with the promised name, in a text of reasonable size that parses.

Pure. Wrapping around the code is removed, each time as a fix; anything else unexpected is a problem.
"""

import ast
import keyword
import re
import textwrap
import tokenize
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from agent_core.base import syntax
from agent_core.base.fences import fenced_texts
from agent_core.base.syntax import Flaw, escaped, stray_characters
from agent_core.registry.depends import is_program, running_with
from agent_core.registry.examples import find as find_examples
from agent_core.registry.module_edits import is_import
from agent_core.registry.source import caller_of, check_module_name, first_line
from sandbox.wire.lines import bare_lines, lines_of, reader_of

from .draft import Draft, Finding
from .examples import DocstringText, offset
from .tree import (
    BUILTINS,
    FunctionNode,
    Unparsable,
    bound_names,
    calls_of,
    find,
    function_in,
    functions,
    nodes_of,
    parse,
)
from .uses import local_names

_STRINGS = frozenset({tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)})
_RAW = re.compile(r"[A-Za-z]*[rR]")


def write_escapes(text: str, _name: str = "") -> str:
    """Return the text with invisible characters in strings replaced by escapes, if its meaning stays the same."""
    strays = stray_characters(text)
    before = parse(text) if strays else None
    if not isinstance(before, ast.Module):
        return text
    pieces = list(text)
    for start, end in _strings(text):
        for at in strays[bisect_left(strays, start) : bisect_left(strays, end)]:
            pieces[at] = escaped(text[at])
    written = "".join(pieces)
    after = parse(written)
    return (
        written if isinstance(after, ast.Module) and ast.dump(after) == ast.dump(before) else text
    )


def _strings(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each string in which escapes work."""
    starts = [0]
    for line in lines_of(text):
        starts.append(starts[-1] + len(line))
    try:
        for token in tokenize.generate_tokens(reader_of(text)):
            if token.type in _STRINGS and not _RAW.match(token.string):
                yield (
                    starts[token.start[0] - 1] + token.start[1],
                    starts[token.end[0] - 1] + token.end[1],
                )
    except (tokenize.TokenError, SyntaxError):
        return


def strip_tryouts(text: str, name: str) -> str:
    """Return the code without trailing statements that only try the function out.

    These are prints, asserts, `if __name__ …`, and values that only these use.
    """
    tree = parse(text)
    kept = [*tree.body] if isinstance(tree, ast.Module) and find(tree, name) else []
    while len(kept) > 1 and _tries_out(
        kept[-1], kept[:-1], is_last=isinstance(tree, ast.Module) and kept == tree.body
    ):
        removed = kept.pop()
        if (kept[-1].end_lineno or 0) >= removed.lineno:
            return text  # two statements share a line
    lines = lines_of(text)[: kept[-1].end_lineno] if kept else []
    is_whole = not isinstance(tree, ast.Module) or len(kept) in (0, len(tree.body))
    return text if is_whole else "".join(lines).rstrip("\n") + "\n"


def _tries_out(node: ast.stmt, before: Sequence[ast.stmt], *, is_last: bool) -> bool:
    match node:
        case ast.Assert() | ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]) if not is_last:
            return not any(calls_of(other, {name}) for other in before)
        case _:
            return is_program(node)


_MOST = 50  # helpers; with more, ask the author instead of renaming


def make_private(text: str, name: str) -> str:
    """Return the text with the promised function's helpers renamed to `_helper`; unchanged if that is not safe.

    It is safe if every token with a helper's name is a use of the helper, not a parameter, keyword or attribute.
    """
    tree = parse(text)
    if not isinstance(tree, ast.Module) or not 1 < len(functions(tree)) <= _MOST:
        return text
    names = [node.name for node in functions(tree)]
    reached = {node.name for node in running_with(text, name) if isinstance(node, FunctionNode)}
    public = {helper for helper in names if not helper.startswith("_")}
    is_using_all = name in public <= reached and len({*names}) == len(names)
    helpers, nodes = public - {name} if is_using_all else set[str](), nodes_of(tree)
    uses = [
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    ]
    uses = [
        name
        for name in (*uses, *(node.name for node in nodes if isinstance(node, FunctionNode)))
        if name in helpers
    ]
    # Before Python 3.12, an f-string is a single token.
    is_in_text = any(isinstance(node, ast.JoinedStr) and calls_of(node, helpers) for node in nodes)
    words = (
        [word for word in tokenize.generate_tokens(reader_of(text)) if word.string in helpers]
        if helpers
        else []
    )
    is_safe = not is_in_text and not bound_names(tree) & {f"_{helper}" for helper in helpers}
    if not is_safe or sorted(word.string for word in words) != sorted(uses):
        return text
    lines = lines_of(text)
    for word in reversed(words):
        line, column = word.start
        lines[line - 1] = f"{lines[line - 1][:column]}_{lines[line - 1][column:]}"
    return "".join(lines)


def make_raw(text: str, name: str) -> str:
    """Return the text with the promised function's docstring raw, if its examples can only be meant so.

    In another docstring, a `\\n` in an example breaks the example's line, and a `\\t` becomes spaces.
    """
    before = _docstring(text, name)
    if before is None or not before[0].is_escaped_once:
        return text
    written, words = before
    raw = f"{text[: written.start]}r{text[written.start :]}"
    after = _docstring(raw, name)
    meant = _shown(after[1]) if after is not None else []
    if not (meant and all(map(_is_python, meant[::2]))):
        return text
    shown = _shown(words)
    is_torn = len(shown) != len(meant) or any(
        _CONTROL.search(read) or (_is_python(other) and not _is_python(read))
        for read, other in zip(shown, meant, strict=True)
    )
    has_tab = shown != meant and words.count("\t") > written.inner.count("\t")
    return raw if is_torn or has_tab else text


def _docstring(text: str, name: str) -> tuple[DocstringText, str] | None:
    """Return the docstring of the function with this name, as it is written and as Python reads it."""
    node = function_in(text, name)
    written = DocstringText.of(text, node) if node is not None else None
    return (
        (written, ast.get_docstring(node, clean=False) or "")
        if node is not None and written is not None
        else None
    )


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def _shown(words: str) -> list[str]:
    """Return the source and the output of each example of a docstring in turn; none if they cannot be told apart."""
    try:
        return [text for entry in find_examples(words) for text in (entry.source, entry.want)]
    except ValueError:
        return []


def move_setup(text: str, name: str) -> str:
    """Return the text with calls that set up what it imports moved into the function, such as `matplotlib.use("Agg")`.

    They would run whenever the module is imported, for its other functions, too.
    """
    tree, node = parse(text), function_in(text, name)
    if not isinstance(tree, ast.Module) or node is None:
        return text
    imports = [statement for statement in tree.body if is_import(statement)]
    imported = bound_names(ast.Module([*imports], []))
    moved = [statement for statement in tree.body if _sets_up(statement, imported)]
    own = local_names(node)
    body = node.body if ast.get_docstring(node, clean=False) is None else node.body[1:]
    read = {
        inner.id
        for statement in moved
        for inner in ast.walk(statement)
        if isinstance(inner, ast.Name)
    }
    if not moved or not body or read & own:
        return text
    top = first_line(body[0])
    margin = text[: offset(text, top, body[0].col_offset)].rpartition("\n")[2]
    if margin.strip():
        return text
    lines = lines_of(text)
    rows = {
        row
        for statement in moved
        for row in range(statement.lineno, (statement.end_lineno or 0) + 1)
    }
    others = [inner for inner in tree.body if inner not in moved]
    if any(inner.lineno <= row <= (inner.end_lineno or 0) for row in rows for inner in others):
        return text  # two statements share a line
    code = [f"{margin}{line}\n" for statement in moved for line in _lines_of_one(statement, lines)]
    kept = [(row, line) for row, line in enumerate(lines, 1) if row not in rows]
    return "".join("".join([*(code if row == top else []), line]) for row, line in kept)


def _lines_of_one(node: ast.stmt, lines: Sequence[str]) -> list[str]:
    """Return the lines of a statement: as they are written if it is only one."""
    return (
        [lines[node.lineno - 1].strip()]
        if node.lineno == node.end_lineno
        else bare_lines(ast.unparse(node))
    )


def _sets_up(node: ast.stmt, imported: frozenset[str] | set[str]) -> bool:
    """Check whether a statement only calls something imported, with constants and what else is imported."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    called = next(
        (inner.id for inner in ast.walk(node.value.func) if isinstance(inner, ast.Name)), ""
    )
    is_simple = not any(
        isinstance(inner, ast.Lambda | ast.NamedExpr | ast.Await) for inner in ast.walk(node)
    )
    return is_simple and called in imported and names <= imported | BUILTINS


def strip_fence(text: str, _name: str) -> str:
    """Return the code in the first Markdown fence that contains a function; an unclosed fence ends with the text."""
    fenced = fenced_texts(text)
    if not fenced or _is_python(text):
        return text
    return next((code for code in fenced if "def " in code), fenced[0])


def strip_indentation(text: str, _name: str) -> str:
    """Return the code without the indentation that all of its lines share."""
    if _is_python(text):
        return text
    flat = text.replace("\r\n", "\n")
    unindented = textwrap.dedent(flat)
    if unindented != flat and (_is_python(unindented) or not _is_python(text.strip())):
        return unindented.lstrip("\n")
    return text.strip() + "\n" if _is_python(text.strip()) else text


def _is_python(text: str) -> bool:
    return isinstance(parse(text), ast.Module)


NAME = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_]{0,63}$", re.ASCII)
STAGE = "read"
_BINDING = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
)
ESCAPES = "hidden-characters"
Repair: TypeAlias = tuple[str, str, Callable[[str, str], str]]  # code, message, function
_UNWRAPPINGS: tuple[Repair, ...] = (
    ("code-fence", "took the code out of its Markdown fence", strip_fence),
    ("indentation", "removed the indentation that all lines share", strip_indentation),
    (ESCAPES, "wrote characters that cannot be seen as escapes, in its strings", write_escapes),
)
_REPAIRS: tuple[Repair, ...] = (
    ("trailing-code", "removed what only tries the function out", strip_tryouts),
    (
        "raw-docstring",
        "made the docstring raw, so that the escapes in its examples stay as they are written",
        make_raw,
    ),
)
_REPAIRS_OF_ONE: tuple[Repair, ...] = (
    ("private-helper", "gave the helpers that it calls a leading underscore", make_private),
    (
        "moved-setup",
        "moved calls that would run whenever the module is imported into the function",
        move_setup,
    ),
)


def read(draft: Draft) -> Draft:
    """Return the draft with its tree, or with the reasons why there is none."""
    draft = draft.with_findings(STAGE, _names(draft))
    if sized := list(_size(draft)):
        return draft.with_findings(STAGE, sized)
    draft = _repair(draft, _UNWRAPPINGS)
    readable, tree = syntax.read(draft.text, draft.rules.module_bytes), parse(draft.text)
    if isinstance(readable, Flaw) and readable.code in syntax.FLAWS:
        draft = draft.with_findings(STAGE, [_of_flaw(readable)])
    if isinstance(tree, Unparsable):
        lines = lines_of(draft.text)
        quoted = lines[tree.line - 1].strip()[:120] if 0 < tree.line <= len(lines) else ""
        code, fix = "syntax-error", "fix that line and send the whole function"
        message = f"line {tree.line} is not Python: {tree.message}" + (
            f": `{quoted}`" if quoted else ""
        )
        if tree.is_cut_off:
            code, fix = "cut-off", "send the whole function again, shorter if need be"
            last = len(lines_of(draft.text.rstrip()))
            message = (
                f"the code is cut off: it stops in the middle, at line {last} ({tree.message})"
            )
        elif tree.beyond:
            code, message, fix = tree.beyond, tree.message, tree.fix
        return draft.with_findings(STAGE, [Finding(code, message, fix, tree.line, tree.column)])
    draft = _repair(replace(draft, tree=tree), _REPAIRS)
    draft = draft if draft.candidate.helpers else _repair(draft, _REPAIRS_OF_ONE)
    return draft.with_findings(STAGE, _shape(draft))


def _repair(draft: Draft, repairs: Sequence[Repair]) -> Draft:
    for code, message, repair in repairs:
        text = repair(draft.text, draft.candidate.name) if draft.rules.makes(code) else draft.text
        draft = draft.with_fix(code, message, text) if text != draft.text else draft
    return draft


def _size(draft: Draft) -> Iterator[Finding]:
    try:
        size = len(draft.text.encode("utf-8"))
    except UnicodeEncodeError:
        yield Finding(
            "not-text",
            "the code holds half a character (a lone surrogate)",
            "send valid Unicode text",
        )
        return
    limit = draft.rules.module_bytes if draft.policy == "import" else draft.rules.candidate_bytes
    if size > limit:
        message = f"the code is {size:,} bytes long; at most {limit:,} are read"
        yield Finding("too-long", message, "split it into smaller functions")
    elif "\0" in draft.text:
        yield Finding("not-text", "the code holds a NUL byte", "send plain Python text")
    elif not draft.text.strip():
        yield Finding(
            "no-function",
            "there is no code",
            f"send the whole source, from `def {draft.candidate.name}(…)`",
        )


def _names(draft: Draft) -> Iterator[Finding]:
    name, module = draft.candidate.name, draft.candidate.module
    reason = _bad_name(name, draft.snapshot.reserved)
    if draft.policy == "import" and name in BUILTINS:
        message = f"`{name}` hides the builtin of that name from the other functions of its module"
        yield Finding("hides-builtin", message, "rename it, unless that is meant")
    elif reason:
        yield Finding(
            "bad-name", f"the function cannot be called `{name}`: {reason}", "choose another name"
        )
    if caller := caller_of(name):
        what = f"the function cannot be called `{name}`: {caller} calls it by that name, outside of the sandbox"
        yield Finding("bad-name", what, f"choose another name, say `my_{name}`")
    unusable = check_module_name(module)
    if unusable:
        yield Finding(
            "bad-module",
            f"the module cannot be `{module[:80]}`: {unusable.message}",
            unusable.fix or "",
        )
    if name in draft.snapshot.helpers:
        message = f"there is already a helper `{name}` (helpers/{name}.toml), which agents call by that name"
        yield Finding("name-taken", message, "choose another name")
    present = draft.snapshot.functions.get(name)
    if present is None or (draft.candidate.replaces and present.module == draft.candidate.module):
        return
    fix = f'call replace_function or edit_function on "{name}" to change it, or choose another name'
    yield Finding(
        "name-taken", f"there is already a function `{name}` ({present.path}:{present.line})", fix
    )


def _bad_name(name: str, reserved: frozenset[str]) -> str:
    if not name.isascii() or not NAME.match(name):
        return (
            "a name is at most 64 ASCII letters, digits and underscores, and begins with no digit"
        )
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        return "it is a word of the Python language"
    if name in BUILTINS:
        return "it would hide the builtin of that name"
    if name in reserved:
        return "a meta-function, or one that edits memory, has that name"
    if name.startswith("_"):
        return "a leading underscore keeps a function private"
    return ""


def _of_flaw(flaw: Flaw) -> Finding:
    return Finding(flaw.code, flaw.description, flaw.fix, flaw.line, flaw.column)


def _shape(draft: Draft) -> Iterator[Finding]:
    assert draft.tree is not None
    fix = "move it into the function, or leave it out; only imports, constants, classes and functions stand at the top"
    for node in draft.tree.body:
        value = (
            node.value.value
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            else None
        )
        if isinstance(value, str) or isinstance(node, _BINDING) or is_import(node):
            continue
        message = (
            f"`{bare_lines(ast.unparse(node))[0][:80]}` would run whenever the module is imported"
        )
        yield Finding("top-level-statement", message, fix, node.lineno, node.col_offset + 1)
    name, helpers = draft.candidate.name, draft.candidate.helpers
    named = [node for node in functions(draft.tree) if node.name not in helpers]
    public = [node for node in named if node.name == name or not node.name.startswith("_")]
    others = sorted({node.name for node in public} - {name})
    promised = [node for node in public if node.name == name]
    listed = ", ".join(f"`{extra}`" for extra in others)
    if not promised and not others:
        fix = f"write `def {name}(…):` at the top level"
        yield Finding("no-function", f"the code defines no function `{name}`", fix)
    elif not promised and len(others) == 1:
        message = f"the function was announced as `{name}`, but the code defines {listed}"
        yield Finding("wrong-name", message, f"write `def {name}(…)`, or announce it as {listed}")
    elif not promised:
        message = f"the code defines {listed}, but no `{name}`"
        yield Finding(
            "wrong-name",
            message,
            f"send only `def {name}(…)`; name helpers with a leading underscore",
        )
    elif others:
        message = f"the code defines {listed} besides `{name}`"
        fix = f"send one function at a time, or name helpers `_{others[0]}`"
        yield Finding("several-functions", message, fix, public[0].lineno)
    if len(promised) > 1:
        message = f"`{name}` is defined {len(promised)} times"
        yield Finding("several-functions", message, "keep one definition", promised[1].lineno)
