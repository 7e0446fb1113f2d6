"""Packages of others, installed by pip from a wheel: no builder is needed, and nothing is fetched."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from zipfile import ZipFile


def install(package: Path, site: Path) -> Path:
    """Install a folder with modules and a pyproject.toml into another one, and return that."""
    wheel = _pack(package, site.parent)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*command, "--target", str(site), str(wheel)], check=True, timeout=120)
    wheel.unlink()
    return site


def _pack(package: Path, place: Path) -> Path:
    project: dict[str, Any] = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    name = project["name"].replace("-", "_")
    about = f"{name}-{project['version']}.dist-info"
    points = [
        line
        for group, entries in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()))
    ]
    texts = {module.name: module.read_text() for module in package.glob("*.py")}
    texts[f"{about}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    texts[f"{about}/WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    texts[f"{about}/entry_points.txt"] = "\n".join(points) + "\n"
    texts[f"{about}/RECORD"] = "".join(f"{file},,\n" for file in (*texts, f"{about}/RECORD"))
    wheel = place / f"{name}-{project['version']}-py3-none-any.whl"
    with ZipFile(wheel, "w") as archive:
        for file, text in texts.items():
            archive.writestr(file, text)
    return wheel
