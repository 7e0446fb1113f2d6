"""Functions that the gate takes for copies: `python -m benchmarks.copies PATH [--running] [--json]`.

PATH holds one function per line, as for benchmarks.gate. Some functions are disguised (parameters and locals renamed,
keyword arguments reordered, the docstring reworded) and should be recognized against the whole library; the original
functions, compared pairwise, should not. With `--running`, their statements are rewritten too, so only their results
give them away; all have hints and two examples, and the disguised ones have other examples if there are more.
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
from agent_core.functions.search import FunctionSearch
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from benchmarks.documented import documented as with_examples
from benchmarks.recall_data import model_named
from sandbox import Sandbox

DISGUISED = 100
_OTHER = {
    "return": "give back",
    "find": "work out",
    "list": "sequence",
    "string": "text",
    "number": "value",
}
_TEXT = tuple(one for one in STAGES if one.name in ("read", "conform", "duplicate"))
_RUNNING = tuple(
    one
    for one in STAGES
    if one.name in ("read", "conform", "duplicate", "import", "examples", "fitted")
)
_AT_ONCE = 8


def library(path: Path) -> dict[str, str]:
    """Return the functions of a data file by name, with descriptions as docstrings; a taken name gets a number."""
    found: dict[str, str] = {}
    for row in _rows(path):
        name = row["name"].lstrip("_")
        name = f"{name}_{len(found)}" if name in found else name
        found[name] = documented(row["code"], row["name"], name, row["description"])
    return found


def _rows(path: Path) -> list[dict[str, Any]]:  # Any: JSON
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def documented(code: str, old: str, name: str, description: str) -> str:
    """Return the code with a docstring, under this name."""
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
    """Return the same computation with other names, another keyword order, and a reworded description."""
    tree = ast.parse(code)
    node = find(tree, name)
    assert node is not None
    own = {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
    own |= {
        one.id
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    names = {
        old: f"{chance.choice('pqrstu')}{index}" for index, old in enumerate(sorted(own - {"self"}))
    }
    described = ast.get_docstring(node) or ""
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            chance.shuffle(call.keywords)
    reworded = re.sub(
        r"\w+", lambda word: _OTHER.get(word[0].lower(), word[0]), described.partition(">>>")[0]
    )
    node.body = [ast.Expr(ast.Constant(f"Differently said: {reworded}")), *body(node)]
    return ast.unparse(_renamed(tree, {**names, name: f"other_{name}"}))


async def bench(path: Path) -> dict[str, Any]:  # Any: JSON
    """Return both counts, and how long the stage takes against the whole library."""
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
        hits = [
            hit for name in functions for hit in await _hits(gate, name, functions[name], snapshot)
        ]
    found |= {
        "disguised": len(chosen),
        "hits": hits,
        "pairs": len(functions) * (len(functions) - 1),
    }
    return found


class _Anew(ast.NodeTransformer):
    """Rewrites statements: binds a result before returning it, and replaces augmented assignments."""

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        bound = ast.Assign([ast.Name("outcome", ast.Store())], node.value or ast.Constant(None))
        return [bound, ast.Return(ast.Name("outcome", ast.Load()))]

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        if not isinstance(node.target, ast.Name):
            return node
        return ast.Assign(
            [node.target], ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        )


def written_anew(row: dict[str, Any]) -> Candidate | None:  # Any: one line of the file
    """Return the function as `other_…`, with other statements and words and, if there are more, other examples."""
    candidate = with_examples(row | {"examples": row["examples"][::-1]})
    if candidate is None:
        return None
    tree = ast.parse(candidate.code)
    node = find(tree, candidate.name)
    assert node is not None
    told = ast.get_docstring(node) or ""
    words, mark, examples = told.partition(">>>")
    reworded = re.sub(r"\w+", lambda word: _OTHER.get(word[0].lower(), word[0]), words)
    examples = re.sub(rf"(>>> ){candidate.name}\b", rf"\1other_{candidate.name}", mark + examples)
    node.body = [ast.Expr(ast.Constant(f"Differently said: {reworded}{examples}\n")), *body(node)]
    tree = _renamed(
        ast.fix_missing_locations(_Anew().visit(tree)), {candidate.name: f"other_{candidate.name}"}
    )
    return Candidate(f"other_{candidate.name}", ast.unparse(tree), "elsewhere")


async def run_bench(path: Path) -> dict[str, Any]:  # Any: JSON
    """Return both counts where only the results identify functions."""
    rows, snapshot, chance = dict[str, dict[str, Any]](), Snapshot.empty(), random.Random(5)
    for row in _rows(path):
        candidate = with_examples(row) if row["name"] not in rows else None
        if candidate is not None:
            module = f"module_{len(rows)}"
            snapshot = snapshot.with_module(read_module(ModuleSource.of(module, candidate.code)))
            rows[row["name"]] = row
    anew = {
        name: candidate
        for name, row in rows.items()
        if (candidate := written_anew(row)) is not None
    }
    chosen = chance.sample(
        sorted(anew.keys() & snapshot.functions.keys()), min(DISGUISED, len(anew))
    )
    async with await Sandbox.start() as sandbox:
        finder = FunctionSearch(await model_named("wordllama"), None, lambda: snapshot)
        gate, turn = Gate(sandbox, stages=_RUNNING, search=finder), asyncio.Semaphore(_AT_ONCE)

        async def missed(name: str) -> tuple[str, float]:
            async with turn:
                verdict = await gate.judge(anew[name], snapshot)
            seconds = next(report.seconds for report in verdict.stages if report.stage == "fitted")
            said = [*_about(verdict, "copy"), *_about(verdict, "rewrite")]
            return ("" if any(f"`{name}(" in one for one in said) else name), seconds

        async def told(name: str) -> list[str]:
            async with turn:
                return await _hits(
                    gate, name, snapshot.modules[snapshot.functions[name].module].text, snapshot
                )

        disguises = await asyncio.gather(*map(missed, chosen))
        hits = [
            hit for found in await asyncio.gather(*map(told, snapshot.functions)) for hit in found
        ]
    count = len(snapshot.functions)
    return {
        "functions": count,
        "seconds": [seconds for _, seconds in disguises],
        "missed": [name for name, _ in disguises if name],
        "disguised": len(chosen),
        "hits": hits,
        "pairs": count * (count - 1),
    }


async def _hits(gate: Gate, name: str, code: str, snapshot: Snapshot) -> list[str]:
    """Return the messages that call one function of the library a copy of another, or nearly one."""
    module = snapshot.functions[name].module
    verdict = await gate.judge(Candidate(name, code, module), snapshot.without_module(module))
    return [
        f"{code}: {said}"
        for code in ("copy", "near-copy", "rewrite")
        for said in _about(verdict, code)
    ]


def _about(verdict: Verdict, code: str) -> list[str]:
    return [problem.message for problem in verdict.problems if problem.code == code]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.copies", description=__doc__)
    parser.add_argument("path", type=Path, help="a file like functions_dev.jsonl")
    parser.add_argument(
        "--running", action="store_true", help="functions that only their results tell"
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON document instead of the table"
    )
    options = parser.parse_args()
    started = time.perf_counter()
    found = asyncio.run((run_bench if options.running else bench)(options.path))
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for hit in found["hits"]:
        print(" ", hit)
    known = found["disguised"] - len(found["missed"])
    copies = sum(not hit.startswith("near-copy") for hit in found["hits"])
    warm = sorted(found["seconds"][1:])
    print(
        f"disguised: {known} of {found['disguised']} recognised; missed: {', '.join(found['missed']) or 'none'}"
    )
    print(
        f"pairs: {copies} of {found['pairs']} called copies, {100 * copies / found['pairs']:.4f} %"
    )
    print(
        f"the stage beside {found['functions']} functions: {1000 * warm[len(warm) // 2]:.2f} ms, ",
        end="",
    )
    print(
        f"at first {1000 * found['seconds'][0]:.0f} ms; in all {time.perf_counter() - started:.1f} s"
    )


if __name__ == "__main__":
    main()
