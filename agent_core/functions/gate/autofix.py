"""The stage "fix": mechanical problems are fixed; each fix is shown as a diff and can be switched off.

A repair must follow from the signature and the docstring's grammar, without interpreting sentences: `docstring-parser`
reads other styles, lines that begin with a parameter's name move under `Args:`, and a type in Python syntax becomes a
hint. It is kept only if the text still parses, computes the same, and keeps its examples and descriptions.
"""

import ast
import re
import sys
import sysconfig
import tokenize
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from importlib import import_module
from importlib.abc import SourceLoader
from importlib.machinery import ModuleSpec, PathFinder

import docstring_parser
from docstring_parser.common import DocstringParam, DocstringReturns, DocstringStyle

from agent_core.base import syntax
from agent_core.base.records import dataclass
from agent_core.base.syntax import escaped, stray_characters, tree_room
from agent_core.registry import docstring
from agent_core.registry.docstring import Described
from agent_core.registry.examples import find as find_examples
from agent_core.registry.module_edits import Brought, import_edits
from agent_core.registry.source import ParsedText, applied
from sandbox.wire.lines import bare_lines, lines_of, reader_of

from .capability import shares_state
from .draft import Draft
from .examples import DocstringText, offset, with_empty_docstring
from .tree import (
    BUILTINS,
    FunctionNode,
    bound_names,
    context_nodes,
    defaults,
    expression,
    find,
    function_in,
    functions,
    given_self,
    is_given_self,
    missing_names,
    nodes_of,
    parameters,
    parse,
    takes_self,
)


@dataclass(frozen=True, slots=True)
class View:
    """A draft before a fix, with its tree and the promised function."""

    draft: Draft
    tree: ast.Module
    node: FunctionNode

    @property
    def text(self) -> str:
        """The text to fix."""
        return self.draft.text

    @property
    def missing(self) -> set[str]:
        """The names that are not defined."""
        return missing_names(self.text, self.tree, self.draft.module_names)

    @property
    def described(self) -> Described:
        """The parsed content of the docstring."""
        return docstring.read(ast.get_docstring(self.node, clean=False))

    def module_with(self, name: str) -> str:
        """Return the other workspace module that has this function and can be imported from, or an empty text."""
        function, own = self.draft.snapshot.functions.get(name), self.draft.candidate
        if function is None or function.module == own.module or name == own.name:
            return ""
        is_ready = not function.takes_self or (
            name in given_self(self.tree) and not self.keeps_state(name)
        )
        return function.module if is_ready else ""

    def keeps_state(self, name: str) -> bool:
        """Check whether a workspace function has a state of its own, which code that runs elsewhere does not see."""
        return shares_state(self.draft.snapshot.functions[name], self.draft.snapshot)


def add_self(view: View) -> str:
    """Return the text with `self` as the first parameter, if the function uses `self` without defining it."""
    text, node = view.text, view.node
    if takes_self(node) or "self" not in view.missing:
        return text
    span = _parentheses(text, node)
    if span is None:
        return text
    place = span[0]
    tail = text[place:].lstrip()
    return text[:place] + ("self" if tail.startswith(")") else "self, ") + text[place:]


def pass_self(view: View) -> str:
    """Return the text with `self` passed on to the workspace functions that take it, where all uses are calls."""
    text, present = view.text, view.draft.snapshot.functions
    brought = [node for node in nodes_of(view.tree) if isinstance(node, ast.ImportFrom)]
    imported = {
        alias.name
        for node in brought
        if str(node.module).startswith("functions.")
        for alias in node.names
    }
    named = (missing_names(text, view.tree) | imported) & present.keys() - {
        view.draft.candidate.name
    }
    names = {name for name in named if present[name].takes_self and not view.keeps_state(name)}
    reads = (
        [node for node in nodes_of(view.tree) if isinstance(node, ast.Name) and node.id in names]
        if names
        else []
    )
    calls = (
        [node for node in context_nodes(view.node) if isinstance(node, ast.Call)] if reads else []
    )
    called = {id(node.func): node for node in calls}
    places = list[tuple[int, str]]()
    for read in reads:
        call = called.get(id(read))
        if call is None:
            return text  # it is passed on as a value, or called where there is no `self`
        if not is_given_self(call):
            place = (
                text.index("(", offset(text, read.end_lineno or 0, read.end_col_offset or 0)) + 1
            )
            places.append((place, "self, " if call.args or call.keywords else "self"))
    for place, inserted in sorted(places, reverse=True):
        text = text[:place] + inserted + text[place:]
    return text


def _parentheses(text: str, node: FunctionNode) -> tuple[int, int] | None:
    """Return the positions after the opening and the closing parenthesis of a function's parameters."""
    start = offset(text, node.lineno, node.col_offset)
    lines, depth, opened = lines_of(text[start:]), 0, 0
    try:
        for token in tokenize.generate_tokens(reader_of(text[start:])):
            if token.type == tokenize.OP and token.string in "()[]{}":
                at = start + sum(map(len, lines[: token.end[0] - 1])) + token.end[1]
                depth += 1 if token.string in "([{" else -1
                opened = opened or at
                if depth == 0:
                    return opened, at
    except (tokenize.TokenError, SyntaxError):
        pass
    return None


_LIBRARY = [sysconfig.get_path("stdlib")]
_DEEPEST_MODULE = 3  # names, as in `xml.etree.ElementTree`
_NAMES = {
    name: module
    for module, names in {
        "base64": "b64encode b64decode",
        "bisect": "bisect_left bisect_right insort",
        "collections": "Counter defaultdict deque OrderedDict namedtuple ChainMap",
        "collections.abc": "Callable Iterable Iterator Mapping Sequence",
        "contextlib": "suppress",
        "copy": "deepcopy",
        "dataclasses": "dataclass",
        "datetime": "date timedelta timezone",
        "decimal": "Decimal ROUND_HALF_UP ROUND_HALF_EVEN ROUND_DOWN localcontext getcontext",
        "difflib": "SequenceMatcher unified_diff get_close_matches",
        "enum": "Enum IntEnum StrEnum",
        "fractions": "Fraction",
        "functools": "reduce lru_cache partial cmp_to_key",
        "heapq": "heappush heappop heapify nlargest nsmallest",
        "itertools": "permutations combinations product chain groupby accumulate islice zip_longest pairwise"
        " combinations_with_replacement takewhile dropwhile starmap",
        "math": "sqrt gcd factorial ceil floor comb perm isqrt lcm log2 log10 hypot isclose prod pi",
        "operator": "itemgetter attrgetter",
        "pathlib": "Path PurePath",
        "statistics": "mean median mode stdev pstdev fmean variance",
        "string": "ascii_lowercase ascii_uppercase ascii_letters digits punctuation",
        "typing": "Any Optional Union List Dict Tuple Set FrozenSet Literal Annotated TypedDict NamedTuple",
        "urllib.parse": "quote unquote urlparse urlencode parse_qs urljoin urlsplit",
        "uuid": "UUID",
        "zoneinfo": "ZoneInfo",
    }.items()
    for name in names.split()
}


def add_imports(view: View) -> str:
    """Return the text with an import for each missing name that has only one possible meaning."""
    heads: dict[str, list[str]] = {}
    nodes = nodes_of(view.tree)
    for name in sorted(view.missing):
        modules = _modules_used(name, nodes)
        is_class = (
            name == "datetime" and not modules and _attributes(name, nodes) <= {*dir(datetime)}
        )
        if module := _NAMES.get(name) or (name if is_class else ""):
            heads.setdefault(f"from {module} import ", []).append(name)
        for module in modules if name not in _NAMES else ():
            heads[f"import {module}"] = []
    lines = [
        head + ", ".join(names)
        for head, names in sorted(heads.items(), key=lambda row: (bool(row[1]), row[0]))
    ]
    return _with_imports(view, lines)


def _modules_used(name: str, nodes: Sequence[ast.AST]) -> list[str]:
    """Return the modules of the standard library to import if each use of a name is `name.attribute` of one of them.

    The list is empty if not every use is.
    """
    if name not in sys.stdlib_module_names or name.startswith("_"):
        return []
    users = {id(node) for node in nodes if isinstance(node, ast.Name) and node.id == name}
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    if len(users) > sum(id(node.value) in users for node in attributes):
        return []
    modules = {name: users}
    for _ in range(_DEEPEST_MODULE):
        for module, users in [*modules.items()]:
            for node in attributes:
                if id(node.value) not in users:
                    continue
                inner = f"{module}.{node.attr}"
                if _spec(inner) is not None:
                    modules.setdefault(inner, set()).add(id(node))
                elif node.attr not in _names_in_module(module):
                    return []
    return sorted(
        module for module in modules if not any(each.startswith(f"{module}.") for each in modules)
    )


def _attributes(name: str, nodes: Sequence[ast.AST]) -> set[str]:
    """Return the attributes of a name that are used."""
    return {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == name
    }


def _spec(module: str) -> ModuleSpec | None:
    """Return where the source of a module of the standard library is; nothing of it runs."""
    package, _, _ = module.rpartition(".")
    if not package:
        return PathFinder.find_spec(module, _LIBRARY)
    outer = _spec(package)
    folders = outer.submodule_search_locations if outer is not None else None
    return PathFinder.find_spec(module, [*folders]) if folders else None


@lru_cache(maxsize=512)
def _names_in_module(module: str) -> frozenset[str]:
    """Return the names that a module of the standard library may have. Nothing runs that is written in Python.

    Words in texts of its statements count: some modules set their names by them.
    """
    spec = _spec(module)
    loader = spec.loader if spec is not None else None
    if spec is None or not isinstance(loader, SourceLoader):
        return _names_of_compiled(module)
    package = module if spec.submodule_search_locations else module.rpartition(".")[0]
    tree = syntax.parse(loader.get_source(module) or "")
    names = {*bound_names(tree)}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for node in ast.walk(statement):
            match node:
                case ast.Constant(value=str(word)) if word.isidentifier():
                    names.add(word)
                case ast.ImportFrom(module=other, names=[ast.alias(name="*")], level=level):
                    names |= _names_in_module(f"{package}.{other}" if level else other or "")
    return frozenset(names)


def _names_of_compiled(module: str) -> frozenset[str]:
    """Return the names of a module of the standard library that is not written in Python; none if it is not there."""
    try:
        return frozenset(dir(import_module(module)))
    except ImportError:
        return frozenset()


def _with_imports(view: View, imports: list[str]) -> str:
    text = ParsedText.of(view.text, view.tree)
    return (
        applied(text.lines, import_edits(text, Brought((), tuple(imports))))
        if imports
        else view.text
    )


def import_from_workspace(view: View) -> str:
    """Return the text with imports of the workspace functions that it calls."""
    lines = lines_of(view.text)
    for node in view.tree.body:
        if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
            continue
        top = node.module.partition(".")[0]
        if top in sys.stdlib_module_names or (top == "functions" and node.module != "functions"):
            continue
        modules = {view.module_with(alias.name) for alias in node.names}
        if len(modules) == 1 and "" not in modules:
            names, end = ", ".join(map(ast.unparse, node.names)), node.end_lineno or node.lineno
            corrected = f"from functions.{modules.pop()} import {names}\n"
            lines[node.lineno - 1 : end] = [corrected] + [""] * (end - node.lineno)
    text = "".join(lines)
    if text != view.text:
        return text
    wanted = [(module, name) for name in sorted(view.missing) if (module := view.module_with(name))]
    return _with_imports(
        view, [f"from functions.{module} import {name}" for module, name in wanted]
    )


def add_description(view: View) -> str:
    """Return the text with the separate description as the docstring, if the function has none or only examples."""
    text, words = view.text, view.draft.candidate.description.strip()
    if not words or ">>>" in words or view.described.text:
        return text
    docstring = DocstringText.of(text, view.node)
    if docstring is None and not ast.get_docstring(view.node, clean=False):
        text = with_empty_docstring(text, view.node)
        node = function_in(text, view.node.name)
        docstring = DocstringText.of(text, node) if node else None
    if docstring is None or docstring.is_raw:
        return view.text
    examples = _trim(docstring.lines)
    description: list[str] = []
    for line in docstring.escaped(bare_lines(words)):
        strays = {*stray_characters(line)}
        description.append(
            "".join(escaped(char) if at in strays else char for at, char in enumerate(line)).strip()
        )
    return docstring.with_lines(text, [*description, *([""] if examples else []), *examples])


_HEADER = re.compile(r"^(Args|Arguments|Parameters|Params|Inputs?)\s*:\s*$", re.IGNORECASE)
_UNDERLINE = re.compile(r"^-{3,}\s*$")
_INDENT = "    "
_UNTYPED = f"{_INDENT}: "
_OTHER_STYLES = frozenset({"rest", "epydoc", "numpydoc"})


def to_google(view: View) -> str:
    """Return the text with a reST, Epydoc or NumPy docstring converted to Google style."""
    written = _movable(view) if _OTHER_STYLES & {*view.described.styles} else None
    if written is None:
        return view.text
    lines = written.lines
    end = next((at for at, line in enumerate(lines) if line.lstrip().startswith(">>>")), len(lines))
    while end and (  # the heading of the examples stays with them
        not lines[end - 1].strip()
        or _UNDERLINE.match(lines[end - 1])
        or lines[end - 1].strip().rstrip(":") == "Examples"
    ):
        end -= 1
    try:
        parsed = docstring_parser.parse("\n".join(lines[:end]))
    except docstring_parser.ParseError:
        return view.text
    is_other = parsed.style is not None and parsed.style.name.lower() in _OTHER_STYLES
    if not is_other or not (parsed.params or parsed.returns or parsed.raises):
        return view.text
    hinted = _hinted_parameters(view)
    for part in parsed.meta:
        if isinstance(part, DocstringParam):
            part.is_optional = False  # the signature says it
            part.type_name = None if part.arg_name in hinted else part.type_name
            part.description = " ".join((part.description or "").split())
        elif isinstance(part, DocstringReturns) and view.node.returns is not None:
            part.type_name = None
    composed = _trim(bare_lines(docstring_parser.compose(parsed, style=DocstringStyle.GOOGLE)))
    # The package writes a colon before what is returned even if no type stands before it.
    composed = [
        f"{_INDENT}{row.removeprefix(_UNTYPED)}" if row.startswith(_UNTYPED) else row
        for row in composed
    ]
    examples = lines[end:]
    return written.with_lines(view.text, [*composed, *([""] if examples else []), *_trim(examples)])


def _movable(view: View) -> DocstringText | None:
    """Return the docstring if no code shares its lines."""
    written = DocstringText.of(view.text, view.node)
    return None if written is None or written.margin.strip() else written


def _hinted_parameters(view: View) -> set[str]:
    return {
        parameter.arg for parameter in parameters(view.node) if parameter.annotation is not None
    }


def describe_parameters(view: View) -> str:
    """Return the text with parameter descriptions from elsewhere in the docstring (`x: …`) moved under `Args:`."""
    descriptions, written = view.described.parameters, _movable(view)
    missing = [
        parameter.arg for parameter in parameters(view.node) if not descriptions.get(parameter.arg)
    ]
    if written is None or not missing:
        return view.text
    hinted, stray = _hinted_parameters(view), _description_of(missing)
    kept: list[str] = []
    entries: dict[str, list[str]] = {}
    at, depth, entry = (
        -1,
        0,
        None,
    )  # where the first one was, and the indentation and lines of the current one
    for line in written.lines:
        match = stray.match(line)
        if match and match["name"] not in entries:
            at = len(kept) if at < 0 else at
            kind = (
                f" ({match['kind'][1:-1]})" if match["kind"] and match["name"] not in hinted else ""
            )
            entry = entries[match["name"]] = [f"    {match['name']}{kind}: {match['text'].strip()}"]
            depth = len(match["indent"])
        elif (
            entry and line.strip() and len(line) - len(line.lstrip()) > depth and ">>>" not in line
        ):
            entry.append(f"        {line.strip()}")
        else:
            entry = None
            kept.append(line)
    if not entries:
        return view.text
    headers = [index for index, line in enumerate(kept) if _HEADER.match(line)]
    order = [parameter.arg for parameter in parameters(view.node)]
    described = [line for name in sorted(entries, key=order.index) for line in entries[name]]
    if headers and descriptions:
        return written.with_lines(
            view.text, [*kept[: headers[0] + 1], *described, *kept[headers[0] + 1 :]]
        )
    at = headers[0] if headers else at
    after = kept[at + 1 :] if headers else kept[at:]
    blocks = [_trim(kept[:at]), ["Args:", *described], _trim(after)]
    return written.with_lines(
        view.text, [line for block in blocks if block for line in ["", *block]][1:]
    )


def _description_of(parameters: Sequence[str]) -> re.Pattern[str]:
    """Return the pattern of a line that describes one of the parameters."""
    names = "|".join(map(re.escape, parameters))
    return re.compile(
        rf"^(?P<indent>\s*+)(?:[-*•]\s++)?[`*]*+(?P<name>{names})[`*]*+\s*+(?P<kind>\([^)]*+\)|\{{[^}}]*+\}})?\s*+"
        rf"(?::|(?<=\s)[-–—]{{1,2}}\s)\s*+(?P<text>\S.*)$"
    )


def _trim(lines: list[str]) -> list[str]:
    """Return the lines without leading and trailing blank lines."""
    written = [at for at, line in enumerate(lines) if line.strip()]
    return lines[written[0] : written[-1] + 1] if written else []


_TYPES = frozenset(
    [
        "int",
        "str",
        "float",
        "bool",
        "list",
        "dict",
        "set",
        "tuple",
        "bytes",
        "frozenset",
        "None",
        "Any",
    ]
)
_OLD = re.compile(r"\b(?:List|Dict|Set|Tuple|FrozenSet)\b")
_LONGEST = 200  # characters of a type in a docstring


def hint_from_docstring(view: View) -> str:
    """Return the text with the docstring's types as hints where the signature has none."""
    text, node, names = view.text, view.node, view.draft.module_names | bound_names(view.tree)
    edits = list[tuple[int, str]]()
    for parameter in parameters(node):
        hint = _hint(view.described.types.get(parameter.arg, ""), names)
        if hint and parameter.annotation is None:
            default = defaults(node.args).get(parameter.arg)
            may_be_none = (
                isinstance(default, ast.Constant) and default.value is None and "None" not in hint
            )
            end = offset(text, parameter.end_lineno or 0, parameter.end_col_offset or 0)
            edits.append((end, f": {hint} | None" if may_be_none else f": {hint}"))
    result = _hint(view.described.return_type, names) if node.returns is None else None
    span = _parentheses(text, node) if result else None
    edits += [(span[1], f" -> {result}")] if span else []
    for at, hint in sorted(edits, reverse=True):
        # With a hint, the equals sign of a default is surrounded by spaces.
        text = (
            text[:at]
            + hint
            + (re.sub(r"\A\s*=\s*", " = ", text[at:]) if hint.startswith(":") else text[at:])
        )
    return text


def _hint(named: str, names: frozenset[str] | set[str]) -> str | None:
    """Return the hint for a docstring's type if it is unambiguous, that is, in Python syntax."""
    if len(named) > _LONGEST:
        return None
    words = re.sub(
        r",\s*(?:optional|required|default\b.*)$",
        "",
        named.strip().strip("`{}"),
        flags=re.IGNORECASE,
    )
    words = re.sub(r"\bOptional\[(.*)\]$", r"\1 | None", re.sub(r"\s+or\s+", " | ", words.strip()))
    words = _OLD.sub(lambda match: match[0].lower(), words)
    node = expression(words)
    return words if node is not None and _is_type(node, names) else None


def _is_type(node: ast.expr, names: frozenset[str] | set[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return (name in _TYPES and name not in names) or (
                name not in BUILTINS and name[:1].isupper() and (name in names or name in _NAMES)
            )
        case ast.Constant(value=value):
            return value is None or value is ...
        case ast.BinOp(left=left_operand, op=ast.BitOr(), right=right):
            return _is_type(left_operand, names) and _is_type(right, names)
        case ast.Subscript(value=ast.Name() as value, slice=ast.Tuple(elts=inner)):
            return _is_type(value, names) and all(_is_type(part, names) for part in inner)
        case ast.Subscript(value=ast.Name() as value, slice=inner):
            return _is_type(value, names) and _is_type(inner, names)
        case _:
            return False


_ROUNDS = 4
# Code that uses these can depend on docstrings, hints or missing names.
_WATCHING = frozenset(
    [
        "__doc__",
        "__annotations__",
        "NameError",
        "globals",
        "signature",
        "getfullargspec",
        "get_annotations",
    ]
) | {"get_type_hints", "getdoc", "getsource", "validate_call", "typechecked", "beartype"}


# Code, message, and what returns the fixed text, or the text unchanged.
REPAIRS: tuple[tuple[str, str, Callable[[View], str]], ...] = (
    ("passed-self", "passed `self` on to the functions that take it", pass_self),
    ("missing-self", "added the parameter `self`, which the body uses", add_self),
    (
        "given-description",
        "wrote the description that came with it as its docstring",
        add_description,
    ),
    ("docstring-style", "wrote the docstring's sections in the Google style", to_google),
    (
        "docstring-sections",
        "moved the descriptions of parameters under `Args:`",
        describe_parameters,
    ),
    ("docstring-types", "wrote the types that the docstring names as hints", hint_from_docstring),
    (
        "workspace-import",
        "added the imports of the workspace's functions that it calls",
        import_from_workspace,
    ),
    ("missing-import", "added the imports of standard names that it uses", add_imports),
)


def fix(draft: Draft) -> Draft:
    """Return the draft with every possible fix, repeated up to `_ROUNDS` times until nothing changes."""
    if draft.tree is None or draft.function is None:
        return draft.skip("there is no function to fix")
    repairs = [repair for repair in REPAIRS if draft.rules.makes(repair[0])]
    for _ in range(_ROUNDS):
        before = draft.text
        for code, message, repair in repairs:
            assert draft.tree is not None
            assert draft.function is not None
            text = repair(View(draft, draft.tree, draft.function))
            if text != draft.text and keeps_meaning(draft.text, text, draft.candidate.name):
                draft = draft.with_fix(code, message, text)
        if draft.text == before:
            break
    return draft


def keeps_meaning(before: str, after: str, name: str) -> bool:
    """Check whether the second text computes the same, has the same examples, and describes no fewer parameters."""
    old, new = parse(before), parse(after)
    if not isinstance(old, ast.Module) or not isinstance(new, ast.Module):
        return False
    old_node, new_node = find(old, name), find(new, name)
    if old_node is None or new_node is None or computation(old) != computation(new):
        return False
    old_words, new_words = ast.get_docstring(old_node) or "", ast.get_docstring(new_node) or ""
    if old_words == new_words:
        return True
    promised, described = docstring.read(old_words).parameters, docstring.read(new_words).parameters
    examples = iter(_examples(new_words))
    return all(
        described.get(parameter) == text for parameter, text in promised.items() if text
    ) and all(example in examples for example in _examples(old_words))


@tree_room.kept(8)
def computation(tree: ast.Module) -> str:
    """Return the tree's dump without what no computation needs: docstrings, hints, imports, `self` passed along."""
    mentioned = [
        node for node in nodes_of(tree) if isinstance(node, ast.Name | ast.Attribute | ast.alias)
    ]
    names = (getattr(node, field, "") for node in mentioned for field in ("id", "attr", "name"))
    if not _WATCHING.isdisjoint(name.rpartition(".")[2] for name in names):
        return ast.dump(tree)
    bare = syntax.parse(ast.unparse(tree))
    bare.body = [node for node in bare.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    for node in functions(bare):
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        if takes_self(node):
            node.args.args = node.args.args[1:]
        node.returns = None
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
    for call in (
        node for node in ast.walk(bare) if isinstance(node, ast.Call) and is_given_self(node)
    ):
        call.args = call.args[1:]
    return ast.dump(bare)


def _examples(words: str) -> list[tuple[str, str]]:
    """Return the examples of a docstring that have a result; none if it cannot be parsed."""
    try:
        return [
            (example.source, example.want.partition("```")[0])
            for example in find_examples(words)
            if example.want
        ]
    except ValueError:
        return []
