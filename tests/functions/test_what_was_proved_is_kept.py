"""An agent's edit never silently loses a check or a use of a grant: a loss is named and needs a person's yes."""

from agent_core.context import presentation
from agent_core.functions.service import Author
from agent_core.functions.service.judgment import Judgment
from agent_core.views.function_view import facts_lines
from agent_core.views.styled_lines import plain
from tests.functions.support import Room
from tests.grants.support import human
from tests.kit.sources import function_text

AGENT = Author("agent", turn="t1", model="m1")
RAISE = '    if part > whole:\n        raise ValueError("the part is larger than the whole")\n'
LISTED = "    Raises:\n        ValueError: the part is larger than the whole.\n\n"
SHARE = f'''\
from typing import Annotated, Literal

from pydantic import Field


def share(part: Annotated[float, Field(ge=0)], whole: float, form: Literal["percent", "ratio"] = "ratio") -> float:
    """Return the share of a part.

    Args:
        part: The part.
        whole: The whole.
        form: As what it is given.

{LISTED}    Examples:
        >>> share(1, 4)
        0.25
        >>> share(3, 4, "percent")
        75.0
    """
{RAISE}    return part / whole * (100 if form == "percent" else 1)
'''
FETCHING = function_text(
    "rate_of(self, code: str) -> float",
    "Return the rate of a currency.\n\nArgs:\n    code: Three letters.",
    'return float(self.fetch("https://rates.example.org/" + code).text)',
)
LOSSES = {
    "the-entry": (SHARE.replace(LISTED, "").replace(RAISE, ""), "`ValueError` under `Raises:`"),
    "the-statement": (SHARE.replace(RAISE, ""), "`raise ValueError`, which its docstring lists"),
    "a-bound": (SHARE.replace("Annotated[float, Field(ge=0)]", "float"), "`minimum` `0` of `part`"),
    "a-choice": (
        SHARE.replace('Literal["percent", "ratio"]', "str"),
        "`enum` `['percent', 'ratio']` of `form`",
    ),
}


def messages(verdict: Judgment, severity: str = "refuses") -> dict[str, str]:
    return {each.code: each.message for each in verdict.problems if each.severity == severity}


async def test_a_check_that_is_gone_is_named_and_needs_a_yes_to_its_reason_and_one_that_stays_needs_none(
    here: Room,
) -> None:
    await here.save(SHARE)
    for code, says in LOSSES.values():
        refused = await here.shop.replace("share", code, author=AGENT)
        assert (refused.admitted, says in messages(refused)["check-dropped"]) == (False, True), says
        assert here.letters.read_text() == SHARE
        (fix,) = [each.fix or "" for each in refused.problems if each.code == "check-dropped"]
        assert fix.startswith("keep it; if it must go, say why in `reason`: a person decides")
        assert any(says in row.fact for each in refused.problems for row in each.evidence)
    why = "the caller checks it"
    alone = await here.shop.replace("share", code, reason=why, author=AGENT)
    assert (alone.admitted, says in messages(alone)["check-dropped"]) == (False, True)
    here.shop.granting.approver = asked = human("yes")
    reasoned = await here.shop.replace("share", code, reason=why, author=AGENT)
    (question,) = asked.asked
    assert (question.why, any(says in doubt for doubt in question.doubts)) == (why, True)
    assert question.diff.count("\n-") >= 1
    assert (reasoned.admitted, says in messages(reasoned, "warns")["check-dropped"]) == (True, True)
    here.shop.granting.approver = None
    for old, new in (
        ("Field(ge=0)", "Field(ge=0.01)"),
        ('"ratio"] =', '"ratio", "both"] ='),
    ):
        await here.save(SHARE)
        assert (
            messages(await here.shop.replace("share", SHARE.replace(old, new), author=AGENT)) == {}
        ), new


async def test_what_it_needs_a_grant_for_does_not_go_in_silence(here: Room) -> None:
    await here.save(FETCHING)
    words = "Return the rate of a currency.\n\nArgs:\n    code: Three letters."
    shown = 'rate_of("EUR") → 4.0', 'rate_of("E") → 2.0'
    hollow = function_text("rate_of(code: str) -> float", words, "return 1.0 + len(code)", *shown)
    refused = await here.shop.replace("rate_of", hollow, author=AGENT)
    assert (
        "no longer does what it needs a grant for: fetches rates.example.org"
        in messages(refused)["use-dropped"]
    )
    alone = await here.shop.replace("rate_of", hollow, reason="fixed rates", author=AGENT)
    assert (alone.admitted, "use-dropped" in messages(alone)) == (False, True)
    here.shop.granting.approver = asked = human("yes")
    allowed = await here.shop.replace("rate_of", hollow, reason="fixed rates", author=AGENT)
    assert (allowed.admitted, messages(allowed), len(asked.asked)) == (True, {}, 1)


async def test_one_of_two_hosts_does_not_go_in_silence_either(here: Room) -> None:
    second = FETCHING.replace(
        "    return ", '    self.fetch("https://backup.example.org/rates")\n    return ', 1
    )
    await here.save(second)
    refused = await here.shop.replace("rate_of", FETCHING, author=AGENT)
    assert "needs a grant for: fetches backup.example.org" in messages(refused)["use-dropped"]


async def test_what_the_gate_had_no_time_for_is_not_shown_as_passed(here: Room) -> None:
    await here.save(SHARE)
    slow = SHARE.replace("from pydantic", "import time\n\nfrom pydantic").replace(
        RAISE, f"    time.sleep(0.4)\n{RAISE}"
    )
    admitted = await here.shop.replace("share", slow, author=AGENT)
    details = await here.shop.introspect("share")
    assert details.verdict is not None
    assert (admitted.admitted, details.verdict.late) == (True, admitted.late)
    (mutation,) = [stage for stage in admitted.stages if stage.stage == "mutation"]
    assert (mutation.passed, mutation.late) == (False, True)
    assert "Not checked to the end: mutation (" in presentation.introspection(details, {})
    assert "  – mutation: would its examples notice a wrong body?" in plain(facts_lines(details))
