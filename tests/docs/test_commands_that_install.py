"""No hint or page installs a name that someone else may own; a hint fits how this copy was installed."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from agent_core.base.own_installation import uninstall_program

ROOT = Path(__file__).parents[2]
LOOKED_AT = [
    "agent_core",
    "knapper",
    "knapper_ext",
    "meta_functions",
    "sandbox",
    "docs",
    "benchmarks",
    "examples",
    "deploy",
]
SUFFIXES = {".py", ".md", ".toml", ".yml", ".yaml", ".txt", ".js", ".html", ".service", ""}
INSTALLS = re.compile(
    r"(?P<command>\b(?:pip3?|uv pip) install|\bpipx (?:install|run)\b|\bpipx (?P<of>inject|runpip|upgrade)\b"
    r"|\buv tool (?:install|run)\b|\buvx\b)(?P<rest>[^`\n]*)"
)
PATH = re.compile(r"[./~$<{]|.*(/|\.whl)|[A-Z_…]+\b")
DIRECT = re.compile(r"\S+ @ \S+")
OF_VALUE = {"-r", "-c", "--constraint", "--requirement", "--python", "--index-url"}


def project(requirement: str) -> str:
    """Return the project name in a requirement."""
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def declared() -> set[str]:
    """Return the projects that this one declares as dependencies."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [about["dependencies"], *about["optional-dependencies"].values()]
    return {project(requirement) for requirements in lists for requirement in requirements}


def strangers(text: str) -> list[str]:
    """Return the names that commands in a text install and that are not ours."""
    found = []
    for match in INSTALLS.finditer(text):
        rest = re.split(r"\s(?:#|&&|\|)|[;)]|\\n", re.sub(r"\{[^}]*\}", "{}", match["rest"]))[0]
        try:
            words = shlex.split(rest)
        except ValueError:
            words = rest.replace('"', " ").replace("'", " ").split()
        words = words[
            {None: 0, "runpip": 2}.get(match["of"], 1) :
        ]  # the word before is the environment
        if "--from" in words:  # the other words are the program in it and its arguments
            words = words[words.index("--from") + 1 :][:1]
        places = [
            word
            for before, word in zip(["", *words], words, strict=False)
            if before not in OF_VALUE
        ]
        names = [
            word
            for word in places
            if not word.startswith("-") and not PATH.match(word) and not DIRECT.match(word)
        ]
        names = [name.strip(",.:!?") for name in names]
        found += [
            f"{match['command']} {name}"
            for name in names
            if name and project(name) not in declared()
        ]
    return found


def texts() -> list[Path]:
    files = [path for room in (*LOOKED_AT, ".github") for path in (ROOT / room).rglob("*")]
    files += [
        path
        for path in ROOT.iterdir()
        if path.name in ("README.md", "CONTRIBUTING.md", "Makefile", "ARCHITECTURE.md")
    ]
    return [
        path
        for path in files
        if path.is_file() and path.suffix in SUFFIXES and "__pycache__" not in path.parts
    ]


NOT_OURS = (
    "fix='pip install knapper[mcp]'",
    "uvx knapper run",
    "uvx --from knapper-x knapper run",
    "uv pip install -e '.[server]' knapper-extras",
)
OURS = (
    "uvx --from . knapper run",
    "pip install '.[server]'   # in the clone",
    "pipx inject knapper 'starlette<2,>=1.10' uvicorn",
)


def test_no_hint_and_no_page_installs_by_a_name_that_is_not_ours() -> None:
    assert [bool(strangers(text)) for text in (*NOT_OURS, *OURS)] == [True] * len(NOT_OURS) + [
        False
    ] * len(OURS)
    found = {
        str(path.relative_to(ROOT)): strangers(path.read_text(encoding="utf-8")) for path in texts()
    }
    assert {path: names for path, names in found.items() if names} == {}


METADATA = """\
Metadata-Version: 2.4
Name: knapper
Version: 0.1.0
Requires-Dist: sqlite-vec<0.2,>=0.1.9
Requires-Dist: starlette<2,>=1.10; extra == "server"
Requires-Dist: uvicorn>=0.54; extra == "server"
Requires-Dist: mcp<3,>=2.2; extra == "mcp"
"""
BY_NAME = "'starlette<2,>=1.10' 'uvicorn>=0.54'"
RECEIPT = '[tool]\nrequirements = [{name = "knapper", directory = "/x"}, {name = "mcp", specifier = "<3,>=2.2"}]\n'


PIPX, UV = {"pipx_metadata.json": "{}"}, {"uv-receipt.toml": RECEIPT}
FOLDER: dict[str, object] = {"url": "CLONE", "dir_info": {}}
EDITABLE: dict[str, object] = {"url": "CLONE", "dir_info": {"editable": True}}
GIT: dict[str, object] = {
    "url": "https://example.org/k.git",
    "vcs_info": {"vcs": "git", "requested_revision": "v1"},
}
ADD, ANEW = "add_extra('server')", "reinstall_program()"
INSTALLED: tuple[tuple[dict[str, object] | None, dict[str, str], str, str], ...] = (
    (FOLDER, {}, ADD, "pip install 'the clone[server]'"),
    (GIT, {}, ADD, "pip install 'knapper[server] @ git+https://example.org/k.git@v1'"),
    (FOLDER, PIPX, ADD, f"pipx inject knapper {BY_NAME}"),
    (
        FOLDER,
        UV,
        ADD,
        "uv tool install --with 'mcp<3,>=2.2' --with 'starlette<2,>=1.10' --with 'uvicorn>=0.54' 'the clone'",
    ),
    ({"url": "HERE", "dir_info": {}}, {}, ADD, "pip install '.[server]'"),
    (EDITABLE, {}, ANEW, "pip install --force-reinstall --no-deps -e 'the clone'"),
    (
        None,
        {},
        "reinstall('sqlite-vec')",
        "pip install --upgrade --force-reinstall 'sqlite-vec<0.2,>=0.1.9'",
    ),
)
"""Where a copy came from, what lies in its environment, what is to be done, and the command that says so."""


def test_a_hint_names_the_place_that_this_copy_came_from_and_versions_that_fit(
    tmp_path: Path,
) -> None:
    places = {"CLONE": tmp_path / "the clone", "HERE": tmp_path}
    places["CLONE"].mkdir()
    code, path = "import sys\nfrom agent_core.base import own_installation as own\n", [*sys.path]
    for number, (origin, files, call, _) in enumerate(INSTALLED):
        site, venv = tmp_path / f"site{number}", tmp_path / f"venvs{number}" / "knapper"
        (about := site / "knapper-0.1.0.dist-info").mkdir(parents=True)
        (about / "METADATA").write_text(METADATA)
        if origin is not None:
            url = str(origin["url"])
            (about / "direct_url.json").write_text(
                json.dumps({**origin, "url": places[url].as_uri() if url in places else url})
            )
        venv.mkdir(parents=True)
        for name, text in files.items():
            (venv / name).write_text(text)
        code += f"sys.prefix, sys.path = {str(venv)!r}, {[str(site), *path]!r}\nprint(own.{call})\n"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    said = [
        f"pip{line.partition(' -m pip')[2]}" if " -m pip " in line else line
        for line in done.stdout.splitlines()
    ]
    assert said == [command for *_, command in INSTALLED]


@pytest.mark.parametrize(
    ("place", "file", "says"),
    [
        ("pipx/venvs/knapper", "pipx_metadata.json", "pipx uninstall knapper"),
        ("pipx/venvs/knapper-2", "pipx_metadata.json", "pipx uninstall knapper-2"),
        ("pipx/.cache/71e7e6965cdbd44", "pipx_metadata.json", ""),
        ("uv/tools/knapper", "uv-receipt.toml", "uv tool uninstall knapper"),
        ("uv/archive-v0/Us2WzViVsFbAOSeV", "pyvenv.cfg", "uv cache clean knapper"),
        ("clone/.venv", "pyvenv.cfg", "pip uninstall knapper"),
    ],
)
def test_the_command_that_removes_the_program_fits_how_it_was_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, file: str, says: str
) -> None:
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / place / file).write_text("{}" if file.endswith("json") else "")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / place))
    said = uninstall_program()
    assert (f"pip{said.partition(' -m pip')[2]}" if " -m pip " in said else said) == says


def test_an_installation_without_extras_brings_fewer_than_48_packages() -> None:
    installed, waiting = set[str](), ["knapper"]
    while waiting:
        if (name := project(waiting.pop())) not in installed:
            installed.add(name)
            needed = map(Requirement, distribution(name).requires or [])
            waiting += [
                need.name
                for need in needed
                if need.marker is None or need.marker.evaluate({"extra": ""})
            ]
    assert len(installed) < 48
    assert not installed & {"wordllama", "tokenizers", "requests", "huggingface-hub"}


def test_the_image_is_built_from_all_that_the_package_is_built_from() -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = [
        name.rstrip("*") for name in about["tool"]["setuptools"]["packages"]["find"]["include"]
    ]
    (starters,) = about["tool"]["setuptools"]["data-files"].values()
    needed = {
        "pyproject.toml",
        "setup.py",
        about["project"]["readme"],
        *about["project"]["license-files"],
    }
    needed |= {*packages, *starters}
    lines = (ROOT / "deploy" / "Containerfile").read_text().splitlines()
    copied = {name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]}
    assert needed - copied == set()
    (extras,) = [
        line.removeprefix("ARG EXTRAS=").split(",")
        for line in lines
        if line.startswith("ARG EXTRAS=")
    ]
    assert "portable" in extras
    assert {*extras} <= about["project"]["optional-dependencies"].keys()
