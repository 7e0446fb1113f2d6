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

ROOT = Path(__file__).parents[2]
LOOKED_AT = (
    "agent_core",
    "knapper",
    "meta_functions",
    "sandbox",
    "docs",
    "benchmarks",
    "examples",
    "deploy",
    ".github",
)
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
        words = words[{None: 0, "runpip": 2}.get(match["of"], 1) :]  # the word before is the environment
        places = [word for before, word in zip(["", *words], words, strict=False) if before not in OF_VALUE]
        names = [
            word for word in places if not word.startswith("-") and not PATH.match(word) and not DIRECT.match(word)
        ]
        names = [name.strip(",.:!?") for name in names]
        found += [f"{match['command']} {name}" for name in names if name and project(name) not in declared()]
    return found


def texts() -> list[Path]:
    files = [path for room in LOOKED_AT for path in (ROOT / room).rglob("*")]
    files += [
        path for path in ROOT.iterdir() if path.name in ("README.md", "CONTRIBUTING.md", "Makefile", "ARCHITECTURE.md")
    ]
    return [path for path in files if path.is_file() and path.suffix in SUFFIXES and "__pycache__" not in path.parts]


@pytest.mark.parametrize(
    "text",
    [
        'python -m pip install "knapper[server]"',
        "pip install knapper",
        "fix='pip install knapper[mcp]'",
        "pip3 install --upgrade knapper",
        "`pipx install knapper`",
        "pipx run knapper",
        "uv tool install knapper --with uvicorn",
        "uvx knapper run",
        "uv pip install -e '.[server]' knapper-extras",
        "pipx inject knapper knapper-server",
        "pip install -r requirements.txt knapper",
    ],
)
def test_the_look_for_such_commands_finds_them(text: str) -> None:
    assert strangers(text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install '.[server]'   # in the clone",
        "pip install --quiet .",
        "pipx inject knapper 'starlette<2,>=1.10' uvicorn",
        "uv tool install --with 'uvicorn>=0.54' /home/me/knapper",
        "python -m pip install 'knapper[server] @ git+https://example.org/knapper.git@main'",
        "most of it `pip install`), 3 s",
        "pip install 'knapper-0.1.0-py3-none-any.whl[local]'",
        "pip install -r requirements.txt",
    ],
)
def test_the_look_for_such_commands_passes_what_is_ours(text: str) -> None:
    assert strangers(text) == []


def test_no_hint_and_no_page_installs_by_a_name_that_is_not_ours() -> None:
    found = {str(path.relative_to(ROOT)): strangers(path.read_text(encoding="utf-8")) for path in texts()}
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


def hinted(
    tmp_path: Path, origin: dict[str, object] | None, files: dict[str, str], call: str = "add_extra('server')"
) -> str:
    """Return the command that a copy installed this way suggests, without `python -m`."""
    (about := tmp_path / "site" / "knapper-0.1.0.dist-info").mkdir(parents=True)
    (about / "METADATA").write_text(METADATA)
    if origin is not None:
        (about / "direct_url.json").write_text(json.dumps(origin))
    (venv := tmp_path / "venvs" / "knapper").mkdir(parents=True)
    for name, text in files.items():
        (venv / name).write_text(text)
    code = f"import sys; sys.prefix = {str(venv)!r}\nfrom agent_core.base import own_installation as own"
    code += f"\nprint(own.{call})"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path / 'site'}:{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    command = done.stdout.strip()
    return f"pip{command.partition(' -m pip')[2]}" if " -m pip " in command else command


@pytest.mark.parametrize(
    ("origin", "files", "command"),
    [
        pytest.param({"dir_info": {}}, {}, "pip install '{clone}[server]'", id="folder"),
        pytest.param({"dir_info": {"editable": True}}, {}, "pip install -e '{clone}[server]'", id="editable"),
        pytest.param(
            {"url": "https://example.org/k.git", "vcs_info": {"vcs": "git", "requested_revision": "v1"}},
            {},
            "pip install 'knapper[server] @ git+https://example.org/k.git@v1'",
            id="version-control",
        ),
        pytest.param(
            {"url": "https://example.org/k.whl", "archive_info": {}},
            {},
            "pip install 'knapper[server] @ https://example.org/k.whl'",
            id="address",
        ),
        pytest.param({"url": "file:///gone/away", "dir_info": {}}, {}, f"pip install {BY_NAME}", id="folder-is-gone"),
        pytest.param({"dir_info": {}}, {"pipx_metadata.json": "{}"}, f"pipx inject knapper {BY_NAME}", id="pipx"),
        pytest.param(
            {"dir_info": {}},
            {"uv-receipt.toml": RECEIPT},
            "uv tool install --with 'mcp<3,>=2.2' --with 'starlette<2,>=1.10' --with 'uvicorn>=0.54' '{clone}'",
            id="uv-tool",
        ),
    ],
)
def test_a_hint_about_an_extra_names_the_place_that_this_copy_came_from(
    tmp_path: Path, origin: dict[str, object], files: dict[str, str], command: str
) -> None:
    (clone := tmp_path / "the clone").mkdir()
    assert hinted(tmp_path, {"url": clone.as_uri(), **origin}, files) == command.format(clone="the clone")


def test_in_the_clone_itself_the_hint_is_short(tmp_path: Path) -> None:
    assert hinted(tmp_path, {"url": tmp_path.as_uri(), "dir_info": {}}, {}) == "pip install '.[server]'"


@pytest.mark.parametrize(
    ("origin", "files", "command"),
    [
        pytest.param({"dir_info": {}}, {}, "pip install --force-reinstall --no-deps '{clone}'", id="folder"),
        pytest.param(
            {"dir_info": {"editable": True}}, {}, "pip install --force-reinstall --no-deps -e '{clone}'", id="editable"
        ),
        pytest.param({"dir_info": {}}, {"pipx_metadata.json": "{}"}, "pipx reinstall knapper", id="pipx"),
        pytest.param(
            {"dir_info": {}},
            {"uv-receipt.toml": RECEIPT},
            "uv tool upgrade --reinstall-package knapper knapper",
            id="uv-tool",
        ),
    ],
)
def test_a_copy_with_missing_files_is_installed_anew_from_where_it_came(
    tmp_path: Path, origin: dict[str, object], files: dict[str, str], command: str
) -> None:
    (clone := tmp_path / "the clone").mkdir()
    said = hinted(tmp_path, {"url": clone.as_uri(), **origin}, files, "reinstall_program()")
    assert said == command.format(clone="the clone")


def test_a_package_that_is_broken_is_named_in_a_version_that_fits(tmp_path: Path) -> None:
    command = hinted(tmp_path, None, {}, "reinstall('sqlite-vec')")
    assert command == "pip install --upgrade --force-reinstall 'sqlite-vec<0.2,>=0.1.9'"


def test_an_installation_without_extras_brings_fewer_than_48_packages() -> None:
    installed, waiting = set[str](), ["knapper"]
    while waiting:
        if (name := project(waiting.pop())) not in installed:
            installed.add(name)
            needed = map(Requirement, distribution(name).requires or [])
            waiting += [need.name for need in needed if need.marker is None or need.marker.evaluate({"extra": ""})]
    assert len(installed) < 48
    assert not installed & {"wordllama", "tokenizers", "requests", "huggingface-hub"}


def test_the_image_is_built_from_all_that_the_package_is_built_from() -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = [name.rstrip("*") for name in about["tool"]["setuptools"]["packages"]["find"]["include"]]
    (starters,) = about["tool"]["setuptools"]["data-files"].values()
    needed = {"pyproject.toml", "setup.py", about["project"]["readme"], *about["project"]["license-files"]}
    needed |= {*packages, *starters}
    lines = (ROOT / "deploy" / "Containerfile").read_text().splitlines()
    copied = {name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]}
    assert needed - copied == set()


def test_a_value_of_the_compose_files_is_never_its_own_text() -> None:
    texts = "".join(path.read_text() for path in (ROOT / "deploy").glob("*.yaml"))
    assert re.findall(r"\$\{\w+:[-?]\}", texts) == []  # podman-compose 1.0 uses it literally, even as a password
