"""Workspace files are read by `plain_files`; other code that opens files is listed here with the reason."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2] / "agent_core"
_OPENS = {"read_text", "read_bytes", "write_text", "write_bytes", "open"}
_NO_PATHS = {"archive", "tarfile", "debug", "self", "cls", "_prompt"}  # their `open` opens no path
ALLOWED = {
    "what differs between systems, for those who are listed here": "base/folders base/machine",
    "a file of this package, or of one that comes with it": """
        base/language functions/mcp/tools
        memory/embedding/local memory/embedding/static memory/search_query
        model/dialect model/reading storage/postgres/database
        storage/sqlite/migrate
        workspace/presets/__init__ workspace/scaffold""",
    "a file that the human names in a command, which may be a pipe or a link": """
        functions/service/library_files functions/service/file_checks memory/sources/places workspace/portable/text
        workspace/local_models""",
    "a file that this program made for itself, in a folder of its own": """
        access/packages/environment access/packages/resolution functions/mcp/entry functions/service/export
        interfaces/manual_edits interfaces/plain
        interfaces/server/function_operations interfaces/server/source_operations
         model/local/fetch model/local/weights
        workspace/reading_copy""",
    "a file of the system": """
        __main__ base/own_environment base/own_installation functions/mcp/confined functions/mcp/connection
        interfaces/cli interfaces/repl/prompt model/discover model/local/engine
        model/local/server""",
    "opened through no link and without waiting, for more than to read it whole": """
        access/broker/broker access/grants/files access/grants/permit access/grants/record access/packages/environment
        base/old_name base/seal storage/folder
        interfaces/client/wire storage/sqlite/recovery workspace/forgetting""",
    "the one place": "base/plain_files",
}


def opens_a_file(node: ast.AST) -> bool:
    """Check whether a node of the code opens a path."""
    match node:
        case ast.Call(func=ast.Name(id="open")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name), attr="open")):
            return name not in _NO_PATHS and not name[0].isupper()
        case ast.Call(func=ast.Attribute(attr=attribute)):
            return attribute in _OPENS
        case _:
            return False


def test_whoever_opens_a_file_by_itself_has_a_reason() -> None:
    opening = {
        path.relative_to(ROOT).with_suffix("").as_posix()
        for path in ROOT.rglob("*.py")
        for text in [path.read_text("utf-8")]
        if any(name in text for name in _OPENS) and any(map(opens_a_file, ast.walk(ast.parse(text))))
    }
    allowed = {name for names in ALLOWED.values() for name in names.split()}
    assert opening - allowed == set(), "use agent_core.base.plain_files, or give a reason in ALLOWED"
    assert allowed - opening == set(), "these open no file any more"
