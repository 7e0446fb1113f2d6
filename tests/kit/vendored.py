"""The page's libraries, as the packages of npm publish them: `python -m tests.kit.vendored` writes them again.

`vendored.toml` beside them names package, version, license and hash of each. A browser finds no package by its name, so
an import of another one of the list is rewritten to its file, and a map that is not there is not named. The rest is
unchanged.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from knapper_ext.server.page_files import FOLDER as PAGE
from tests.kit.npm import install_packages

FOLDER: Final = PAGE / "vendor"
LIST: Final = "vendored.toml"
LICENSES: Final = "LICENSES.txt"
_IMPORTED: Final = re.compile(r"""(?<=from )(['"])([^'"]+)\1""")
_MAP: Final = "//# sourceMappingURL"
Row = Mapping[str, str]


def listed() -> list[Row]:
    """Return the rows of the list."""
    rows: list[Row] = tomllib.loads((FOLDER / LIST).read_text("utf-8"))["file"]
    return rows


def imports_of(text: str) -> list[str]:
    """Return what a module imports."""
    return [name for _, name in _IMPORTED.findall(text)]


def vendored(text: str, row: Row, files: Mapping[str, str]) -> str:
    """Return a published module as it is kept here; `files` has the file of each package."""
    rewritten = _IMPORTED.sub(
        lambda match: f'"./{files[match[2]]}"' if match[2] in files else match[0], text
    )
    lines = [line for line in rewritten.split("\n") if not line.startswith(_MAP)]
    title = f"From the npm package {row['package']} {row['version']}, file {row['path']}"
    return f"/* {title}. {row['license']}, see {LICENSES}. */\n" + "\n".join(lines).rstrip() + "\n"


def write_all() -> None:
    """Write the files, their licenses, and the list with their hashes."""
    rows = listed()
    files = {row["package"]: row["file"] for row in rows}
    modules = install_packages([f"{row['package']}@{row['version']}" for row in rows])
    texts, licenses = list[str](), dict[str, list[str]]()
    for row in rows:
        folder = modules / "node_modules" / row["package"]
        body = vendored((folder / row["path"]).read_text("utf-8"), row, files).encode()
        (FOLDER / row["file"]).write_bytes(body)
        told = {**row, "sha256": hashlib.sha256(body).hexdigest()}
        texts.append(
            "\n".join(["[[file]]", *(f"{key} = {json.dumps(told[key])}" for key in told), ""])
        )
        words = _license_of(folder)
        licenses.setdefault(words, []).append(f"{row['package']} {row['version']}")
    (FOLDER / LIST).write_text("\n".join(texts), "utf-8")
    parts = [f"{', '.join(names)}:\n\n{words.strip()}\n" for words, names in licenses.items()]
    (FOLDER / LICENSES).write_text(f"\n{'-' * 80}\n\n".join(parts), "utf-8")


def _license_of(folder: Path) -> str:
    found = sorted(folder.glob("LICEN[CS]E*"))
    return "\n\n".join(path.read_text("utf-8") for path in found)


if __name__ == "__main__":
    write_all()
