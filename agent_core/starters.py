"""`toolwright init`: a folder with the starter functions and a settings file."""

import re
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from .errors import WorkspaceError
from .registry import within
from .registry.source import FOLDER
from .settings import FILE_NAME

NAMES = ("calculate.py", "clock.py", "compare.py", "tables.py", "text.py")

_DEFINED = re.compile(r"^(?:async )?def ([A-Za-z]\w*)", re.M)

_SETTINGS = """\
# Toolwright's settings for this workspace. `toolwright doctor` shows what is in force.
# Keys never go here: they come from the environment (OPENAI_API_KEY).

# [model]
# base_url = "http://127.0.0.1:11434/v1"
# name = "qwen2.5-coder:7b"
"""


def create(root: Path) -> list[str]:
    """Make what is missing of a workspace; the paths that were made, relative to it.

    Raises:
        WorkspaceError: the folder cannot be written, or a link would lead out of it.
    """
    starters = sources()
    made = []
    try:
        root.mkdir(parents=True, exist_ok=True)
        if link := within.leaving(root, [FOLDER, FILE_NAME, *(f"{FOLDER}/{one.name}" for one in starters)]):
            what = f"{link} is a link that leaves the workspace, or leads nowhere, so nothing was made."
            raise WorkspaceError(what, mend="Remove it, or put the file or folder itself there.")
        with within.folder(root.resolve(), _inside(root), make=True) as held:
            new = [one.name for one in starters if within.create(one.name, held, one.read_bytes())]
        made += [f"{FOLDER}/{name}" for name in new]
        with within.folder(root.resolve(), ()) as held:
            made += [FILE_NAME] if within.create(FILE_NAME, held, _SETTINGS.encode()) else []
    except OSError as error:
        raise WorkspaceError(
            f"The workspace {root} cannot be made: {error}.", mend="Choose a folder that you may write to."
        ) from error
    return made


def _inside(root: Path) -> tuple[str, ...]:
    """Return the way to the folder of functions, which a link may put elsewhere in the workspace."""
    return (root / FOLDER).resolve().relative_to(root.resolve()).parts


def functions() -> frozenset[str]:
    """The names of the functions in them."""
    return frozenset(name for path in sources() for name in _DEFINED.findall(path.read_text("utf-8")))


def sources() -> list[Path]:
    """Where the starters are: beside a source checkout, or among the files of the installed distribution."""
    beside = Path(__file__).parent.parent / "functions"
    found = [beside / name for name in NAMES if (beside / name).is_file()]
    if len(found) == len(NAMES):
        return found
    try:
        shipped = files("toolwright") or []
    except PackageNotFoundError:
        shipped = []
    return [Path(str(each.locate())) for each in shipped if each.name in NAMES and each.parent.name == "functions"]
