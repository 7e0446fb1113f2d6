"""`toolwright init`: a folder with the starter functions and a settings file."""

import re
import shutil
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from .errors import WorkspaceError

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
        WorkspaceError: the folder cannot be written.
    """
    folder = root / "functions"
    made = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for starter in sources():
            if not (folder / starter.name).exists():
                shutil.copyfile(starter, folder / starter.name)
                made.append(f"functions/{starter.name}")
        if not (root / "toolwright.toml").exists():
            (root / "toolwright.toml").write_text(_SETTINGS, "utf-8")
            made.append("toolwright.toml")
    except OSError as error:
        raise WorkspaceError(
            f"The workspace {root} cannot be made: {error}.", mend="Choose a folder that you may write to."
        ) from error
    return made


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
