"""`functions check FILE` judges without admitting, and reports places in FILE."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agent_core.base.errors import UsageError
from agent_core.base.problem import Problem
from agent_core.functions.gate import Policy
from agent_core.functions.service import CheckRequest, FunctionService
from agent_core.functions.service.file_checks import check, jobs, judges
from agent_core.functions.service.judgment import Judgment
from tests.functions.support import CLAMP, COPY, CRASH, STRONG, Room
from tests.kit.desk import VOWELS, another

FLAWED = "\n\n" + VOWELS.replace("    5\n", "    4\n")
OTHER = another("count_more").replace("some letters besides the vowels", "the vowels")


async def checked(shop: FunctionService, path: Path, **options: Any) -> list[Judgment]:
    found: list[Judgment] = []
    await shop.checks.check(CheckRequest((path,), **options), found.append)
    assert (shop.names(), shop.rejected()) == ([], ())
    assert {each.path.partition(":")[0] for each in found} == {path.as_posix()}
    return found


def places(verdict: Judgment) -> list[tuple[str, str, int]]:
    return [(each.code, each.where.path, each.where.line) for each in verdict.problems]


async def test_every_problem_of_a_function_names_the_file_and_its_line(
    shop: FunctionService, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    for text, code, line in (
        (FLAWED, "example-disagrees", 12),
        ("\n\ndef count_vowels(text: str -> int:\n", "syntax-error", 3),
        ("\n\nLIMIT = 1 // 0\n\n\n" + VOWELS, "import-fails", 3),
        ("\n\n" + VOWELS.replace("(text: str)", "(text: str, *more)"), "star-parameter", 3),
        (VOWELS + "\n\nfor letter in 'ab':\n    pass\n", "top-level-statement", 18),
    ):
        file.write_text(text)
        (verdict,) = await checked(shop, file, name="count_vowels")
        assert not verdict.admitted
        assert (code, file.as_posix(), line) in places(verdict), verdict.problems
        assert {path for _, path, _ in places(verdict)} == {file.as_posix()}


READS = VOWELS.replace("    return", "    open('/etc/hostname').read()\n    return")


async def test_only_a_function_that_is_there_is_said_to_be_granted_what_it_needs(
    here: Room, tmp_path: Path
) -> None:
    policies: tuple[Policy, ...] = ("agent", "human")
    for text, policy in product((READS, f"{OTHER}\n\n{READS}"), policies):
        (file := tmp_path / "mine.py").write_text(text)
        verdicts = await checked(here.shop, file, policy=policy)
        (need,) = [
            each for verdict in verdicts for each in verdict.problems if each.code == "needs-files"
        ]
        assert "once the function is made or called" in str(need.fix)
        assert "functions grant" not in str(need.fix)
    await here.save(READS)
    for policy in policies:
        found: list[Judgment] = []
        await here.shop.checks.check(
            CheckRequest((here.letters,), policy, root=here.root), found.append
        )
        (need,) = [
            each for verdict in found for each in verdict.problems if each.code == "needs-files"
        ]
        assert "knapper functions grant NAME" in str(need.fix)


@pytest.mark.parametrize(
    ("policy", "refused"), [("human", set()), ("agent", {"copy", "crashes"}), ("import", {"copy"})]
)
async def test_functions_of_one_file_are_held_against_their_examples_and_one_another(
    shop: FunctionService, tmp_path: Path, policy: Policy, refused: set[str]
) -> None:
    (file := tmp_path / "mine.py").write_text("\n\n".join([CLAMP, COPY, CRASH, STRONG]))
    first, copy, crash, strong = await checked(shop, file, policy=policy)
    assert {
        one.code for each in (first, copy, crash, strong) for one in each.problems if is_bad(one)
    } == refused
    assert ("weak-examples", file.as_posix(), 15) in places(first)
    assert ("copy", file.as_posix(), 20) in places(copy)
    assert places(crash) == [("crashes", file.as_posix(), 52)]
    assert strong.problems == ()
    assert [one.stage for one in strong.stages][-4:] == [
        "duplicate",
        "fitted",
        "mutation",
        "robust",
    ]


def is_bad(problem: Problem) -> bool:
    return bool(problem.severity == "refuses")


async def test_chance_in_one_function_of_a_file_is_no_excuse_for_the_others(
    shop: FunctionService, tmp_path: Path
) -> None:
    roll = "def roll(sides: int) -> int:\n    return random.randint(1, sides)\n"
    twice = "def twice(sides: int) -> int:\n    return roll(sides) + roll(sides)\n"
    (file := tmp_path / "mine.py").write_text("\n\n".join(["import random\n", roll, twice, CLAMP]))
    rolled, doubled, weak = await checked(shop, file, policy="human")
    assert [
        "unproven" in {code for code, _, _ in places(each)} for each in (rolled, doubled, weak)
    ] == [
        True,
        True,
        False,
    ]
    assert "weak-examples" in {code for code, _, _ in places(weak)}


async def test_a_file_is_looked_at_though_the_workspace_has_a_function_of_that_name(
    here: Room, tmp_path: Path
) -> None:
    await here.save(CLAMP.replace("low", "least"))
    (file := tmp_path / "mine.py").write_text(f"{CLAMP}\n\n{CRASH}")
    found: list[Judgment] = []
    await here.shop.checks.check(CheckRequest((file,)), found.append)
    assert "weak-examples" in {code for code, _, _ in places(found[0])}


async def test_a_copy_in_a_file_is_told_unless_its_docstring_says_how_it_differs(
    here: Room, tmp_path: Path
) -> None:
    await here.save(CLAMP)
    for said, rest in product((False, True), ("", f"\n\n{CRASH}")):
        text = COPY.replace("limit.", "limit, as `clamp` does not.") if said else COPY
        (file := tmp_path / "mine.py").write_text(text + rest)
        found: list[Judgment] = []
        await here.shop.checks.check(CheckRequest((file,), "human"), found.append)
        assert ("copy" in {code for code, _, _ in places(found[0])}) is not said


async def test_a_module_that_cannot_be_imported_refuses_each_of_its_functions_with_its_own_problems(
    shop: FunctionService, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    for top, own in (("LIMIT = 1 // 0\n\n\n", "text: str"), ("", "text: str = str(1 // 0)")):
        file.write_text(f"{top}{OTHER}\n\n{VOWELS.replace('text: str', own)}")
        found = await checked(shop, file)
        assert [(each.name, each.admitted) for each in found] == [
            ("count_more", False),
            ("count_vowels", False),
        ]
        assert all("import-fails" in {code for code, _, _ in places(each)} for each in found)
    hollow = 'def later(n: int) -> int:\n    """Count on.\n\n    Args:\n        n: A number.\n    """\n    pass\n'
    file.write_text(f"LIMIT = 1 // 0\n\n\n{VOWELS}\n\n{hollow}")
    of_vowels, of_later = await checked(shop, file)
    assert {code for code, _, _ in places(of_vowels)} == {"import-fails"}
    assert {"import-fails", "placeholder"} <= {code for code, _, _ in places(of_later)}


async def test_each_line_of_many_candidates_is_told_with_its_number(
    shop: FunctionService, tmp_path: Path
) -> None:
    rows = [{"name": "count_vowels", "code": VOWELS}, {"name": "count_vowels", "code": FLAWED}]
    (file := tmp_path / "many.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
    found = await checked(shop, file)
    assert [(each.admitted, each.path) for each in found] == [
        (True, f"{file}:1"),
        (False, f"{file}:3"),
    ]


async def test_what_cannot_be_judged_is_refused_and_the_rest_goes_on(
    shop: FunctionService, tmp_path: Path
) -> None:
    (tmp_path / "more.jsonl").write_text(json.dumps({"name": "count_vowels", "code": VOWELS}))
    for name, content, code in (
        ("latin.py", b"x = '\xe9'\n", "unreadable"),
        ("many.jsonl", b'{"name": "f"}', "not-a-candidate"),
        ("many.jsonl", b"{", "not-a-candidate"),
        ("many.jsonl", b"[" * 100_000, "not-a-candidate"),
        ("many.jsonl", b'"' + b"a" * (5 << 20), "unreadable"),
    ):
        (file := tmp_path / name).write_bytes(content)
        found: list[Judgment] = []
        await shop.checks.check(CheckRequest((file, tmp_path / "more.jsonl")), found.append)
        assert [each.admitted for each in found] == [False, True]
        assert [one.code for one in found[0].problems] == [code], content[:20]


async def test_a_file_that_is_not_there_is_a_wrong_use(
    shop: FunctionService, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        await checked(shop, tmp_path / "no.py")


async def test_a_folder_is_judged_in_order_and_its_modules_find_one_another(
    shop: FunctionService, tmp_path: Path
) -> None:
    (lib := tmp_path / "lib").mkdir()
    (lib / "base.py").write_text(VOWELS)
    user = OTHER.replace("return", "return count_vowels('') +") + "\n\n" + another("count_most")
    (lib / "uses.py").write_text(f"from .base import count_vowels\n\n\n{user}")
    (lib / ".hidden").mkdir()
    (lib / ".hidden" / "no.py").write_text("def (")
    (lib / "linked.py").symlink_to(lib / "base.py")
    found: list[Judgment] = []
    await shop.checks.check(CheckRequest((lib,)), found.append)
    told = [(each.name, each.admitted) for each in found]
    assert told == [("count_vowels", True), ("count_more", True), ("count_most", True)], found


async def test_a_file_of_the_workspace_is_judged_as_the_module_that_it_is(here: Room) -> None:
    await here.save(f"{VOWELS}\n\n{OTHER.replace(': str', '')}")
    policies: tuple[tuple[Policy, bool], ...] = (("human", True), ("agent", False))
    for policy, admitted in policies:
        found: list[Judgment] = []
        await here.shop.checks.check(
            CheckRequest((here.letters,), policy, root=here.root), found.append
        )
        assert [(each.name, each.module, each.admitted) for each in found] == [
            ("count_vowels", "letters", True),
            ("count_more", "letters", admitted),
        ]
        assert {one.where.path for each in found for one in each.problems} == {
            here.letters.as_posix()
        }


async def test_other_processes_judge_as_this_one_does_and_in_order(
    here: Room, tmp_path: Path
) -> None:
    await here.save(VOWELS)
    rows = [
        {"name": f"count_{n}", "code": VOWELS.replace("count_vowels", f"count_{n}")}
        for n in ("a", "b")
    ]
    rows = [*rows, {"name": "count_vowels", "code": FLAWED}, {"name": "f"}]
    (file := tmp_path / "many.jsonl").write_text("\n".join(map(json.dumps, rows)))
    alone: list[Judgment] = []
    shared: list[Judgment] = []
    await here.shop.checks.check(CheckRequest((file,)), alone.append)
    await here.shop.checks.check(CheckRequest((file,)), shared.append, processes=2)
    assert [_bare(each) for each in alone] == [_bare(each) for each in shared]
    assert "name-taken" in {one.code for one in shared[2].problems}


async def test_a_process_that_ends_is_told_and_leaves_nobody_waiting(
    here: Room, tmp_path: Path
) -> None:
    (file := tmp_path / "many.jsonl").write_text(
        (json.dumps({"name": "count_vowels", "code": VOWELS}) + "\n") * 40
    )
    bench = here.shop.checks.context()
    broken = replace(bench, sandbox=bench.sandbox.model_copy(update={"wall_s": -1.0}))
    with pytest.raises(ExceptionGroup, match="unhandled") as caught:
        async with judges(broken, here.shop.checks.gate, None, processes=2) as judge:
            await check(
                jobs(CheckRequest((file,)), here.shop.registry.snapshot()), judge, lambda _: None
            )
    assert "ended unexpectedly" in str(caught.value.exceptions)


def _bare(row: Judgment) -> dict[str, Any]:
    return {**row.to_json(), "stages": [(one.stage, one.passed) for one in row.stages]}
