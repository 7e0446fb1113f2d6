"""Only one place in the program splits a source into lines, and it does so as Python does."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
THE_PLACE = "sandbox/wire/lines.py"

# Other uses of line splitting, with the reason why the text is no source: whole files, so that the list stays short.
NO_SOURCES = {
    "agent_core/base/matching.py": "texts of the record",
    "knapper_ext/mcp/wire.py": "HTTP",
    "agent_core/client/client.py": "HTTP",
    "agent_core/operations/commands/memory.py": "a transcript",
    "knapper/terminal/dialog.py": "what was typed at a terminal",
    "agent_core/views/styled_lines.py": "a warning of the program",
    "knapper/prompt/slash.py": "what a command printed",
    "agent_core/model/client.py": "rows of a .jsonl file",
    "agent_core/workspace/forgetting.py": "logs, and what was typed",
    "agent_core/functions/gate/examples.py": "the value of a docstring: Python has read its line ends already",
    "knapper/prompt/": "rows for the screen, made visible before",
    "agent_core/memory/": "blocks of memory, which have lines of their own",
    "agent_core/model/dialect.py": "a file of the program",
    "agent_core/base/machine.py": "files of /proc",
    "knapper_ext/local/": "files of /proc",
    "agent_core/access/packages/environment.py": "what pip prints",
    "agent_core/registry/examples.py": "the value of a docstring",
    "agent_core/access/secrets/masks.py": "a secret: a function may cut it by `str.splitlines`",
    "agent_core/memory/sources/": "documents, and rows of tables",
    "agent_core/functions/service/function_facts.py": "the value of a docstring",
    "knapper_ext/exchange/library_files.py": "the members of an archive, rows of a .jsonl file",
    "agent_core/functions/service/file_checks.py": "rows of a .jsonl file",
    "functions/": "the user's own texts and tables",
    "sandbox/processes/cgroup.py": "files of /proc",
    "sandbox/inside/web.py": "HTTP",
    "sandbox/processes/ends.py": "files of /proc",
    "sandbox/confine/opened_grants.py": "files of /proc",
    "sandbox/processes/startup.py": "files of /proc",
}


# Each way of splitting contains one of these; a text without them is not parsed.
WORDS = (
    *(
        "splitlines",
        "readlines",
        r'split("\n',
        r'split(b"\n',
        r'split("\r',
        r'split(b"\r',
        "StringIO",
    ),
    *("generate_tokens", "linecache", "open("),
)


def cuts(text: str) -> Iterator[int]:
    """Yield the lines where a program splits text at line ends in its own way."""
    if not any(word in text for word in WORDS):
        return
    tree = ast.parse(text)
    files = {
        name for node in ast.walk(tree) if isinstance(node, ast.With) for name in _opened(node)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if _cuts(
                name, node.args
            ):
                yield node.lineno
            case ast.Import(names=[*_, ast.alias(name="linecache")]):
                yield node.lineno
            case ast.For(iter=source) | ast.comprehension(iter=source):
                if "open(" in ast.unparse(source) or (
                    isinstance(source, ast.Name) and source.id in files
                ):
                    yield source.lineno


def _opened(node: ast.With) -> list[str]:
    return [
        item.optional_vars.id
        for item in node.items
        if isinstance(item.optional_vars, ast.Name) and "open(" in ast.unparse(item.context_expr)
    ]


def _cuts(name: str, arguments: list[ast.expr]) -> bool:
    first = ast.unparse(arguments[0]) if arguments else ""
    match name:
        case "splitlines" | "readlines":
            return True
        case "split" | "rsplit":
            return first.lstrip("b") in (r"'\n'", r"'\r\n'")
        case "StringIO":
            return bool(first)
        case _:
            return name == "generate_tokens" and not first.startswith("reader_of(")


def test_lines_of_sources_are_cut_in_one_place() -> None:
    rooms = ("agent_core", "knapper", "knapper_ext", "sandbox", "meta_functions", "functions")
    paths = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    found = {
        path.relative_to(ROOT).as_posix(): list(cuts(path.read_text("utf-8"))) for path in paths
    }
    cutting = {name: lines for name, lines in found.items() if lines and name != THE_PLACE}
    others = {
        name: lines for name, lines in cutting.items() if not name.startswith(tuple(NO_SOURCES))
    }
    assert not others, (
        "cut with `lines_of` or `bare_lines` of sandbox.wire.lines, or say here why it is no source"
    )
    assert [
        name for name in NO_SOURCES if not any(other.startswith(name) for other in cutting)
    ] == []
