"""`knapper extensions`: packages of others that add something to this program, and which of them are let in."""

import click

from agent_core.base.records import to_json
from agent_core.operations.operation import Opens
from agent_core.operations.verb import Door, verb
from agent_core.views.result import Result
from agent_core.views.styled_lines import Line, line


@click.group()
def extensions() -> None:
    """List the packages that add something to this program, and let them in or not."""


@verb(extensions, opens=Opens.NOTHING)
async def list_(door: Door) -> Result:
    """List the installed packages with an extension, and which of them you let in."""
    from agent_core.base.added_packages import installed_packages, missing_packages

    packages = installed_packages()
    missing = missing_packages()
    lines: list[Line] = []
    for package in packages:
        state = "enabled" if package.enabled else "not enabled"
        lines.append(line(("name", package.name), f" {package.version}  ", ("dim", state)))
    lines += [line(("bad", f"! {name} is enabled, and not installed")) for name in missing]
    hint = "" if packages else "There is none. How to write one: docs/extending.md"
    return Result({"extensions": to_json(packages), "missing": missing}, lines, hint)


@verb(extensions, opens=Opens.NOTHING)
async def enable(door: Door, name: str) -> Result:
    """Let a package in: from now on its code is part of this program, with all your rights, in every workspace."""
    from agent_core.base.added_packages import enable_package

    packages = enable_package(name)
    lines = [
        line(("ok", "+ "), ("name", package.name), f" {package.version} ({package.module})")
        for package in packages
    ]
    hint = f"To go on without it: knapper extensions disable {packages[0].name}"
    return Result({"enabled": to_json(packages)}, lines, hint)


@verb(extensions, opens=Opens.NOTHING)
async def disable(door: Door, name: str) -> Result:
    """Let a package in no longer. What it stored stays; programs that are running go on with it."""
    from agent_core.base.added_packages import disable_package

    disable_package(name)
    return Result({"disabled": name}, [line(("ok", "✓ "), "disabled ", ("name", name))])
