"""The gate's verdicts on hollow functions and honest look-alikes: `python -m benchmarks.hollow PATH [--policy P] [-v]`.

PATH holds one function a line: `id`, `kind` (`honest`, or how it is hollow), `source` and `name`. Honest functions
should be admitted, all else refused. Parameters without a description get one ("What is given as NAME."), so that no
verdict is about that alone. A doubt counts as admitted if its author is asked nothing, and so does what lacks a human's
yes only. The author of an honest function answers a challenge with what it returns, and adds the example that is
offered where one is missing: both are tried out.
"""

import argparse
import ast
import asyncio
import json
import re
import time
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Literal

from agent_core.functions.gate import Candidate, GivenExample, Policy
from agent_core.registry import docstring

from .gate import Case, Judged, judge_all

HONEST = "honest"
_SECTION = re.compile(r">>>|(?:Returns|Raises|Yields|Examples?|Notes?):$")
_RAISED = re.compile(r"for `(?P<call>.+?)` you wrote .*it raised `(?P<error>\w+)")
Answer = Literal["refused", "challenged", "admitted"]


def cases(path: Path, lines: str = "all") -> list[Case]:
    """Return the candidates of a data file: of all its lines, the odd or the even ones."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    rows = {"all": rows, "odd": rows[::2], "even": rows[1::2]}[lines]
    return [
        Case(row["id"], row["kind"], Candidate(row["name"], described(row["source"], row["name"]), "library"))
        for row in rows
    ]


def described(source: str, name: str) -> str:
    """Return a source in which each parameter of the function has a description."""
    body = ast.parse(source).body
    node = next(child for child in body if isinstance(child, ast.FunctionDef) and child.name == name)
    text, first = ast.get_docstring(node, clean=False), node.body[0]
    arguments = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    missing = [one for one in arguments if one not in docstring.read(text).parameters and one != "self"]
    if text is None or not missing:
        return source
    lines, indent = source.splitlines(), " " * first.col_offset
    rows = range(first.lineno, first.end_lineno or first.lineno)  # those below its first line
    entries = [f"{indent}    {one}: What is given as {one}." for one in missing]
    if head := next((at + 1 for at in rows if lines[at].strip() in ("Args:", "Arguments:")), 0):
        return "\n".join([*lines[:head], *entries, *lines[head:]]) + "\n"
    section = next((at for at in rows if _SECTION.match(lines[at].strip())), rows[-1] if len(rows) else 0)
    told = [f"{indent}Args:", *entries, ""]
    return "\n".join([*lines[:section], *told, *lines[section:]]) + "\n" if section else source


def answer_of(result: Judged) -> Answer:
    """Return what became of a function; it joins, if need be, after the user was asked for its grants."""
    if result.verdict.admitted or result.verdict.lacks_only_grants:
        return "admitted"
    codes = {problem.code for problem in result.verdict.refusals}
    return "challenged" if codes == {"challenged"} else "refused"


def is_right(result: Judged) -> bool:
    """Check whether a hollow function stays out, at first, and an honest one can join."""
    return (answer_of(result) == "admitted") != (result.case.kind != HONEST) or answer_of(result) == "challenged"


async def taken_up(judged: list[Judged], policy: Policy) -> list[Judged]:
    """Return the verdicts on honest functions that lacked an example, with the one that the gate offered."""
    lacking = [result for result in judged if result.case.kind == HONEST and result.verdict.can_be_confirmed]
    cases = [
        replace(result.case, candidate=replace(result.case.candidate, examples=_offered(result))) for result in lacking
    ]
    return await judge_all(cases, policy, challenging=True)


def _offered(result: Judged) -> tuple[GivenExample, ...]:
    return tuple(GivenExample(one.call, one.returned) for one in result.verdict.to_confirm)


async def answered(judged: list[Judged], policy: Policy) -> list[Judged]:
    """Return the verdicts on honest functions that were challenged, after an answer with what they return."""
    asked = [result for result in judged if result.case.kind == HONEST and answer_of(result) == "challenged"]
    guessed = await judge_all(
        [_with_answers(result, {}, "'no such answer'") for result in asked], policy, challenging=True
    )
    told = [_with_answers(result, _returned(guess), "ValueError") for result, guess in zip(asked, guessed, strict=True)]
    return await judge_all(told, policy, challenging=True)


def _returned(guess: Judged) -> dict[str, str]:
    """Return what the calls came to of which nothing right was guessed: a result, or an error by its name."""
    raised = (_RAISED.match(problem.message) for problem in guess.verdict.problems)
    errors = {match["call"]: match["error"] for match in raised if match}
    return errors | {differs.call: differs.returned for differs in guess.verdict.disagreements}


def _with_answers(result: Judged, answers: dict[str, str], otherwise: str) -> Case:
    """Return a case with an answer to each call that was asked about."""
    calls = result.verdict.challenges
    examples = tuple(GivenExample(call, answers.get(call, otherwise)) for call in calls)
    return replace(result.case, candidate=replace(result.case.candidate, examples=examples, asked=calls))


def show(judged: list[Judged], *, is_verbose: bool) -> None:
    """Print what became of each kind, then what was judged wrongly."""
    kinds: dict[str, list[Judged]] = defaultdict(list)
    for result in judged:
        kinds[result.case.kind].append(result)
    print(f"{'kind':<14}{'count':>6}{'refused':>9}{'challenged':>12}{'admitted':>10}{'p50':>13}")
    for kind, results in sorted(kinds.items()):
        print(_row(kind, results))
    print(_row("all hollow", [result for result in judged if result.case.kind != HONEST]))
    for result in judged:
        if not is_right(result) or is_verbose:
            print(_wrong(result, is_verbose=is_verbose))


def _row(kind: str, results: list[Judged]) -> str:
    counts = Counter(answer_of(result) for result in results)
    if not results:
        return f"{kind:<14}{0:>6}{'none in these lines':>36}"
    share = counts["admitted"] / len(results)
    cells = f"{counts['refused']:>9}{counts['challenged']:>12}{counts['admitted']:>5}{share:>5.0%}"
    middle = sorted(result.seconds for result in results)[len(results) // 2]
    return f"{kind:<14}{len(results):>6}{cells}{1000 * middle:>10.0f} ms"


def _wrong(result: Judged, *, is_verbose: bool) -> str:
    codes = Counter(problem.code for problem in result.verdict.problems)
    told = [str(problem) for problem in result.verdict.refusals] if is_verbose or result.case.kind == HONEST else []
    return "\n    ".join([f"{result.case.id} {result.case.candidate.name}: {answer_of(result)}, {dict(codes)}", *told])


async def _judged(path: Path, lines: str, policy: Policy) -> tuple[list[Judged], list[Judged], list[Judged]]:
    judged = await judge_all(cases(path, lines), policy, challenging=True)
    return judged, await answered(judged, policy), await taken_up(judged, policy)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hollow", description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--policy", choices=("agent", "human", "import"), default="agent")
    parser.add_argument("--lines", choices=("all", "odd", "even"), default="all", help="only these lines of the file")
    parser.add_argument("-v", "--verbose", action="store_true", help="say what was found in each")
    options = parser.parse_args()
    started = time.perf_counter()
    judged, answers, completed = asyncio.run(_judged(options.path, options.lines, options.policy))
    show(judged, is_verbose=options.verbose)
    joined = sum(answer_of(result) == "admitted" for result in answers)
    print(f"honest functions that join once their author has answered the challenge: {joined} of {len(answers)}")
    joined = sum(answer_of(result) == "admitted" for result in completed)
    print(f"honest functions that join with the example that the gate offers: {joined} of {len(completed)}")
    for result in [*answers, *completed]:
        if answer_of(result) != "admitted":
            print("\n    ".join([result.case.id, *map(str, result.verdict.refusals)]))
    print(f"{len(judged)} verdicts in {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
