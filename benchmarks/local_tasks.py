"""The local model as a maker of functions: tasks described only in prose, judged by examples that it never saw.

Thirty tasks of a data file, evenly spread, each in a fresh workspace, unattended, with up to four tries. Reports how
many were admitted at the first try and by the last, how many of those pass the examples of the file, and the reasons
for rejections.

    python -m benchmarks.local_tasks PATH [--count 30] [--only 0,3] [--told 1] [--maker] [--programs on] [--mode native]
        [--preset memgpt] [--trace] [--json]

With `--maker` a strong maker writes the functions that the model asks for: at a scripted endpoint, the published
function with hints, a docstring and two examples, and what its code returns if more is asked.
"""

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, aclosing, closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from agent_core import Settings, Workspace
from agent_core.base.events import CallAnswered
from agent_core.base.settings import NamedModel
from agent_core.functions.gate import GivenExample
from agent_core.functions.gate.examples import given_agrees
from agent_core.registry.registry import Snapshot
from knapper_ext.local.server import open_local
from sandbox import Evaluation, Job, Sandbox
from tests.kit.play import ScriptedModel
from tests.kit.steps import Repeat, Say, Seen

from .documented import documented
from .local_requests import add_model_options, settings_of
from .measure import ran_with

TRIES: Final = 4
_LONGEST: Final = 200
_WRITING: Final = frozenset(
    {"create_function", "replace_function", "edit_function", "confirm_function"}
)


@dataclass(slots=True)
class Came:
    """The result of one task; `admitted_at` counts from 1, 0 is never. `passed` is None if nothing was admitted.

    `made` is the admitted name: a model may write `count_squares` where `count_Squares` was requested.
    """

    name: str
    made: str = ""
    tries: int = 0
    admitted_at: int = 0
    confirmed: bool = False
    refusals: list[str] = field(default_factory=list)
    passed: bool | None = None
    seconds: float = 0.0


def tasks(path: Path, count: int) -> list[dict[str, Any]]:  # Any: one line of the file
    """Return tasks described in one sentence without examples, evenly spread over the file."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    told = [row for row in rows if len(row["description"]) <= _LONGEST]
    return told[:: max(1, len(told) // count)][:count]


def maker_of(found: Sequence[dict[str, Any]]) -> ScriptedModel:
    """Return an endpoint that writes the function of each task as a careful author would.

    It uses the name that the model chose and adds an example of each call that it is asked about. Its description
    reader cannot tell what calls return. A task that shows too little for an author gets the published source
    unchanged.
    """

    def write(seen: Seen) -> Say:
        told = (
            row
            for row in found
            if f"named {row['name']}. {row['description'].splitlines()[0]}" in seen.text
        )
        row, asked = next(told, None), re.search(r"The function: `(\w+)`", seen.text)
        if row is None or asked is None:
            return Say("I cannot tell what is wanted.")
        written = documented(row)
        source = re.sub(rf"\b{row['name']}\b", asked[1], written.code if written else row["code"])
        refusal = seen.text.partition("Why it was refused")[2]
        calls = re.findall(rf"^({asked[1]}\(.*\))$", refusal, re.MULTILINE)
        if calls:
            namespace: dict[str, Any] = {}
            exec(source, namespace)
            shown = "\n    ".join(f">>> {call}\n    {eval(call, namespace)!r}" for call in calls)
            source = source.replace('\n    """\n', f'\n    {shown}\n    """\n', 1)
        return Say(f"```python\n{source}```")

    return ScriptedModel([Repeat(write)], models=["strong"])


async def make(
    task: dict[str, Any],  # Any: one line of the file
    settings: Settings,
    sandbox: Sandbox,
    *,
    told: int,
    trace: bool,
) -> Came:
    """Run one task from `init` until its function is admitted or tries run out; the prompt shows `told` examples."""
    came, began = Came(task["name"]), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="knapper-task-") as folder:
        Workspace.create(folder)
        async with Workspace.open(folder, settings=settings) as workspace:
            agent = await workspace.agent()
            shown = [f"{one['call']} returns {one['expected']}." for one in task["examples"][:told]]
            message = " ".join(
                [f"Make a function named {task['name']}. {task['description']}", *shown]
            )
            async with aclosing(agent.turn(message)) as events:
                async for event in events:
                    if isinstance(event, CallAnswered) and event.name in _WRITING:
                        _count(came, event)
                        if trace:
                            print(
                                event.detail.get("source", ""),
                                event.text,
                                sep="\n",
                                file=sys.stderr,
                            )
                        if came.admitted_at or came.tries == TRIES:
                            break
            came.seconds = round(time.perf_counter() - began, 1)
            if came.admitted_at:
                came.passed = await _passes(
                    task, came.made, workspace.functions.registry.snapshot(), sandbox, told
                )
    return came


def _count(came: Came, answer: CallAnswered) -> None:
    came.tries += 1
    if answer.detail.get("admitted"):
        came.admitted_at = came.tries
        came.confirmed = bool(answer.detail.get("confirmed"))
        came.made = str(answer.detail.get("name", came.name))
    else:
        problems = answer.detail.get("problems") or [{"code": "no verdict"}]
        came.refusals += sorted(
            {one["code"] for one in problems if one.get("severity", "refuses") == "refuses"}
        )


async def _passes(
    task: dict[str, Any],  # Any: one line of the file
    made: str,
    snapshot: Snapshot,
    sandbox: Sandbox,
    told: int,
) -> bool:
    function = snapshot.functions.get(made)
    if function is None:
        return False
    for one in task["examples"][told:]:
        call = re.sub(rf"\b{re.escape(task['name'])}\b", made, one["call"])
        outcome = await sandbox.run(Job(snapshot.modules, function.module, Evaluation((), call)))
        if not given_agrees(GivenExample(call, one["expected"], one.get("approx")), outcome):
            return False
    return True


async def _run(arguments: argparse.Namespace) -> list[Came]:
    settings = settings_of(arguments, 2 * TRIES)
    found = tasks(arguments.path, arguments.count)
    came = []
    async with AsyncExitStack() as stack:
        if arguments.maker:
            strong = stack.enter_context(closing(maker_of(found)))
            settings.models["maker"] = NamedModel(
                name="strong", base_url=strong.base_url, mode="native"
            )
        sandbox = await stack.enter_async_context(await Sandbox.start())
        if not arguments.base_url:  # the engine stays loaded between the workspaces
            keeper = await open_local(arguments.model, settings.model)
            stack.push_async_callback(keeper.aclose)
        for number, task in enumerate(found):
            if arguments.only is not None and number not in arguments.only:
                continue
            came.append(
                await make(task, settings, sandbox, told=arguments.told, trace=arguments.trace)
            )
            print(number, came[-1], file=sys.stderr, flush=True)
    return came


def total(came: Sequence[Came]) -> dict[str, Any]:  # Any: JSON
    """Return the figures as one JSON document."""
    admitted = [one for one in came if one.admitted_at]
    return {
        "tasks": len(came),
        "admitted_first": sum(one.admitted_at == 1 for one in came),
        "admitted": len(admitted),
        "confirmed": sum(one.confirmed for one in admitted),
        "pass_given": sum(bool(one.passed) for one in admitted),
        "median_s": statistics.median(one.seconds for one in came),
        "refusals": dict(Counter(code for one in came for code in one.refusals).most_common()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path, help="a file like functions_dev.jsonl")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument(
        "--only", type=lambda text: {int(part) for part in text.split(",")}, default=None
    )
    parser.add_argument(
        "--told",
        type=int,
        default=0,
        help="how many of its examples a task tells; the others judge",
    )
    parser.add_argument("--maker", action="store_true", help="a strong maker writes the functions")
    add_model_options(parser)
    parser.add_argument(
        "--trace", action="store_true", help="show every try and its answer on standard error"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    came = ran_with(arguments.model, _run(arguments))
    figures = total(came)
    print(
        json.dumps({"total": figures, "tasks": [asdict(one) for one in came]})
        if arguments.json
        else figures
    )


if __name__ == "__main__":
    main()
