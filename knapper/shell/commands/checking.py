"""`knapper functions check`: the gate for files, for people, scripts, commit hooks and code scanning."""

import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from agent_core.base.errors import UsageError
from agent_core.base.late import LateModule
from agent_core.base.records import dataclass, field, replace
from agent_core.operations.command_context import CliContext, workspace_command
from agent_core.operations.findings_logs import FindingsLog, begun_log, chosen_logs, log_options
from agent_core.operations.verb import at_most_one
from agent_core.views.result import print_json
from agent_core.views.styled_lines import line, write
from knapper.terminal.progress import ProgressBar
from sandbox.wire.lines import bare_lines

if TYPE_CHECKING:
    from agent_core.functions.service.judgment import Judgment
    from agent_core.views import verdicts
else:
    verdicts = LateModule("agent_core.views.verdicts")

Policy = Literal["agent", "human", "import"]
POLICIES = ("agent", "human", "import")


@click.command()
@click.argument(
    "paths",
    metavar="PATH...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True),
)
@click.option("--policy", type=click.Choice(POLICIES), default="agent", show_default=True)
@click.option("--reader", is_flag=True, help="Ask the reader (gate.reader) about each description.")
@click.option("--strict", is_flag=True, help="Turn the policy's warnings into rejections.")
@click.option(
    "--name",
    default="",
    help="The function's name, if not that of the file's only public function.",
)
@click.option("--module", default="", help="The module that it would be added to.")
@click.option("--quiet", "-q", is_flag=True, help="Print only rejections.")
@click.option(
    "--verbose",
    "-v",
    "details",
    is_flag=True,
    help="Show each function's fixes and problems below it.",
)
@click.option("--diff", "diffs", is_flag=True, help="Show fixes as diffs.")
@log_options
@workspace_command
def check(context: CliContext, **options: Any) -> int:  # Any: the options above
    """Run the gate on files without admitting anything.

    PATH is a .py file, a .jsonl file with one candidate per line, or a folder of both. Each function gets one line, and
    each kind of problem is explained once. The exit code is 1 if something is rejected, but not if a person would only
    be asked to allow what a function reaches.
    """
    from agent_core.functions.service import CheckRequest, count

    from ..shell_door import with_any_workspace

    at_most_one({"--json": context.as_json, **chosen_logs(options)})
    single = len(options["paths"]) == 1 and options["paths"][0].suffix == ".py"
    if (options["name"] or options["module"]) and not single:
        raise UsageError(
            "--name and --module are for one .py file.", fix="Leave them out, or name one file."
        )
    policy: Policy = "agent" if options["strict"] else options["policy"]
    named = options["name"], options["module"]
    selection = CheckRequest(
        options["paths"], policy, *named, context.root, is_read=options["reader"]
    )
    log = begun_log(options, Path(), "gate")
    shown = options["quiet"], options["diffs"], options["details"]
    with _Told(context, log, ProgressBar(count(selection)), *shown) as printer:
        with_any_workspace(
            context, lambda workspace: workspace.functions.checks.check(selection, printer.take)
        )
        printer.is_whole = True
    if not printer.counts["judged"]:
        context.hint("Nothing was judged: there is no function in the given paths.")
    elif policy == "import":
        whole = f"knapper functions import {shlex.quote(str(options['paths'][0]))} --dry-run"
        context.hint(
            f"Each file is judged by itself. With what functions need of other files: {whole}"
        )
    return 1 if printer.counts["refused"] else 0


@dataclass(slots=True)
class _Told:
    """A printer of verdicts as they arrive; leaving the block ends the output."""

    context: CliContext
    log: FindingsLog | None
    progress: ProgressBar
    is_quiet: bool
    with_diffs: bool = False
    is_detailed: bool = False
    is_whole: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    legend: verdicts.Legend = field(default_factory=verdicts.Legend)

    def __enter__(self) -> "_Told":
        self.progress.__enter__()
        return self

    def take(self, judgment: "Judgment") -> None:
        """Count and print one verdict in the requested format."""
        is_asked = judgment.lacks_only_grants
        is_refused = not judgment.admitted and not is_asked
        facts = {
            "judged": True,
            "refused": is_refused,
            "asked about": is_asked,
            "draft": judgment.standing == "draft",
            "fixed": judgment.fixes,
            "warned": any(problem.severity == "warns" for problem in judgment.problems),
        }
        self.counts.update(fact for fact, is_so in facts.items() if is_so)
        self.progress.clear()
        if self.log is not None:
            self.log.add(judgment)
        elif not judgment.admitted or not self.is_quiet:
            if self.context.as_json:
                print_json(judgment)
            else:
                shown = (
                    replace(judgment, problems=judgment.refusals, fixes=())
                    if self.is_quiet
                    else judgment
                )
                lines = (
                    verdicts.verdict_lines(shown, is_tried=True)
                    if self.is_detailed
                    else [verdicts.verdict_line(shown)]
                )
                headline, *others = lines
                self.legend.add(shown)
                path = judgment.path
                if self.with_diffs:
                    for fix in judgment.fixes:
                        others += verdicts.coloured(bare_lines(fix.diff))
                write(
                    [
                        headline if path.endswith(".py") else (*headline, ("dim", f" · {path}")),
                        *others,
                    ],
                    sys.stdout,
                )
        self.progress.take(refused=is_refused)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.progress.__exit__()
        if self.log is not None and (self.counts["judged"] or kind in (None, KeyboardInterrupt)):
            click.echo(self.log.text(whole=self.is_whole))
        if self.context.as_json or self.log is not None:
            return
        if self.is_whole or kind is KeyboardInterrupt:
            if not self.is_detailed:
                write(self.legend.lines(), sys.stdout)
            if self.counts["judged"] > 1 or not self.is_whole:
                counts = self.counts
                good = counts["judged"] - counts["refused"] - counts["asked about"]
                mark = line(("bad", "✗ ") if counts["refused"] else ("ok", "✓ "))
                parts = [
                    f"{counts[key]} {key}"
                    for key in ("asked about", "refused", "fixed", "warned")
                    if counts[key]
                ]
                drafts = f" ({counts['draft']} as draft)" if counts["draft"] else ""
                text = ", ".join(
                    [f"{counts['judged']} judged: {good} would be added{drafts}", *parts]
                )
                write([(*mark, ("", text))], sys.stderr if self.is_quiet else sys.stdout)
