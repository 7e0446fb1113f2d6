"""Missing imports that only one standard module can provide, or that are of functions of the workspace."""

import ast
import sys
from typing import TYPE_CHECKING

from sandbox.wire.lines import lines_of

if TYPE_CHECKING:
    from .fix_view import View

# Imported whole where every use is `name.attribute`.
_MODULES_WORDS = """math cmath re json itertools collections random statistics string textwrap functools operator
decimal fractions calendar csv io os sys heapq bisect copy hashlib base64 binascii html unicodedata difflib uuid
zlib struct typing enum dataclasses contextlib zoneinfo secrets types numbers array"""
_MODULES = frozenset(_MODULES_WORDS.split())
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
# `datetime` and `time` are both a module and a class in it: what is asked of them tells which.
_OF_DATETIME_MODULE = frozenset({"datetime", "date", "timedelta", "timezone", "UTC"})
_OF_DATETIME_CLASS = frozenset(["now", "today", "strptime", "fromisoformat", "utcnow", "combine", "fromtimestamp"])
_OF_TIME_MODULE = frozenset(
    ["time", "sleep", "perf_counter", "monotonic", "strftime", "strptime", "gmtime", "localtime"]
)


def add_imports(view: "View") -> str:
    """Return the text with an import for each missing name that can mean one thing only."""
    lines = {line for name in view.missing if (line := _import_line(name, view.tree))}
    return insert_imports(view.text, view.tree, _together(lines)) if lines else view.text


def _together(lines: set[str]) -> list[str]:
    """Return the imports, one line for each module."""
    names: dict[str, list[str]] = {}
    for line in sorted(lines, key=lambda line: (line.startswith("from"), line)):
        head, _, name = line.partition(" import ")
        names.setdefault(f"{head} import " if name else line, []).extend([name] if name else [])
    return [head + ", ".join(several) for head, several in names.items()]


def importable(name: str) -> bool:
    """Check whether `add_imports` would import a missing name by itself."""
    return name in _NAMES or name == "datetime"


def _import_line(name: str, tree: ast.Module) -> str | None:
    if name in _NAMES:
        return f"from {_NAMES[name]} import {name}"
    return _module_line(name, tree) if name in _MODULES or name in ("datetime", "time") else None


def _module_line(name: str, tree: ast.Module) -> str | None:
    attributes, bare = _uses(name, tree)
    if name in _MODULES and not bare:
        return f"import {name}"
    if name == "datetime":
        if attributes and attributes <= _OF_DATETIME_MODULE and not bare:
            return "import datetime"
        return "from datetime import datetime" if attributes <= _OF_DATETIME_CLASS else None
    if name == "time" and attributes and attributes <= _OF_TIME_MODULE and not bare:
        return "import time"
    return None


def _uses(name: str, tree: ast.Module) -> tuple[set[str], bool]:
    """Return the attributes that are used of a name, and whether it is also used by itself."""
    owners = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    ]
    alone = sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree)) - len(owners)
    return {node.attr for node in owners}, alone > 0


def insert_imports(text: str, tree: ast.Module, imports: list[str]) -> str:
    """Return the text with more imports, after its docstring."""
    after = 0
    for node in tree.body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not is_docstring and not is_future:
            break
        after = node.end_lineno or after
    lines = lines_of(text)
    tail = "".join(lines[after:]).lstrip("\n")
    before = "".join(lines[:after]).rstrip("\n")
    head = f"{before}\n\n" if before else ""
    gap = "" if tail.startswith(("import ", "from ")) else "\n\n"
    return head + "".join(f"{line}\n" for line in imports) + gap + tail


def uses_workspace(view: "View") -> bool:
    """Check whether the text may name a function of the workspace that it does not import rightly."""
    if not view.functions:
        return False
    return any(_corrected(node, view) for node in view.tree.body) or any(map(view.module_with, view.missing))


def import_from_workspace(view: "View") -> str:
    """Return the text with imports of the functions of the workspace that it calls."""
    lines = lines_of(view.text)
    for node in view.tree.body:
        if corrected := _corrected(node, view):
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [f"{corrected}\n"] + [""] * (end - node.lineno)
    text = "".join(lines)
    if text != view.text:
        return text
    wanted = [(module, name) for name in sorted(view.missing) if (module := view.module_with(name))]
    imports = [f"from functions.{module} import {name}" for module, name in wanted]
    return insert_imports(view.text, view.tree, imports) if imports else view.text


def _corrected(node: ast.stmt, view: "View") -> str:
    """Return an import from a module of the workspace as it must be written; nothing if it is right."""
    if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
        return ""
    top = node.module.partition(".")[0]
    if top in sys.stdlib_module_names or (top == "functions" and node.module != "functions"):
        return ""
    modules = {view.module_with(alias.name) for alias in node.names}
    if len(modules) != 1 or "" in modules:
        return ""
    names = ", ".join(ast.unparse(alias) for alias in node.names)
    return f"from functions.{modules.pop()} import {names}"
