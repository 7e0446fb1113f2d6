"""Shared by the gate's tests: run a candidate through the text stages, and read the findings."""

import re
from textwrap import dedent, indent

from agent_core.functions.gate import Candidate, Gate, Policy, Rules, Verdict
from agent_core.functions.gate.autofix import fix
from agent_core.functions.gate.capability import capability
from agent_core.functions.gate.conform import conform
from agent_core.functions.gate.draft import Draft
from agent_core.functions.gate.read import read
from agent_core.functions.gate.substance import substance
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from tests.kit.sources import function_text

ADD = function_text(
    "add(a: int, b: int) -> int",
    "Add two numbers.\n\nArgs:\n    a: The first.\n    b: The second.\n\nReturns:\n    The sum.\n\nExamples:\n    "
    ">>> add(1, 2)\n    3\n    >>> add(2, 2)\n    4",
    "return a + b",
)
TEXT_STAGES = (read, fix, conform, substance, capability)


def snapshot_of(**modules: str) -> Snapshot:
    """Return a snapshot of modules given as text."""
    snapshot = Snapshot.empty()
    for module, text in modules.items():
        snapshot = snapshot.with_module(read_module(ModuleSource.of(module, dedent(text))))
    return snapshot


def on_text(
    code: str,
    name: str = "f",
    policy: Policy = "agent",
    *,
    module: str = "lib",
    snapshot: Snapshot | None = None,
    rules: Rules | None = None,
) -> Draft:
    """Return a candidate after the stages that need no worker."""
    candidate = Candidate(name, code, module)
    draft = Draft(candidate, policy, rules or Rules(), snapshot or Snapshot.empty(), code)
    for stage in TEXT_STAGES:
        draft = stage(draft)
    return draft


def function(body: str, parameters: str = "a: int, b: int", returns: str = "int") -> str:
    """Return a well-described `f` with the given body."""
    names = [one.split(":")[0].strip() for one in parameters.split(", ") if one]
    entries = "".join(f"        {one}: A value.\n" for one in names if one != "self")
    arguments = f"\n    Args:\n{entries}" if entries else ""
    lines = "".join(
        f"    {line}\n" if line else "\n" for line in dedent(body).strip("\n").split("\n")
    )
    return f'def f({parameters}) -> {returns}:\n    """Do a thing.\n{arguments}    """\n{lines}'


def codes(judged: Draft | Verdict) -> set[str]:
    """Return the codes of the rejections."""
    return {problem.code for problem in judged.problems if problem.severity == "refuses"}


def name_of(code: str) -> str:
    """Return the name of the function defined at the end of a text; any other text is returned unchanged."""
    names: list[str] = re.findall(r"^def (\w+)", code, re.MULTILINE)
    return names[-1] if names else code


def warnings(draft: Draft) -> set[str]:
    """Return the codes of the warnings."""
    return {problem.code for problem in draft.problems if problem.severity == "warns"}


def fixes(draft: Draft) -> list[str]:
    """Return the codes of the fixes."""
    return [one.code for one in draft.fixes]


def documented(name: str, parameters: str, returns: str, body: str, *examples: str) -> str:
    """Return a described function with examples, each `call → result`."""
    names = [one.split(":")[0].strip() for one in parameters.split(", ") if one]
    entries = "".join(f"        {one}: A value.\n" for one in names if one != "self")
    arguments = f"\n    Args:\n{entries}" if entries else ""
    shown = "".join("        >>> {}\n        {}\n".format(*one.split(" → ")) for one in examples)
    doctests = f"\n    Examples:\n{shown}" if shown else ""
    return f'def {name}({parameters}) -> {returns}:\n    """Do a thing.\n{arguments}{doctests}    """\n    {body}\n'


async def judge(
    gate: Gate,
    code: str,
    name: str = "f",
    policy: Policy = "agent",
    snapshot: Snapshot | None = None,
    *,
    is_asking: bool = False,
) -> Verdict:
    candidate = Candidate(name, code, "lib")
    return await gate.judge(candidate, snapshot or Snapshot.empty(), policy, challenging=is_asking)


def promised(
    name: str, parameters: str, returns: str, sentence: str, body: str, *examples: str
) -> str:
    """Return a function with the given first sentence, and examples, each `call → result`."""
    names = [one.split(":")[0].strip() for one in parameters.split(", ") if one]
    entries = "".join(f"        {one}: The {one}.\n" for one in names if one != "self")
    shown = "".join("        >>> {}\n        {}\n".format(*one.split(" → ")) for one in examples)
    words = f'    """{sentence}\n\n    Args:\n{entries}\n    Examples:\n{shown}    """\n'
    return (
        f"def {name}({parameters}) -> {returns}:\n"
        + words
        + indent(dedent(body).strip("\n"), "    ")
        + "\n"
    )
