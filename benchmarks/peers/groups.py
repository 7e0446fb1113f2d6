"""`make bench-groups`: who speaks next, here and in other frameworks, with the same scripted members and models.

Five awkward models choose over thirty turns; then forty labeled scenarios ask who is next; half of them were held back
while the rules were written. A peer that is neither installed nor installable is skipped, with the reason. With
`--model local/qwen2.5-coder-1.5b`, only that model is measured, on the choices that the rules leave open.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

from agent_core.model.reply import Model, Reply
from agent_core.runtime.groups.floor import USER, Floor, Speech
from agent_core.runtime.groups.loop import answered_name, choice_request
from agent_core.runtime.groups.plan import TASK, NoAdvice, Policy, SpeakerQuestion, choose
from knapper_ext.local.server import open_local

from .__main__ import installed

SCENARIOS: Final = Path(__file__).parents[1] / "group_scenarios.toml"
MEMBERS: Final = {"planner": "Plans.", "coder": "Writes code.", "critic": "Finds faults."}
TURNS: Final = 30
PEERS: Final = ("autogen-agentchat", "agent-framework")
Case: TypeAlias = dict[str, Any]  # Any: JSON

_PLAIN: Final = dict.fromkeys(MEMBERS, "w" * 200)
_ADDRESSING: Final = {
    "planner": "@coder write it",
    "coder": "@critic look",
    "critic": "@planner next",
}
BEHAVIORS: Final = {
    "always one name": (["coder"], _PLAIN),
    "no name": (["I think the user should decide"], _PLAIN),
    "two names": (["planner, then coder"], _PLAIN),
    "wrong case": (["Planner", "CODER"], _PLAIN),
    "addressed with @": (["planner"], _ADDRESSING),
}


@dataclass
class Answering:
    """Advisers that answer by a script."""

    answers: Sequence[str]
    sizes: list[int] = field(default_factory=list)

    async def function(self, name: str, floor: Floor, most: int) -> object:
        """Offer no function."""
        raise NoAdvice("there is none")

    async def model(self, question: SpeakerQuestion) -> str:
        """Return the next answer."""
        self.sizes.append(len(TASK) + len(question.text))
        return self.answers[(len(self.sizes) - 1) % len(self.answers)]


@dataclass
class AskingModel(Answering):
    """Advisers that ask a real model."""

    real: Model | None = None

    async def model(self, question: SpeakerQuestion) -> str:
        """Return the model's answer."""
        assert self.real is not None
        self.sizes.append(len(TASK) + len(question.text))
        *_, reply = [piece async for piece in self.real.stream(choice_request(question))]
        assert isinstance(reply, Reply)
        return answered_name(reply)


async def asked_of(name: str, cases: Sequence[Case]) -> list[Case]:
    """Return whom a group chooses in each case if the rules come first and a local model decides the rest."""
    model, policy, results = await open_local(name), Policy(choose="model"), []
    for number, case in enumerate(cases):
        adviser, said = (
            AskingModel((), real=model),
            [Speech(by, text, case["to"]) for by, text in case["said"]],
        )
        choice = await choose(Floor(case["members"], said), policy, adviser)
        results.append({"speakers": [choice.name], "asked": len(adviser.sizes)})
        told = f"{number} {choice.name} by {choice.rule}, right: {' or '.join(case['next'])} {'; '.join(choice.passed)}"
        print(told, file=sys.stderr, flush=True)
    await model.aclose()
    return results


def ours(case: Case, policy: Policy) -> Case:
    """Return the speakers that our group chooses in a case."""
    said, asked = (
        [Speech(by, text, case.get("to", "")) for by, text in case["said"]],
        Answering(case["answers"]),
    )
    speakers = []
    for _ in range(case["turns"]):
        name = asyncio.run(choose(Floor(case["members"], said), policy, asked)).name
        speakers.append(name)
        if name == USER:
            break
        said.append(Speech(name, case["texts"][name]))
    return {"speakers": speakers, "asked": len(asked.sizes), "sizes": asked.sizes}


def peer(name: str, cases: Sequence[Case]) -> list[Case]:
    """Return the speakers that a peer chooses in the cases.

    Raises:
        OSError: it is neither installed nor installable.
    """
    command = [str(installed(name)), str(Path(__file__).with_name("group_peers.py")), name]
    done = subprocess.run(
        command, input=json.dumps(cases), capture_output=True, text=True, timeout=900
    )
    if done.returncode:
        raise OSError(f"it failed: {done.stderr.strip().splitlines()[-1:]}")
    results: list[Case] = json.loads(done.stdout.splitlines()[-1])
    return results


def behavior_cases() -> list[Case]:
    """Return the five awkward models, each over thirty turns."""
    return [
        {
            "members": MEMBERS,
            "said": [[USER, "go"]],
            "turns": TURNS,
            "answers": answers,
            "texts": texts,
        }
        for answers, texts in BEHAVIORS.values()
    ]


def scenario_cases() -> list[Case]:
    """Return the scenarios, each with the answer of one scripted model (see `scripted_choice`)."""
    data = tomllib.loads(SCENARIOS.read_text())
    cases = []
    for scenario in data["scenario"]:
        members = data["teams"][scenario["team"]]
        case = {
            "members": members,
            "said": scenario["said"],
            "turns": 1,
            "texts": dict.fromkeys(members, "Fine."),
        }
        case |= {
            "answers": [scripted_choice(members, scenario["said"])],
            "to": scenario.get("to", ""),
        }
        cases.append(case | {"half": scenario["half"], "next": scenario["next"]})
    return cases


def scripted_choice(members: dict[str, str], said: Sequence[Sequence[str]]) -> str:
    """Return the first member that the last speech names, except its speaker; else the one whose purpose fits best."""
    by, text = said[-1]
    names = [name for name in members if name != by]
    named = {
        name: match.start()
        for name in names
        if (match := re.search(rf"\b{name}\b", text, re.IGNORECASE))
    }
    if named:
        return min(named, key=lambda name: named[name])
    stems = {word[:5] for word in re.findall(r"\w{4,}", text.casefold())}
    about = {
        name: len(stems & {word[:5] for word in re.findall(r"\w{4,}", members[name].casefold())})
        for name in names
    }
    return max(names, key=lambda name: about[name])


def figures(result: Case) -> Case:
    """Return the figures of thirty turns."""
    speakers, sizes = result["speakers"], result["sizes"] or [0]
    repeats = sum(one == other for one, other in pairwise(speakers))
    return {
        "turns": len(speakers),
        "repeats": repeats,
        "starved": len(MEMBERS.keys() - {*speakers}),
        "asked a turn": round(result["asked"] / max(len(speakers), 1), 2),
        "question first": sizes[0],
        "question last": sizes[-1],
        "error": result.get("error", ""),
    }


def share(results: Sequence[Case], cases: Sequence[Case], half: str = "") -> str:
    """Return how many scenarios were answered correctly."""
    pairs = [
        (result, case)
        for result, case in zip(results, cases, strict=True)
        if half in ("", case["half"])
    ]
    right = sum(
        result["speakers"][:1] != [] and result["speakers"][0] in case["next"]
        for result, case in pairs
    )
    return f"{right} of {len(pairs)}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.groups", description=__doc__)
    parser.add_argument(
        "--json", action="store_true", help="one JSON document instead of the tables"
    )
    parser.add_argument(
        "--held", action="store_true", help="also the half of the scenarios that was held back"
    )
    parser.add_argument("--model", help="a local model, which alone is asked the scenarios")
    given = parser.parse_args()
    halves = ("tuned", "held", "") if given.held else ("tuned",)
    behaviors, scenarios = behavior_cases(), scenario_cases()
    if given.model:
        print(with_model(given.model, scenarios, halves))
        return
    asking = Policy(choose="model")
    rows = {"Knapper": [figures(ours(case, asking)) for case in behaviors]}
    shares = {
        "Knapper, rules alone": [ours(case, Policy()) for case in scenarios],
        "Knapper, scripted model": [ours(case, asking) for case in scenarios],
        "the scripted model alone": [{"speakers": case["answers"]} for case in scenarios],
    }
    skipped = {}
    for name in PEERS:
        try:
            results = peer(name, [*behaviors, *scenarios])
        except (OSError, subprocess.SubprocessError) as error:
            skipped[name] = str(error)
            continue
        rows[name] = [figures(result) for result in results[: len(behaviors)]]
        shares[f"{name}, scripted model"] = results[len(behaviors) :]
    right = {
        name: {half or "all": share(found, scenarios, half) for half in halves}
        for name, found in shares.items()
    }
    if given.json:
        print(json.dumps({"behaviors": rows, "scenarios": right, "skipped": skipped}))
        return
    print(table(rows), scenario_table(right), sep="\n\n")
    for name, reason in skipped.items():
        print(f"{name} skipped: {reason}")


def with_model(name: str, scenarios: Sequence[Case], halves: Sequence[str]) -> str:
    """Return the shares of right choices with a local model, and how often it was asked."""
    found = asyncio.run(asked_of(name, scenarios))
    right = {half or "all": share(found, scenarios, half) for half in halves}
    asked = sum(result["asked"] for result in found)
    return f"{scenario_table({f'Knapper, {name}': right})}\nasked {asked} of {len(found)} times"


def table(rows: dict[str, list[Case]]) -> str:
    """Return the figures of the five models as lines."""
    keys = [key for key in next(iter(rows.values()))[0] if key != "error"]
    lines = [f"{'':20} {'the model answers':18} " + " ".join(f"{key:>14}" for key in keys)]
    for name, found in rows.items():
        for behavior, row in zip(BEHAVIORS, found, strict=True):
            lines.append(
                f"{name:20} {behavior:18} "
                + " ".join(f"{row[key]:>14}" for key in keys)
                + f" {row['error']}"
            )
    return "\n".join(lines)


def scenario_table(right: dict[str, dict[str, str]]) -> str:
    """Return the shares of right answers as lines."""
    return "\n".join(
        f"{name:34} " + ", ".join(f"{half}: {text}" for half, text in shares.items())
        for name, shares in right.items()
    )


if __name__ == "__main__":
    main()
