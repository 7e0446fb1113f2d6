"""`toolwright functions packages`: what is installed for which functions, in a human's hand."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from agent_core.untrusted import one_line

from ..scene import Scene, scene
from ..spans import Line, line

_MOST = 12


@click.command()
@click.option("--clean", "is_clean", is_flag=True, help="Remove what no function is granted, from disk and lock.")
@scene
def packages(scene: Scene, is_clean: bool) -> int:  # noqa: FBT001  (click hands it in)
    """List the packages that functions were granted, as functions/requirements.lock pins them."""
    from ..opened import with_workshop

    if is_clean:
        gone = with_workshop(scene, lambda shop: shop.granting.packing.clean())
        scene.result(gone, [line(("ok", "✓ "), f"removed {len(gone['removed'])} folders of packages")])
        return 0
    found = with_workshop(scene, lambda shop: shop.granting.packing.listing())
    scene.result(found, list(package_lines(found)))
    if not found["packages"]:
        scene.hint("No function has a package. Next: toolwright functions grant NAME --package REQ")
    return 1 if found["problem"] else 0


def package_lines(found: Mapping[str, Any]) -> Iterator[Line]:  # Any: JSON
    """Each set of requirements: whose it is, what it is pinned to, and whether it is here."""
    if found["problem"]:
        yield line(("bad", "✗ "), found["problem"])
    for row in found["packages"]:
        users = ", ".join(row["functions"]) or "no function"
        state = f"{row['bytes'] / 1e6:.1f} MB" if row["installed"] else "not installed: you are asked when it is called"
        yield line(("name", ", ".join(row["requirements"])), ("dim", f"  for {users}  "), state)
        pins = row["pins"][:_MOST] + ([f"and {len(row['pins']) - _MOST} more"] if len(row["pins"]) > _MOST else [])
        if pins:
            yield line("  ", one_line(", ".join(pins), 1_000))
