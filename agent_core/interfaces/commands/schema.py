"""`toolwright schema`: the schemas that a model would be shown of the functions in files. Nothing is run."""

from pathlib import Path

import click

from agent_core.registry.function import Function
from sandbox.wire.lines import bare_lines

from ..scene import CliContext, scene
from ..spans import Line, line
from ..verdicts import problem_lines


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@scene
def schema(scene: CliContext, files: tuple[Path, ...]) -> int:
    """Show the schemas of the functions in FILES. Nothing is run."""
    from agent_core.workspace.local_models import schema_of

    result = schema_of(files)
    lines = [row for function in result.functions for row in function_lines(function)]
    scene.result(result, lines + problem_lines(result.problems))
    return 1 if any(problem.severity != "warns" for problem in result.problems) else 0


def function_lines(function: Function) -> list[Line]:
    """Return one function's name, place, description and parameters."""
    shape = function.parameters
    required = shape.get("required", ())
    lines = [
        line(("name", function.name), ("dim", f"  {function.path}:{function.line}")),
        *(line("  ", text) for text in bare_lines(function.description)),
    ]
    for name, parameter in shape.get("properties", {}).items():
        kind = parameter.get("type") or ("any of" if "anyOf" in parameter else "value")
        word = kind if name in required else f"{kind}, optional"
        lines.append(line("    ", ("strong", name), f" ({word}): {parameter.get('description', '')}"))
    return lines
