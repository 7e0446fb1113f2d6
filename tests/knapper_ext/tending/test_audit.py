"""The state of a library: confusable, failing, unused and other functions, with proposals and a score in parts."""

import json
from pathlib import Path
from typing import Any

from agent_core.access.grants import Grants
from agent_core.views.styled_lines import plain
from agent_core.views.verdicts import SLASH
from knapper_ext.tending.audit import AuditFinding, AuditReport, audit_of
from knapper_ext.tending.lines import audit_lines
from tests.conftest import OpenDesk
from tests.functions.test_second_looks import edited
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import VOWELS, answers, outcomes
from tests.kit.program import knapper
from tests.kit.sources import function_text

READ = '''\
def {name}(url: str) -> str:
    """Read the text of a web page.

    >>> {name}("a b")
    '{first}'
    >>> {name}("c")
    '{second}'
    """
    return {body}
'''
FETCH = READ.format(name="fetch_page", first="a b", second="c", body="url.strip()")
SITE = READ.format(name="fetch_site", first="A B", second="C", body="url.upper()")
SAME = READ.format(name="get_site_page", first="a b", second="c", body="''.join(c for c in url)")
BARE = '''\
def water_plan(days: int) -> list:
    """Plan on which days of a month the plants in the garden get water."""
    return [*range(1, 31, days)]
'''
MANY = function_text(
    "parcel(a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int) -> int",
    "Add up what eight parcels weigh.",
    "return a + b + c + d + e + f + g + h",
    "parcel(1, 1, 1, 1, 1, 1, 1, 1) → 8",
    "parcel(2, 1, 1, 1, 1, 1, 1, 1) → 9",
)


def library(root: Path, **modules: str) -> Path:
    (root / "functions").mkdir(exist_ok=True)
    (root / "knapper.toml").touch()
    for name, text in modules.items():
        (root / "functions" / f"{name}.py").write_text(text)
    return root


def audited(root: Path, *flags: str) -> dict[str, Any]:
    done = knapper("functions", "audit", *flags or ("--json",), cwd=root)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_a_report_has_a_score_its_parts_and_findings_with_proposals_and_commands(
    tmp_path: Path,
) -> None:
    report = audited(library(tmp_path, pages=f"{FETCH}\n\n{SITE}", garden=BARE, parcels=MANY))
    findings = {finding["code"]: finding for finding in report["findings"]}
    assert {code: finding["function"] for code, finding in findings.items()} == {
        "confusable": "fetch_site",
        "missing-examples": "water_plan",
        "many-parameters": "parcel",
    }
    assert findings["confusable"]["others"] == ["fetch_page"]
    assert "different results" in findings["confusable"]["message"]
    assert findings["confusable"]["command"] == "knapper functions edit fetch_site"
    assert findings["missing-examples"]["command"].startswith(
        "knapper functions add-example water_plan --call "
    )
    assert sum(part["most"] for part in report["parts"]) == 100
    assert report["score"] == round(sum(part["points"] for part in report["parts"])) < 100
    assert {part["code"]: part["functions"] for part in report["parts"]}["confusable"] == 2
    (run,) = audited(tmp_path, "--sarif")["runs"]
    places = [
        (result["ruleId"], place["artifactLocation"]["uri"], place["region"]["startLine"])
        for result in run["results"]
        for place in [result["locations"][0]["physicalLocation"]]
    ]
    assert ("confusable", "functions/pages.py", 12) in places
    assert ("missing-examples", "functions/garden.py", 1) in places
    assert (
        run["tool"]["driver"]["rules"][0]["fullDescription"]["text"]
        == "What the audit finds: confusable."
    )


def test_an_empty_library_is_in_good_order(tmp_path: Path) -> None:
    done = knapper("functions", "audit", cwd=library(tmp_path))
    assert "100 of 100: 0 functions" in done.stdout
    assert "There is no function." in done.stderr


async def report_of(desk: Any) -> tuple[AuditReport, dict[str, AuditFinding]]:
    report = await audit_of(desk.workspace.functions).report()
    return report, {finding.problem.code: finding for finding in report.findings}


async def test_what_fails_and_what_no_docstring_says_of_calls_is_found(at_desk: OpenDesk) -> None:
    desk = await at_desk([Repeat(Say("Done."))])
    desk.put("garden.py", BARE)
    await desk.workspace.functions.reload()
    for days, code in ((9, ""), (0, "undocumented-limit"), (0, "failing")):
        await desk.workspace.functions.call("water_plan", {"days": days})
        _, findings = await report_of(desk)
        assert {*findings} == {"missing-examples", *filter(None, [code])}
        if limit := findings.get("undocumented-limit"):
            assert "`ValueError` 1 ×" in limit.problem.message
            assert limit.proposal == "document"
    report, findings = await report_of(desk)
    assert "/example water_plan water_plan(9) = [1, 10, 19, 28]" in plain(
        audit_lines(report, SLASH)
    )
    example = findings["missing-examples"]
    assert example.steps == (
        "add-example",
        "water_plan",
        "--call",
        "water_plan(9)",
        "--expected",
        "[1, 10, 19, 28]",
    )


async def test_two_that_compute_the_same_are_to_be_merged_and_one_alone_is_in_good_order(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([Repeat(Say("Done."))])
    desk.put("pages.py", FETCH)
    await desk.workspace.functions.reload()
    report, _ = await report_of(desk)
    assert (report.score, list(report.findings)) == (100, [])
    desk.put("sites.py", SAME)
    await desk.workspace.functions.reload()
    report, findings = await report_of(desk)
    assert len(report.findings) == 1
    assert (findings["confusable"].proposal, findings["confusable"].steps) == (
        "merge",
        ("delete", "get_site_page"),
    )


async def test_without_meanings_the_rest_is_audited(at_desk: OpenDesk) -> None:
    desk = await at_desk([Repeat(Say("Done."))], memory__embedding="none")
    desk.put("pages.py", f"{FETCH}\n\n{SITE}")
    desk.put("garden.py", BARE)
    await desk.workspace.functions.reload()
    assert [*(await report_of(desk))[1]] == ["missing-examples"]


NEEDS_GRANTS = '''\
def lines_in(path: str) -> int:
    """Count the lines of a file."""
    with open(path, encoding="utf-8") as lines:
        return sum(1 for _ in lines)


def table(rows: int) -> int:
    """Count the rows of a table."""
    import numpy
    return len(numpy.zeros(rows))
'''


async def test_a_grant_that_is_missing_is_no_limit_and_no_failure_of_the_function(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([Repeat(Say("Done."))])
    desk.put("needs.py", NEEDS_GRANTS)
    await desk.workspace.functions.reload()
    (desk.functions.parent / "notes.txt").write_text("a\n")
    for name, arguments in (("lines_in", {"path": "notes.txt"}), ("table", {"rows": 2})) * 2:
        await desk.workspace.functions.call(name, arguments)
    assert {*(await report_of(desk))[1]} == {"missing-examples"}


async def test_what_nobody_calls_is_proposed_to_be_retired(at_desk: OpenDesk) -> None:
    desk = await at_desk([Repeat(Say("Done."))], standing__retire_days=0.000000001)
    desk.put("pages.py", FETCH)
    await desk.workspace.functions.reload()
    finding = (await report_of(desk))[1]["unused"]
    assert (finding.proposal, finding.steps) == ("retire", ("delete", "fetch_page"))


async def test_a_request_that_one_served_and_that_finds_another_makes_a_pair(
    at_desk: OpenDesk,
) -> None:
    other = SITE.replace("Read the text of a web page.", "Read the text of a web page in capitals.")
    desk = await at_desk([Ask(Wanted("fetch_site", {"url": "x"})), Repeat(Say("Done."))])
    desk.put("pages.py", f"{FETCH}\n\n{other}")
    await desk.workspace.functions.reload()
    assert "confusable" not in (await report_of(desk))[1]
    await desk.say("Read the text of the web page x.")
    finding = (await report_of(desk))[1]["confusable"]
    assert (finding.function, finding.others) == ("fetch_site", ("fetch_page",))
    assert "“Read the text of the web page x.”" in finding.problem.message


KINDS = function_text(
    "vowel_kinds(text: str) -> int",
    "Count the vowels in a text. Each kind of them counts once.\n\nArgs:\n    text: The text to look at.",
    'kinds = [vowel for vowel in "aeiou" if vowel in text.lower()]\nreturn len(kinds)',
    'vowel_kinds("queueing") → 3',
    'vowel_kinds("rhythm") → 0',
)
SAID_APART = KINDS.replace(
    "Count the vowels in a text. Each kind of them counts once.",
    "Tell how many of the five kinds of vowels occur.",
)
USING = "from functions.garden import water_plan\n\n\n" + KINDS.replace(
    "= [", "= [*water_plan(40)[:0]] + ["
)


def created(code: str, name: str) -> Wanted:
    names = {
        "function_name": name,
        "function_code_with_docstring": code,
        "module_name": "kinds",
        "reason": "asked",
    }
    return Wanted("create_function", names)


async def test_the_model_is_told_that_a_new_function_is_not_found_by_what_it_says(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([Ask(created(KINDS, "vowel_kinds")), Repeat(Say("Done."))])
    desk.put("letters.py", VOWELS)
    await desk.workspace.functions.reload()
    events = await desk.say("Go.")
    (answer,) = answers(events)
    assert outcomes(events) == ["returned"]
    assert "“Count the vowels in a text.” finds `count_vowels` before `vowel_kinds`" in answer
    assert "say in its first sentence" in answer


async def test_a_new_function_that_is_found_by_what_it_says_or_names_its_neighbor_is_not_warned_about(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([Repeat(Say("Done."))])
    desk.put("letters.py", VOWELS)
    shop = desk.workspace.functions
    await shop.reload()
    for code, reason in (
        (SAID_APART, ""),
        (KINDS, "count_vowels counts each letter, this one each kind"),
    ):
        verdict = await shop.create("vowel_kinds", code, "kinds", reason=reason)
        assert verdict.admitted
        assert "confusable" not in [problem.code for problem in verdict.problems]
        await shop.delete("vowel_kinds")


async def test_a_candidate_leaves_nothing_behind_in_the_search(at_desk: OpenDesk) -> None:
    desk = await at_desk([Repeat(Say("Done."))])
    desk.put("letters.py", VOWELS)
    desk.put("garden.py", BARE)
    shop = desk.workspace.functions
    await shop.reload()
    assert not (
        await shop.create("vowel_kinds", KINDS.replace("    3\n", "    4\n"), "kinds")
    ).admitted
    assert "vowel_kinds" not in [
        match.function.name for match in (await shop.search("kinds of vowels")).results
    ]
    assert (await shop.create("vowel_kinds", USING, "kinds")).admitted
    best = (await shop.search("kinds of vowels")).results[0]
    assert (best.function.name, best.needs) == ("vowel_kinds", ("water_plan",))


async def test_a_save_that_makes_two_confusable_is_told_to_human_and_model_later(
    tmp_path: Path,
) -> None:
    async with edited(tmp_path) as desk:
        desk.put(VOWELS, "letters.py")
        await desk.taken("count_vowels")
        desk.put(KINDS, "kinds.py")
        await desk.taken("vowel_kinds")
        event = await desk.told()
        while "vowel_kinds" not in event.noted:
            event = await desk.told()
        assert "finds `count_vowels` before `vowel_kinds`" in event.noted["vowel_kinds"]
        assert "say in its first sentence" in desk.shop.tell_changes([event])


async def test_an_audit_blames_neither_a_starter_nor_an_unset_secret(at_desk: OpenDesk) -> None:
    text = "Fetch the customers.\n\nReads the shop's list."
    fetching = function_text(
        "fetch_customers(self) -> str", text, 'return self.secret("SHOP_KEY")[:0]'
    )
    caught = function_text(
        "try_customers(self) -> str",
        "Try to fetch the customers of a shop, or say why not.",
        'try:\n    return self.secret("SHOP_KEY")[:0]\nexcept PermissionError:\n    raise ValueError("no") from None',
    )
    calls = [
        Ask(Wanted(name, {})) for name in ("fetch_customers", "try_customers") for _ in range(3)
    ]
    desk = await at_desk([step for call in calls for step in (call, Say("So."))])
    functions = desk.workspace.functions
    await desk.save("customers.py", f"{fetching}\n\n{caught}")
    await desk.save("clock.py", "def days_between(start: str, end: str) -> int:\n    return 0\n")
    for name in ("fetch_customers", "try_customers"):
        await functions.grants.grant(name, Grants(secrets=("SHOP_KEY",)))
    for _ in calls:
        (told,) = answers(await desk.say("Fetch."))
        assert "Fix the arguments" not in told
    report = await audit_of(functions).report()
    found = {(finding.function, finding.problem.code) for finding in report.findings}
    assert found == {("fetch_customers", "missing-examples"), ("try_customers", "missing-examples")}
    assert report.functions == 2
    assert "unused 10 of 10 points" in " ".join(plain(audit_lines(report, SLASH)).split())


async def test_a_proposed_example_has_its_result_as_python_writes_it(at_desk: OpenDesk) -> None:
    bodies = {
        "total": ("from decimal import Decimal\n", "Decimal", 'Decimal("1.50")', "Decimal('1.50')"),
        "pair": ("", "tuple[int, int]", "(1, 2)", "(1, 2)"),
        "day": (
            "import datetime\n",
            "datetime.date",
            "datetime.date(2026, 1, 2)",
            "datetime.date(2026, 1, 2)",
        ),
        "by_number": ("", "dict[int, str]", '{7: "a"}', "{7: 'a'}"),
        "sums": (
            "from decimal import Decimal\n",
            "dict[str, Decimal]",
            '{"A": Decimal("1")}',
            "{'A': Decimal('1')}",
        ),
        "raw": ("", "bytes", 'b"x"', "b'x'"),
        "letters": ("", "set[str]", '{"a"}', "{'a'}"),
        "word": ("", "str", '"it\'s"', '"it\'s"'),
    }
    script = [step for name in bodies for step in (Ask(Wanted(name, {})), Say("So."))]
    desk = await at_desk(script)
    for name, (head, returns, body, _) in bodies.items():
        await desk.save(
            f"of_{name}.py",
            head + function_text(f"{name}() -> {returns}", f"Give {name}.", f"return {body}"),
        )
    for _ in bodies:
        await desk.say("Go.")
    findings = (await audit_of(desk.workspace.functions).report()).findings
    proposed = {
        row.function: row.steps[-1] for row in findings if row.problem.code == "missing-examples"
    }
    assert proposed == {name: expected for name, (*_, expected) in bodies.items()}
