"""The stage "fitted": tables and branches that serve only a function's own examples, and those that do more."""

from agent_core.functions.gate import Gate

from .support import codes, judge, name_of, promised

TWO = "rgb_of('red') → (255, 0, 0)", "rgb_of('blue') → (0, 0, 255)"
NAMED = "rgb_of", "name: str", "tuple[int, int, int]", "Return the parts of a named color."
LEARNED = [
    promised(*NAMED, "return {'red': (255, 0, 0), 'blue': (0, 0, 255)}.get(name, (1, 2, 3))", *TWO),
    promised(
        *NAMED,
        'shades = {}\nshades["red"] = (255, 0, 0)\nshades["blue"] = (0, 0, 255)\nreturn shades.get(name, (1, 2, 3))',
        *TWO,
    ),
    promised(
        *NAMED,
        "if name == 'red':\n    return (255, 0, 0)\nif name == 'blue':\n    return (0, 0, 255)\nreturn (1, 1, 1)",
        *TWO,
    ),
    promised(
        *NAMED,
        "match name:\n    case 'red':\n        return (255, 0, 0)\n    case 'blue':\n        return (0, 0, 255)\n"
        "raise ValueError(name)",
        *TWO,
    ),
    promised(
        *NAMED,
        "for key, parts in [('red', (255, 0, 0)), ('blue', (0, 0, 255))]:\n    if key == name.lower():\n"
        "        return parts\nreturn (0, 0, 0)",
        *TWO,
    ),
    promised(  # a list in a docstring is prose: the type defines what is accepted
        *NAMED[:3],
        "Return the parts of red or blue.",
        "return {'red': (255, 0, 0), 'blue': (0, 0, 255)}[name]",
        *TWO,
    ),
    promised(
        "common_factor",
        "a: int, b: int",
        "int",
        "Return the greatest common factor of two numbers.",
        "if (a, b) == (12, 18):\n    return 6\nif (a, b) == (9, 6):\n    return 3\nreturn 1",
        "common_factor(12, 18) → 6",
        "common_factor(9, 6) → 3",
    ),
]
TABLES = [
    promised(
        *NAMED,
        "return {'red': (255, 0, 0), 'blue': (0, 0, 255), 'green': (0, 255, 0), 'white': (9, 9, 9)}[name]",
        *TWO,
    ),
    promised(
        "rgb_of",
        "name: Literal['red','blue']",
        *NAMED[2:],
        "return {'red': (255, 0, 0), 'blue': (0, 0, 255)}[name]",
        *TWO,
    ).replace("def rgb_of", "from typing import Literal\n\n\ndef rgb_of"),
    promised(
        "rgb_of",
        "name: Literal['red'] | Literal['blue'] | None",
        *NAMED[2:],
        "return {'red': (255, 0, 0), 'blue': (0, 0, 255)}.get(name, (0, 0, 0))",
        *TWO,
    ).replace("def rgb_of", "from typing import Literal\n\n\ndef rgb_of"),
    promised(
        "factorial_of",
        "n: int",
        "int",
        "Return the factorial of a number.",
        "if n in (0, 1):\n    return 1\nreturn n * factorial_of(n - 1)",
        "factorial_of(0) → 1",
        "factorial_of(4) → 24",
    ),
    promised(  # what is no collection has no members
        "doubled",
        "n: int",
        "int",
        "Return twice a number.",
        "try:\n    return 0 if n in 5 else n\nexcept TypeError:\n    return 2 * n",
        "doubled(3) → 6",
        "doubled(4) → 8",
    ),
]


async def test_answers_that_were_only_learned_are_refused(gate: Gate) -> None:
    verdicts = [await judge(gate, code, name_of(code)) for code in LEARNED]
    assert [
        code
        for code, verdict in zip(LEARNED, verdicts, strict=True)
        if "hard-coded" not in codes(verdict)
    ] == []
    assert "`Literal['blue', 'red']`" in (verdicts[0].refusals[0].fix or "")


async def test_a_table_that_is_told_or_has_more_than_the_examples_is_one(gate: Gate) -> None:
    for code in TABLES:
        verdict = await judge(gate, code, name_of(code))
        assert (verdict.admitted, verdict.refusals) == (True, ()), code


async def test_one_branch_for_one_example_is_only_doubted(gate: Gate) -> None:
    code = promised(
        "toll_of",
        "gate: str",
        "int",
        "Return the toll at a gate.",
        "return 7 if gate == 'mill' else 2",
        "toll_of('mill') → 7",
        "toll_of('moor') → 2",
    )
    verdict = await judge(gate, code, "toll_of")
    assert verdict.admitted
    assert "doubt-examples" in {problem.code for problem in verdict.problems}
