"""Functions that the gate takes for copies: `python -m benchmarks.copies PATH [--json]`.

PATH holds one function a line, as for benchmarks.gate. Functions of it are disguised (parameters and locals
renamed, keyword arguments reordered, the docstring reworded) and should be recognised beside the whole library;
the functions as they are, taken pairwise, should not.
"""

import argparse
import ast
import asyncio
import json
import random
import re
import time
from pathlib import Path
from typing import Any

from agent_core.functions.gate import Candidate, Gate, Verdict
from agent_core.functions.gate.gate import STAGES
from agent_core.functions.gate.tree import body, find
from agent_core.registry.schema import read_module
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource
from sandbox import Sandbox

DISGUISED = 100
_OTHER = {"return": "give back", "find": "work out", "list": "sequence", "string": "text", "number": "value"}
_TEXT = tuple(one for one in STAGES if one.name in ("read", "conform", "duplicate"))


def library(path: Path) -> dict[str, str]:
    """The functions of a data file by name, each with its description as docstring; a taken name is numbered."""
    found: dict[str, str] = {}
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        name = row["name"].lstrip("_")
        name = f"{name}_{len(found)}" if name in found else name
        found[name] = documented(row["code"], row["name"], name, row["description"])
    return found


def documented(code: str, old: str, name: str, description: str) -> str:
    """The code with a docstring, under a name."""
    tree = ast.parse(code)
    node = find(tree, old)
    assert node is not None
    if ast.get_docstring(node) is None:
        node.body.insert(0, ast.Expr(ast.Constant(description.partition(">>>")[0])))
    return ast.unparse(_renamed(tree, {old: name}))


def _renamed(tree: ast.Module, names: dict[str, str]) -> ast.Module:
    for one in ast.walk(tree):
        for field in ("id", "arg", "name"):
            if not isinstance(one, ast.keyword | ast.alias) and getattr(one, field, None) in names:
                setattr(one, field, names[getattr(one, field)])
    return ast.fix_missing_locations(tree)


def disguised(code: str, name: str, chance: random.Random) -> str:
    """The same computation under other names, keywords in another order, described in other words."""
    tree = ast.parse(code)
    node = find(tree, name)
    assert node is not None
    own = {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
    own |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    names = {old: f"{chance.choice('pqrstu')}{index}" for index, old in enumerate(sorted(own - {"self"}))}
    described = ast.get_docstring(node) or ""
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            chance.shuffle(call.keywords)
    reworded = re.sub(r"\w+", lambda word: _OTHER.get(word[0].lower(), word[0]), described.partition(">>>")[0])
    node.body = [ast.Expr(ast.Constant(f"Differently said: {reworded}")), *body(node)]
    return ast.unparse(_renamed(tree, {**names, name: f"other_{name}"}))


async def bench(path: Path) -> dict[str, Any]:  # Any: JSON
    """Both counts, and how long the stage takes beside the whole library."""
    functions = library(path)
    snapshot, chance = Snapshot.empty(), random.Random(5)
    for index, text in enumerate(functions.values()):
        snapshot = snapshot.with_module(read_module(ModuleSource.of(f"module_{index}", text)))
    found: dict[str, Any] = {"functions": len(snapshot.functions), "seconds": [], "missed": []}
    async with await Sandbox.start() as sandbox:
        gate = Gate(sandbox, stages=_TEXT)
        chosen = chance.sample(sorted(functions), min(DISGUISED, len(functions)))
        for name in chosen:
            code = disguised(functions[name], name, chance)
            verdict = await gate.judge(Candidate(f"other_{name}", code, "elsewhere"), snapshot)
            found["seconds"].append(verdict.stages[-1].seconds)
            found["missed"] += [] if _about(verdict, "copy") else [name]
        hits = [hit for name in functions for hit in await _hits(gate, name, functions[name], snapshot)]
    found |= {"disguised": len(chosen), "hits": hits, "pairs": len(functions) * (len(functions) - 1)}
    return found


async def _hits(gate: Gate, name: str, code: str, snapshot: Snapshot) -> list[str]:
    """Return what one function of the library is called a copy of, or near to."""
    module = snapshot.functions[name].module
    verdict = await gate.judge(Candidate(name, code, module), snapshot.without_module(module))
    return [f"{code}: {said}" for code in ("copy", "near-copy") for said in _about(verdict, code)]


def _about(verdict: Verdict, code: str) -> list[str]:
    return [problem.message for problem in verdict.problems if problem.code == code]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.copies", description=__doc__)
    parser.add_argument("path", type=Path, help="a file like functions_dev.jsonl")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    options = parser.parse_args()
    started = time.perf_counter()
    found = asyncio.run(bench(options.path))
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for hit in found["hits"]:
        print(" ", hit)
    known = found["disguised"] - len(found["missed"])
    copies = sum(hit.startswith("copy") for hit in found["hits"])
    warm = sorted(found["seconds"][1:])
    print(f"disguised: {known} of {found['disguised']} recognised; missed: {', '.join(found['missed']) or 'none'}")
    print(f"pairs: {copies} of {found['pairs']} called copies, {100 * copies / found['pairs']:.4f} %")
    print(f"the stage beside {found['functions']} functions: {1000 * warm[len(warm) // 2]:.2f} ms, ", end="")
    print(f"at first {1000 * found['seconds'][0]:.0f} ms; in all {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
