"""Shared by the tests of secrets: a value, functions that use it, and where to look for it."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, indent

from agent_core.access.grants import Grants
from agent_core.workspace.workspace import Workspace

KEY = "wk-7Qz/9+aB'3xY&é2Lm"  # characters that some encoding changes
MARK = "[secret KEY]"


def function(name: str, body: str) -> str:
    """Return a function of no arguments."""
    text = indent(dedent(body).strip(), "    ")
    return f'import base64, json\n\n\ndef {name}(self) -> object:\n    """Do something with a secret."""\n{text}\n'


async def put(workspace: Workspace, name: str, body: str, *secrets: str, **grants: object) -> None:
    """Save this function as a human's file, and grant it as a human."""
    file = workspace.root / "functions" / f"in_{name}.py"
    file.write_text(function(name, body))
    await workspace.functions.saved([file])
    await workspace.functions.grants.grant(name, Grants(secrets=secrets, **grants))  # type: ignore[arg-type]  # other kinds


def files_with(text: str, *folders: Path) -> Iterator[Path]:
    """Yield the files below the folders that contain a text, including the database and the log."""
    for folder in folders:
        for file in folder.rglob("*"):
            if (
                file.is_file()
                and file.parent.name != "portable"
                and text.encode() in file.read_bytes()
            ):
                yield file
