"""`toolwright doctor`: which parts of the platform, the sandbox, the endpoint and the storage work here."""

from typing import Any

import click

from ..scene import CliContext, scene
from ..spans import Line, Span, line

_AT_CORE = "at core, scratch has no total size, and functions can see whether a path exists: docs/platforms.md"


@click.command()
@scene
def doctor(scene: CliContext) -> int:
    """Say what works here and what is missing. The exit code is 1 if functions cannot run."""
    from ..opened import with_any_workspace

    report = with_any_workspace(scene, lambda workspace: workspace.doctor())
    scene.result(report, _lines(report))
    return 0 if report["ok"] else 1


def _lines(report: dict[str, Any]) -> list[Line]:  # Any: the published shape of `doctor`
    sandbox = report["sandbox"]
    lines = [
        line(("strong", "toolwright "), f"{report['version']}, Python {report['python']}, {report['platform']}"),
        line(_mark(sandbox["level"] != "none"), f"sandbox: {sandbox['level']}"),
        *(line("  ", _mark(is_present), layer) for layer, is_present in sandbox["layers"].items()),
        *(line("  ", ("bad", f"missing: {layer}")) for layer in sandbox["missing"]),
        *([line(("dim", f"  {_AT_CORE}"))] if sandbox["level"] == "core" else []),
        *(line(("dim", f"  {name}: {value}")) for name, value in sandbox.get("resources", {}).items()),
    ]
    if report["grants"]["unattended"] == "file":
        lines.append(
            line(("bad", "! grants: if nobody can be asked, functions/grants.toml is in force without an approval"))
        )
    for room in ("model", "embedding", "packages", "storage"):
        status = report.get(room) or {}
        facts = [status[key] for key in ("why", "problem", "recovered", "vectors", "fix") if status.get(key)]
        lines.append(line(_mark(bool(status.get("ok"))), ": ".join([room, " ".join(facts) or "whole"])))
        if loosened := status.get("loosened"):
            listed = ", ".join(f"{name} ({why})" for name, why in loosened.items())
            lines.append(line(f"  sent without a strict schema, which cannot express them: {listed}"))
    return lines


def _mark(good: bool) -> Span:  # noqa: FBT001  (the one thing it renders)
    return ("ok", "✓ ") if good else ("bad", "✗ ")
