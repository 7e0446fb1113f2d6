"""`toolwright functions packages`: which packages are installed for which functions, managed by the user."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from agent_core.base.untrusted import one_line

from ..scene import CliContext, scene
from ..spans import Line, line

_MOST = 12


@click.command()
@click.option("--clean", "is_clean", is_flag=True, help="Remove what no function is granted, from disk and lock.")
@scene
def packages(scene: CliContext, is_clean: bool) -> int:  # noqa: FBT001  (click hands it in)
    """List the packages that functions were granted, as functions/requirements.lock pins them."""
    from ..opened import with_workshop

    if is_clean:
        result = with_workshop(scene, lambda shop: shop.granting.packing.clean())
        scene.result(result, [line(("ok", "✓ "), f"removed {len(result['removed'])} folders of packages")])
        return 0
    data = with_workshop(scene, lambda shop: shop.granting.packing.listing())
    scene.result(data, list(package_lines(data)))
    if not data["packages"]:
        scene.hint("No function has a package. Next: toolwright functions grant NAME --package REQ")
    return 1 if data["problem"] else 0


def package_lines(data: Mapping[str, Any]) -> Iterator[Line]:  # Any: JSON
    """Yield each set of requirements: its functions, its pinned packages, and whether it is installed."""
    if data["problem"]:
        yield line(("bad", "✗ "), data["problem"])
    for row in data["packages"]:
        users = ", ".join(row["functions"]) or "no function"
        state = f"{row['bytes'] / 1e6:.1f} MB" if row["installed"] else "not installed: you are asked when it is called"
        yield line(("name", ", ".join(row["requirements"])), ("dim", f"  for {users}  "), state)
        pins = row["pins"][:_MOST] + ([f"and {len(row['pins']) - _MOST} more"] if len(row["pins"]) > _MOST else [])
        if pins:
            yield line("  ", one_line(", ".join(pins), 1_000))
