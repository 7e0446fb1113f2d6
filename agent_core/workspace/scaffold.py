"""The folder of a workspace, which `knapper init` creates with starter functions and a settings file."""

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from agent_core.base.errors import NoWorkspace, WorkspaceError
from agent_core.base.settings import FILE_NAME
from agent_core.base.workspace_folder import current_workspace, is_from_stranger, is_workspace
from agent_core.registry import folder_access
from agent_core.registry.source import FOLDER
from agent_core.storage import STATE

NAMES = ("calculate.py", "clock.py", "compare.py", "files.py", "tables.py", "text.py")

_DEFINED = re.compile(r"^(?:async )?def ([A-Za-z]\w*)", re.M)

_STRANGE = f"has a {FILE_NAME} or state that belongs neither to you nor to the owner of the folder"
_SETTINGS = """\
# Knapper's settings for this workspace. `knapper doctor` shows what is in force.
# Keys never go here: they come from the environment (OPENAI_API_KEY).

# [model]
# base_url = "http://127.0.0.1:11434/v1"
# name = "qwen2.5-coder:7b"
"""


def create(root: Path) -> list[str]:
    """Create the missing parts of a workspace; return the created paths, relative to it.

    Raises:
        WorkspaceError: it is not a folder, cannot be written, belongs to someone else, or a link leads out of it.
    """
    check_folder(root)
    starters = sources()
    created = []
    try:
        root.mkdir(parents=True, exist_ok=True)
        if link := folder_access.leaving(
            root, [FOLDER, FILE_NAME, *(f"{FOLDER}/{file.name}" for file in starters)]
        ):
            message = (
                f"{link} is a link that leaves the workspace, or is broken, so nothing was created."
            )
            raise WorkspaceError(
                message, fix="Remove it, or replace it with the file or folder itself."
            )
        if is_from_stranger(root):
            raise WorkspaceError(
                f"{root.resolve()} {_STRANGE}.",
                fix=f"Remove the {FILE_NAME} that you did not make.",
            )
        place = (
            (root / FOLDER).resolve().relative_to(root.resolve())
        )  # it may be a link inside the workspace
        with folder_access.folder(root.resolve(), place.parts, make=True) as folder_fd:
            new = [
                file.name
                for file in starters
                if folder_access.create(file.name, folder_fd, file.read_bytes())
            ]
        created += [f"{FOLDER}/{name}" for name in new]
        with folder_access.folder(root.resolve(), ()) as folder_fd:
            created += (
                [FILE_NAME]
                if folder_access.create(FILE_NAME, folder_fd, _SETTINGS.encode())
                else []
            )
    except OSError as error:
        raise WorkspaceError(
            f"The workspace {root} cannot be made: {error}.",
            fix="Choose a folder that you may write to.",
        ) from error
    return created


def check_folder(root: Path) -> None:
    """Check that a path is a folder or does not exist.

    Raises:
        WorkspaceError: the path is something else.
    """
    if root.exists() and not root.is_dir():
        raise WorkspaceError(
            f"{root.resolve()} is a file, and a workspace is a folder.", fix="Name a folder."
        )


def existing(root: Path | None) -> Path:
    """Return the folder if it is a workspace; None is the nearest one, from the current folder upward.

    Raises:
        NoWorkspace: the folder is not a workspace, or does not exist.
        WorkspaceError: the path is not a folder.
    """
    if root is None:
        root = current_workspace() or Path()
    check_folder(root)
    if is_workspace(root):
        return root
    place = root.resolve()
    if not place.is_dir():
        raise NoWorkspace(f"There is no folder {place}.", fix=f"Next: knapper init {root}")
    problem = _STRANGE if is_from_stranger(root) else f"has no {FILE_NAME}"
    fix = f"Next: knapper init {root}"
    if above := next((folder for folder in place.parents if (folder / FILE_NAME).is_file()), None):
        fix += f"; or, if you mean the workspace above and trust it: knapper -C {above}"
    raise NoWorkspace(f"{place} is not a workspace: it {problem}.", fix=fix)


def opened(root: Path | str) -> Path:
    """Return the folder of a workspace, and create `functions/` in a new one.

    With a state folder, a missing `functions/` is not created: an empty one would mean that all functions were deleted.

    Raises:
        WorkspaceError: the folder does not exist, or cannot hold functions.
    """
    root = Path(root).resolve()
    check_folder(root)
    if not root.is_dir():
        raise WorkspaceError(f"There is no folder {root}.", fix=f"Next: knapper init {root}")
    try:
        if not (root / STATE).is_dir():
            (root / FOLDER).mkdir(exist_ok=True)
    except OSError as error:
        raise WorkspaceError(
            f"{root} cannot hold functions: {error.strerror}.", fix="Choose another folder."
        ) from error
    if not (root / "functions").resolve().is_relative_to(root):
        raise WorkspaceError(
            f"{root / 'functions'} is a link that leaves the workspace, so nothing is read or written there.",
            fix="Put the folder itself there.",
        )
    return root


@cache  # they come with the program; a list of functions asks for each
def functions() -> frozenset[str]:
    """Return the names of the starter functions."""
    return frozenset(
        name for path in sources() for name in _DEFINED.findall(path.read_text("utf-8"))
    )


def texts() -> dict[str, str]:
    """Return the text of each module of the starter functions."""
    return {path.stem: path.read_text("utf-8") for path in sources()}


def sources() -> list[Path]:
    """Return the files of the starter functions, from a source checkout or the installed distribution."""
    folder = Path(__file__).parents[2] / "functions"
    shipped_files = [folder / name for name in NAMES if (folder / name).is_file()]
    if len(shipped_files) == len(NAMES):
        return shipped_files
    try:
        shipped = files("knapper") or []
    except PackageNotFoundError:
        shipped = []
    return [
        Path(str(entry.locate()))
        for entry in shipped
        if entry.name in NAMES and entry.parent.name == "functions"
    ]
