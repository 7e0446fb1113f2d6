"""`knapper functions audit` and `tend`: what to improve in a library, and proven changes that do it."""

from typing import TYPE_CHECKING, Any

import click

from agent_core.base.late import LateModule
from agent_core.operations.findings_logs import begun_log, chosen_logs, log_options
from agent_core.operations.operation import Opens
from agent_core.operations.verb import Door, at_most_one, slash, verb
from agent_core.views.result import Result
from agent_core.views.styled_lines import line

if TYPE_CHECKING:  # the commands start without the service
    from . import lines
else:
    lines = LateModule("knapper_ext.tending.lines")


@slash(
    "audit",
    "Show the state of the library: a score, and what to improve, each with a proposal.",
    before="reload",
    is_long=True,
)
@verb(opens=Opens.READABLE)
@log_options
async def audit(door: Door, **options: Any) -> Result:  # Any: the options for logs
    """Show the state of the library: a score, and what to improve, each with a proposal and a command.

    Confusable functions (a request finds the wrong one), failing and unused ones, calls that ended in ways that the
    docstring leaves out, missing examples, descriptions that are lists of words, more than 7 parameters.
    """
    at_most_one({"--json": door.as_json, **chosen_logs(options)})
    from .audit import audit_of

    report = await audit_of(door.functions).report()
    log = begun_log(options, door.workspace.root, "audit")
    if log is not None:
        from agent_core.functions.service.judgment import Judgment

        for finding in report.findings:
            path = str(door.workspace.root / finding.problem.where.path)
            log.add(Judgment({}, name=finding.function, path=path, problems=(finding.problem,)))
        click.echo(log.text())
        return Result(None)
    trouble = [line(("warn", "~ "), f"Confusable functions were not looked for: {report.trouble}")]
    hint = "" if report.functions else "There is no function. Next: knapper run, and ask for one."
    return Result(
        report,
        [*lines.audit_lines(report, door.typed), *(trouble if report.trouble else [])],
        hint,
    )


@verb(opens=Opens.ASKING)
@click.option(
    "--apply",
    "applies",
    is_flag=True,
    help="Make the changes that are proven, not only propose them.",
)
@click.option(
    "--undo",
    "undone",
    is_flag=False,
    flag_value="",
    metavar="[NAME]",
    help="Take back all changes of the last run that are still there, or those of the last step with this function.",
)
async def tend(door: Door, *, applies: bool = False, undone: str | None = None) -> Result:
    """Tend the library: near-copies become one, what keeps failing is mended, what harms or is unused is archived.

    A model makes one function of several that differ in literals, and a function of a program that was repeated, and
    rewords what requests miss. Each change is proven, by recorded calls that are made again or by recorded requests.
    What a person wrote, changed or keeps at hand stays.
    """
    from .upkeep import budget_of, may_apply, tending_of

    at_most_one({"--apply": applies, "--undo": undone is not None})
    settings = door.workspace.settings
    tending = tending_of(door.functions, settings)
    if undone is not None:
        steps = await tending.undo(undone)
        return Result(
            steps, lines.undone_lines(steps), code=0 if all(step.undone for step in steps) else 1
        )
    may = applies or may_apply(door.functions, settings)
    report = await tending.run(budget_of(settings), applies=may)
    return Result(report, lines.tending_lines(report, door.typed))
