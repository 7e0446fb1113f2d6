"""Rules that no linter has: modules import in no circle, few open files, parameters are well named."""

import ast
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import agent_core
from agent_core.base.extensions import (
    DOORS,
    EMBEDDERS,
    FOREIGN,
    LEVELS,
    MODELS,
    MODES,
    STORES,
    offers,
)
from tests.kit.trees import module_trees

TOP = Path(__file__).parents[2]
ROOT = TOP / "agent_core"
SHELL = TOP / "knapper"
_OPENS = {"read_text", "read_bytes", "write_text", "write_bytes", "open"}
_NO_PATHS = {
    "archive",
    "tarfile",
    "debug",
    "_other_mode",
    "mode",
    "models",
    "self",
    "cls",
    "_prompt",
}  # their `open` opens no path
ALLOWED = {
    "what differs between systems, for those who are listed here": "base/folders base/machine",
    "a file of this package, or of one that comes with it": """
        base/language
        memory/embedding/models memory/search
        model/dialect
        storage/sqlite/connection
        workspace/presets/__init__ workspace/scaffold""",
    "a file that the human names in a command, which may be a pipe or a link": """
        functions/service/file_checks knapper/shell/commands/setup
        memory/sources/places workspace/portable/text""",
    "a file that this program made for itself, in a folder of its own": """
        access/packages/environment access/packages/resolution
        operations/manual_edits knapper/prompt/plain
        api/workspace_operations
        workspace/state_store""",
    "a file of the system": """
        knapper/__main__ base/own_environment base/own_installation
        knapper/shell/cli knapper/prompt/prompt""",
    "opened through no link and without waiting, for more than to read it whole": """
        access/broker/broker access/grants/files access/grants/record access/packages/environment
        base/seal storage/folder
        views/faults api/serving_files storage/picture_files storage/sqlite/recovery storage/value_files
        workspace/forgetting""",
    "the one place": "base/plain_files",
}


def opens_a_file(node: ast.AST) -> bool:
    """Check whether a node of the code opens a path."""
    match node:
        case ast.Call(func=ast.Name(id="open")):
            return True
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name), attr="open")
        ):
            return name not in _NO_PATHS and not name[0].isupper()
        case ast.Call(func=ast.Attribute(attr=attribute)):
            return attribute in _OPENS
        case _:
            return False


CUSTOMARY = {"self", "event", "error", "plan", "ctx"}
"""Customary names for a whole family of classes, and names that third-party packages require."""


def words(name: str) -> set[str]:
    found = {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
    return found | {word.removesuffix("s") for word in found}


@dataclass
class Survey:
    """What the modules of the program have: those that open files, public classes, and parameters with their class.

    `tops` has the imports at the top of each module, those for type checkers included; `runs` has all that run, also
    in bodies, without those for type checkers, and `late` the modules that are imported when they are first used.
    """

    tops: dict[Path, list[ast.Import | ast.ImportFrom]] = field(default_factory=dict)
    runs: dict[Path, list[ast.Import | ast.ImportFrom]] = field(default_factory=dict)
    late: dict[Path, set[str]] = field(default_factory=dict)
    opening: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    parameters: list[tuple[str, str, str]] = field(default_factory=list)

    def see(self, path: Path, node: ast.AST) -> None:
        """Record a node of a module."""
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            self.classes.add(node.name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith(
            "__"
        ):
            for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                self._parameter(path, arg)
        if path.is_relative_to(ROOT) and opens_a_file(node):
            self.opening.add(path.relative_to(ROOT).with_suffix("").as_posix())
        if path.is_relative_to(SHELL) and opens_a_file(node):
            self.opening.add(path.relative_to(TOP).with_suffix("").as_posix())

    def _parameter(self, path: Path, arg: ast.arg) -> None:
        match arg.annotation:
            case ast.Name(id=name) | ast.Constant(value=str(name)) if not arg.arg.startswith("_"):
                self.parameters.append((f"{path.relative_to(TOP)}:{arg.lineno}", arg.arg, name))


def running(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a module but for those that only a type checker reads."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=others):
                nodes = [part for other in others for part in (other, *ast.walk(other))]
                yield from nodes
            case _:
                yield node
                yield from running(node)


@cache
def survey() -> Survey:
    found = Survey()
    for path, tree in module_trees():
        found.tops[path] = [
            node
            for part in tree.body
            for node in (part, *(part.body if isinstance(part, ast.If | ast.Try) else ()))
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        found.runs[path] = list[ast.Import | ast.ImportFrom]()
        found.late[path] = set()
        for node in running(tree):
            match node:
                case ast.Import() | ast.ImportFrom():
                    found.runs[path].append(node)
                case ast.Call(func=ast.Name(id="LateModule"), args=[ast.Constant(value=str(name))]):
                    found.late[path].add(name)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.see(path, node)
    return found


def test_whoever_opens_a_file_by_itself_has_a_reason() -> None:
    allowed = {name for names in ALLOWED.values() for name in names.split()}
    assert survey().opening - allowed == set(), (
        "use agent_core.base.plain_files, or give a reason in ALLOWED"
    )
    assert allowed - survey().opening == set(), "these open no file any more"


def test_every_parameter_shares_a_word_with_its_class() -> None:
    strange = [
        f"{where} {arg}: {name}"
        for where, arg, name in survey().parameters
        if name in survey().classes
        and len(name) > 2
        and arg not in CUSTOMARY
        and not words(arg) & words(name)
    ]
    assert strange == []


def imported(
    imports: Iterable[ast.Import | ast.ImportFrom], package: list[str], modules: Collection[str]
) -> Iterator[str]:
    """Yield the modules that are imported in a package."""
    for node in imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            names = [f"{module}.{alias.name}" for alias in node.names]
            yield from (name if name in modules else module for name in names)


THIRD_PERSON = re.compile(r"\b(a|no|only a) (human|person)\b", re.IGNORECASE)
OTHER_READERS = {
    "a model, which is not the one who is asked": """
        context/presentation functions/debug/stop functions/gate/meaning functions/gate/reader
        functions/service/change_texts functions/service/example_regression memory/classes workspace/supervision
        operations/commands/agents api/page_operations functions functions/asking context/folds""",
    "whoever builds the confined interpreter": "portable/component",
    "a program that works for somebody": """
        frameworks/turn_adapter mcp/door""",
}


def test_who_reads_at_a_terminal_is_not_spoken_of_as_a_human() -> None:
    told = set()
    for path, tree in module_trees("uman", "erson"):
        bare = {
            id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
        }  # docstrings
        texts = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        if any(THIRD_PERSON.search(str(node.value)) for node in texts if id(node) not in bare):
            told.add("/".join(path.relative_to(TOP).with_suffix("").parts[1:]))
    assert told == {name for names in OTHER_READERS.values() for name in names.split()}


@pytest.mark.parametrize("which", ["at the top", "when they run"])
def test_no_files_import_each_other_in_a_circle(which: str) -> None:
    nodes = survey().tops if which == "at the top" else survey().runs
    modules = {
        ".".join(path.relative_to(TOP).with_suffix("").parts).removesuffix(".__init__"): path
        for path in nodes
    }
    late = survey().late if which == "when they run" else {}
    imports = {
        name: {
            *imported(nodes[path], [*path.relative_to(TOP).parent.parts], modules),
            *late.get(path, ()),
        }
        - {name}
        for name, path in modules.items()
    }
    TopologicalSorter(imports).prepare()  # its error names the files of a circle


def test_type_checkers_are_told_the_same_names_and_no_more_than_twenty() -> None:
    stub = ast.parse(Path(agent_core.__file__).with_suffix(".pyi").read_text()).body
    imports = [node for node in stub if isinstance(node, ast.ImportFrom)]
    imported = {each.asname or each.name for node in imports for each in node.names}
    assert imported == {*agent_core.__all__}
    assert len(imported) <= 20
    assert [*agent_core.__all__] == sorted(agent_core.__all__)


CORE = ("agent_core/", "knapper/", "meta_functions/", "sandbox/")
OTHERS = ("agent_core.workspace.portable", "mcp.toml")
"""A string that only looks like the name of an extension, and a file that no function may write, whoever reads it."""
WORDS = {
    "constrained": (),
    "exchange": (),
    "local": ("base/network_variables",),
    "server": ("operations/command_context",),
    "tending": (),
}
"""Names that are words of English, too, which a sentence may have: they count where they are written as one types them.
For each, the modules where the whole string means something else.
"""


def named_in(text: str, names: Collection[str]) -> set[str]:
    """Return the extensions that a string names."""
    found = {*names} & {*re.findall(r"\w+", text)}
    return {
        name
        for name in found
        if name not in WORDS or text == name or re.search(rf"(?<![\w./-]){name}(/|://|`)", text)
    }


def test_no_string_of_the_core_names_an_extension() -> None:
    folders = [path.parent.name for path in (TOP / "knapper_ext").glob("*/__init__.py")]
    hooks = (DOORS, EMBEDDERS, FOREIGN, LEVELS, MODELS, MODES, STORES)
    names = {*folders, *(name for hook in hooks for name in offers(hook))}
    told = set()
    for path, tree in module_trees(*names):
        bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            match node:
                case ast.Constant(value=str(text)) if id(node) not in bare and text not in OTHERS:
                    module = "/".join(path.relative_to(TOP).with_suffix("").parts[1:])
                    named = {
                        name for name in named_in(text, names) if module not in WORDS.get(name, ())
                    }
                    told |= {f"{path.relative_to(TOP)}:{node.lineno} {name}" for name in named}
    assert {place for place in told if place.startswith(CORE)} == set()
    assert told, "an extension names itself"


def test_every_file_of_a_package_is_in_the_wheel() -> None:
    setuptools = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    missing = []
    for package in ("agent_core", "knapper", "knapper_ext", "meta_functions", "sandbox"):
        assert f"{package}*" in setuptools["packages"]["find"]["include"]
        patterns = setuptools["package-data"].get(package, [])
        shipped = {path for pattern in patterns for path in (TOP / package).glob(pattern)}
        files = [path for path in (TOP / package).rglob("*") if path.is_file()]
        missing += [path for path in files if path.suffix not in (".py", ".pyc")]
        missing = [path for path in missing if path not in shipped]
    assert missing == []


PARSERS = {"ast.parse", "symtable.symtable", "compile", "eval", "exec"}
PARSING = {name.rpartition(".")[2] for name in PARSERS}


def test_python_is_parsed_in_one_place() -> None:
    found: dict[str, set[str]] = {}
    rooms = ("agent_core", "meta_functions", "knapper")
    for path, tree in module_trees("parse", "symtable", "compile", "eval", "exec", rooms=rooms):
        calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        # Written out only where it may be one of them: that takes long.
        named = [
            ast.unparse(called)
            for called in calls
            if getattr(called, "attr", getattr(called, "id", "")) in PARSING
        ]
        if names := {*named} & PARSERS:
            found["/".join(path.relative_to(TOP).with_suffix("").parts[1:])] = names
    assert found == {"base/syntax": {"ast.parse", "symtable.symtable"}}


def test_a_text_becomes_a_literal_only_as_a_tree_that_was_read() -> None:
    """`ast.literal_eval` parses a text by itself, without limits, but takes a tree as it is."""
    for path, tree in module_trees("literal_eval", rooms=("agent_core",)):
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(attr="literal_eval"), args=[argument]):
                    text = ast.unparse(argument)
                    assert text in LITERAL_TREES or text.startswith("syntax.parse("), (path, text)


LITERAL_TREES = {"node", "value", "node.value", "keyword.value"}


DECIDED_BY_THE_POLICY = {
    ("growth", "mode"),
    ("grants", "ask"),
    ("grants", "same_reach"),
    ("turn", "mode"),
}


def test_only_the_policy_of_a_turn_decides_what_is_asked_and_grown() -> None:
    """The settings are read once, where the policy is made: all else would decide without the turn's own."""
    places = set()
    for path, tree in module_trees("mode", "ask", "same_reach"):
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(value=ast.Attribute(attr=table), attr=key):
                    if (table, key) in DECIDED_BY_THE_POLICY:
                        places.add(f"{path.relative_to(TOP)}:{node.lineno}")
    assert {place.partition(":")[0] for place in places} == {"agent_core/base/settings.py"}, places


def test_whatever_keeps_a_policy_was_given_it() -> None:
    """A policy is made from settings, from its stored form, or from another one; nowhere else from its parts."""
    made = set()
    for path, tree in module_trees("policy import", "class Policy:"):
        if path.parts[-2] != "base" and "agent_core.base.policy" not in path.read_text("utf-8"):
            continue
        for node in ast.walk(tree):
            name = node.func if isinstance(node, ast.Call) else None
            if isinstance(name, ast.Name) and name.id == "Policy":
                made.add(str(path.relative_to(TOP)))
    assert made == {"agent_core/base/policy.py", "agent_core/base/settings.py"}
