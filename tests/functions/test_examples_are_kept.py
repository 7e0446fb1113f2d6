"""Examples are a ratchet: an agent removes none without a yes, an added one must hold, a confirmed one is marked."""

from typing import Any

import pytest

from agent_core.functions.gate import Candidate, GivenExample
from agent_core.functions.service import Author
from agent_core.functions.service.judgment import Judgment
from tests.functions.support import Room
from tests.grants.support import human
from tests.kit.desk import VOWELS
from tests.kit.sources import function_text

TALLY = VOWELS.replace("count_vowels", "tally").replace(
    "Count the vowels in a text.", "Count the open sounds in a text."
)  # promises no definite results
AGENT = Author("agent", turn="t1", model="m1")
FIVE = '    >>> tally("queueing")\n    5\n'
THREE = '    >>> tally("rhythms")\n    0\n    >>> tally("banana")\n    3\n'
PLUS = (
    TALLY.replace("return sum(", "return 1 + sum(")
    .replace("    5\n", "    6\n")
    .replace("    0\n", "    1\n")
)


def codes(verdict: Judgment, severity: str = "refuses") -> list[str]:
    return [each.code for each in verdict.problems if each.severity == severity]


def fix(verdict: Judgment) -> str:
    return next(each.fix or "" for each in verdict.problems if each.code == "example-dropped")


def told(verdict: Judgment) -> str:
    return next(each.message for each in verdict.problems if each.code == "example-dropped")


async def test_an_example_that_an_agent_drops_is_named_and_goes_only_by_a_persons_yes_to_its_reason(
    here: Room,
) -> None:
    await here.save(TALLY)
    assert '`tally("queueing")` → `5`, now `6`' in told(
        await here.shop.replace("tally", PLUS, author=AGENT)
    )
    code, says = TALLY.replace(FIVE, THREE), '`tally("queueing")` → `5`'
    verdict = await here.shop.replace("tally", code, author=AGENT)
    assert (verdict.admitted, codes(verdict)) == (False, ["example-dropped"])
    assert all(each.evidence for each in verdict.problems)
    assert says in told(verdict)
    assert "say why in `reason`" in fix(verdict)
    assert here.letters.read_text() == TALLY
    assert await here.shop.pending("tally") is not None
    why = "the rule is another now"
    verdict = await here.shop.replace("tally", code, reason=why, author=AGENT)
    assert (verdict.admitted, codes(verdict)) == (False, ["example-dropped"]), "nobody can be asked"
    here.shop.granting.approver = asked = human("no", "yes")
    assert codes(await here.shop.replace("tally", code, reason=why, author=AGENT))[0] == "needs-yes"
    verdict = await here.shop.replace("tally", code, reason=why, author=AGENT)
    assert [(question.why, says in question.doubts[-1]) for question in asked.asked] == [
        (why, True)
    ] * 2
    assert (verdict.admitted, codes(verdict, "warns")[-1:]) == (True, ["example-dropped"])
    assert "reason" not in fix(verdict)
    last = (await here.shop.history.of("tally")).versions[-1]
    assert last.version.row.reason == "the rule is another now"
    assert [says in text for text in last.dropped] == [True]


async def test_only_the_version_that_dropped_an_example_is_said_to_have_done_so(here: Room) -> None:
    await here.save(TALLY.replace(FIVE, THREE))
    await here.save(TALLY.replace(FIVE, FIVE + THREE))
    await here.save(TALLY.replace(FIVE, THREE))  # the first version again, with its hash
    found = (await here.shop.history.of("tally")).versions
    assert [len(one.dropped) for one in found] == [0, 0, 1]


async def test_a_reason_given_once_goes_on_with_the_candidate_that_stands_refused(
    here: Room,
) -> None:
    await here.save(TALLY)
    here.shop.granting.approver = asked = human("yes")
    flawed = TALLY.replace(FIVE, THREE.replace("    3\n", "    4\n"))
    refused = await here.shop.replace("tally", flawed, reason="a better case", author=AGENT)
    assert (codes(refused), asked.asked) == (["example-disagrees"], []), (
        "a person is asked about what goes at the end"
    )
    verdict = await here.shop.edit("tally", "    4\n", "    3\n", author=AGENT)
    assert (verdict.admitted, (await here.held("tally"))["by"]) == (True, ["human", "agent"])


async def test_a_person_confirms_what_an_agent_was_refused_and_tending_inherits_no_reason(
    here: Room,
) -> None:
    await here.save(TALLY)
    fewer = TALLY.replace(FIVE, THREE)
    assert not (
        await here.shop.replace("tally", fewer, reason="a better case", author=AGENT)
    ).admitted
    here.shop.granting.approver = asked = human("yes")
    assert codes(await here.shop.replace("tally", fewer, author=Author("agent"))) == [
        "example-dropped"
    ]
    assert asked.asked == []
    assert (await here.shop.confirm("tally")).admitted
    assert here.letters.read_text() == fewer


async def test_an_example_that_is_only_written_otherwise_or_rolled_back_is_not_dropped(
    here: Room,
) -> None:
    for code in (
        TALLY.replace('("queueing")', "('queueing')"),
        TALLY.replace(FIVE, THREE + FIVE),  # more of them
        TALLY.replace(FIVE, f"    >>> unrelated = 1\n{FIVE}"),
        TALLY.replace(FIVE, "").replace("    0\n", f"    0\n{FIVE}"),  # another order
    ):
        await here.save(TALLY)
        for verdict in (
            await here.shop.replace("tally", code, author=AGENT),
            await here.shop.rollback("tally"),
        ):
            assert (verdict.admitted, "example-dropped" in codes(verdict, "warns")) == (
                True,
                False,
            ), code
        assert here.letters.read_text() == TALLY


COUNTS = function_text(
    "size_of(path: str) -> int",
    """Count the characters of a file.

Args:
    path: The file.

Examples:
    >>> import tempfile
    >>> first = tempfile.mkdtemp() + "/a"
    >>> _ = open(first, "w").write("a")
    >>> size_of(first)
    1
    >>> second = tempfile.mkdtemp() + "/b"
    >>> _ = open(second, "w").write("bb")
    >>> size_of(second)
    2""",
    "return len(open(path).read())",
)
BETWEEN = """    >>> between = tempfile.mkdtemp() + "/c"
    >>> _ = open(between, "w").write("")
    >>> size_of(between)
    0
"""


async def test_an_example_is_the_same_after_others_that_it_does_not_depend_on(here: Room) -> None:
    await here.save(COUNTS)
    more = COUNTS.replace("    >>> second = ", f"{BETWEEN}    >>> second = ")
    verdict = await here.shop.replace("size_of", more, author=AGENT)
    assert verdict.admitted, verdict.problems
    verdict = await here.shop.replace(
        "size_of", more.replace('write("bb")', 'write("cc")'), author=AGENT
    )
    assert (verdict.admitted, "size_of(second)" in told(verdict)) == (False, True)


WORDS = '''
def count_words(text: str) -> int:
    """Count the words of a text.

    Args:
        text: The text.

    Examples:
        >>> head, rows = "a b ", ["c d"]
        >>> count_words(head + rows[0])
        4
        >>> count_words(rows[0])
        2
    """
    return len(text.split())
'''
PUT_BEFORE = """\
        >>> fixed = " ".join([*rows, head.replace("b", "b e")])
        >>> [each for each in range(count_words(head + fixed)) if each > 5]
        [6]
"""


async def test_what_is_put_before_an_example_does_not_make_it_another_one_unless_it_binds_its_names(
    here: Room,
) -> None:
    await here.save(WORDS)
    first = "        >>> count_words(head + rows[0])"
    more = WORDS.replace(first, PUT_BEFORE + first)
    verdict = await here.shop.replace("count_words", more, author=AGENT)
    assert (verdict.admitted, codes(verdict), codes(verdict, "warns")) == (True, [], [])
    weaker = more.replace(first, f"        >>> rows = ['c  d']\n{first}")
    assert codes(await here.shop.replace("count_words", weaker, author=AGENT)) == [
        "example-dropped"
    ]


async def test_a_humans_save_that_drops_an_example_is_taken_and_told_at_once(here: Room) -> None:
    heard: list[Any] = []
    await here.save(TALLY)
    here.shop.on_change(heard.append)
    await here.save(TALLY.replace(FIVE, THREE))
    assert [list(event.noted) for event in heard] == [["tally"]]
    assert '`tally("queueing")` → `5`' in heard[0].noted["tally"]
    assert "is gone" in here.shop.tell_changes(heard)
    assert (await here.shop.history.of("tally")).versions[-1].dropped


WIDER = (
    TALLY.replace("(text: str)", "(text: str, letters: str)")
    .replace("look at.\n", "look at.\n        letters: What to count.\n")
    .replace('in "aeiou"', "in letters")
    .replace("a, e, i, o or u", "among them")
)
FIRST = WIDER.replace('("queueing")', '("queueing", "u")').replace("    5\n", "    2\n")


async def test_examples_that_a_new_signature_makes_unfit_are_replaced_by_as_many(
    here: Room,
) -> None:
    await here.save(TALLY)
    fewer = FIRST.replace('    >>> tally("rhythm")\n    0\n', "")
    verdict = await here.shop.replace("tally", fewer, author=AGENT)
    assert (verdict.admitted, sorted(codes(verdict))) == (
        False,
        ["example-dropped", "too-few-examples"],
    )
    verdict = await here.shop.replace(
        "tally", FIRST.replace('("rhythm")', '("rhythm", "u")'), author=AGENT
    )
    assert (verdict.admitted, codes(verdict)) == (True, [])


OPTION = (
    TALLY.replace("(text: str)", '(text: str, letters: str = "aeiou")')
    .replace("look at.\n", "look at.\n        letters: What to count.\n")
    .replace('in "aeiou"', "in letters")
    .replace("a, e, i, o or u", "among them")
)


@pytest.mark.parametrize(
    ("now", "is_asked"),
    [
        pytest.param(('("queueing")', '("queueing", "aeiou")'), False, id="by position"),
        pytest.param(('("queueing")', '("queueing", letters="aeiou")'), False, id="by name"),
        pytest.param(
            ('("queueing")', '(text="queueing", letters="ue")'), True, id="other spelling"
        ),
        pytest.param(
            (FIVE, FIVE.replace('g")\n    5', 'g", "u")\n    2')), True, id="other result"
        ),
        pytest.param(('("queueing")', '("queue", "aeiou")'), True, id="other text"),
        pytest.param((FIVE, ""), True, id="gone"),
        pytest.param(
            (FIVE, "    >>> more = 'ae' + 'iou'\n" + FIVE.replace('g")', 'g", more)')),
            False,
            id="with setup",
        ),
    ],
)
async def test_an_example_that_stands_with_an_argument_for_a_new_parameter_is_not_gone(
    here: Room, now: tuple[str, str], is_asked: bool
) -> None:
    await here.save(TALLY)
    verdict = await here.shop.replace("tally", OPTION.replace(*now), author=AGENT)
    assert ("example-dropped" in codes(verdict)) == is_asked, verdict.problems
    if now[1].endswith("    2\n"):
        assert (
            '1 example that `tally` had promises another result: `tally("queueing")` → `5`, now `2`'
            in told(verdict)
        )


SHARED = (
    TALLY[: TALLY.index("    >>> ")]
    + """\
    >>> word = 'queue'; other = ["rhythm"]
    >>> tally(word)
    4
    >>> twice = tally(word) * 2
    >>> tally(other[0])
    0
    >>> tally(word + 'ae') - twice + 2
    0
    \"\"\"
    return sum(letter in "aeiou" for letter in text.lower())
"""
)


@pytest.mark.parametrize(
    ("argument", "is_asked"),
    [
        pytest.param('"aeiou"', False, id="a value"),
        pytest.param('letters="aeiou"', False, id="by name"),
        pytest.param('letters="".join(["ae", "iou"])', False, id="a call"),
        pytest.param("letters=(word := 'aeiou')", True, id="what binds a name of the example"),
        pytest.param("letters=other.pop() and 'aeiou'", True, id="what may change its value"),
    ],
)
async def test_examples_that_share_values_stand_with_an_argument_for_a_new_parameter(
    here: Room, argument: str, is_asked: bool
) -> None:
    await here.save(SHARED)
    body = OPTION[: OPTION.index("    >>> ")] + SHARED[SHARED.index("    >>> ") :]
    code = body.replace('in "aeiou"', "in letters").replace("'queue'", '"queue"')
    for call in ("tally(word", "tally(other[0]", "tally(word + 'ae'"):
        code = code.replace(f"{call})", f"{call}, {argument})")
    verdict = await here.shop.replace("tally", code, author=AGENT)
    assert ("example-dropped" in codes(verdict)) == is_asked, verdict.problems


TAKINGS = """\
def takings(rows: list[list[str]], month: str) -> dict[str, object]:
    \"\"\"Sum up what was taken in a month.

    Args:
        rows: Dates and amounts.
        month: The month.

    >>> takings([["2026-05-01", "3"], ["2026-05-02", "4"]], "2026-05")
    {'sum': 7, 'days': [{'day': '2026-05-01', 'sum': 3}, {'day': '2026-05-02', 'sum': 4}]}
    >>> takings([["2026-05-01", "3"]], "2026-06")
    {'sum': 0, 'days': []}
    \"\"\"
    days = [{"day": day, "sum": int(sum)} for day, sum in rows if day.startswith(month)]
    return {"sum": sum(each["sum"] for each in days), "days": days}
"""


def with_key(key: str, value: str = "len(days)", shown: tuple[str, str] = ("2", "0")) -> str:
    """Return the function with one more key in its results."""
    code = TAKINGS.replace('"days": days}', f'"days": days, {key}: {value}}}')
    for old, new in zip(("'sum': 4}]}", "'days': []}"), shown, strict=True):
        code = code.replace(old, f"{old[:-1]}, {key}: {new}}}") if new else code
    return code


IN_ROWS = TAKINGS.replace('"sum": int(sum)}', '"sum": int(sum), "open": True}').replace(
    "'sum': 3}", "'sum': 3, 'open': True}"
)
ADDED = {
    "a key at the end": (with_key("'many'"), False),
    "a key of each row": (IN_ROWS.replace("'sum': 4}", "'sum': 4, 'open': True}"), False),
    "a key by name": (
        with_key("'many'")
        .replace("return {", "return dict({")
        .replace(", 'many': len(days)}", "}, many=len(days))"),
        False,
    ),
    "an old part changes besides": (
        with_key("'many'")
        .replace("'sum': 0, ", "'sum': 1, ")
        .replace('{"sum": sum(', '{"sum": (not days) + sum('),
        True,
    ),
    "one becomes true": (
        with_key("'many'")
        .replace("'sum': 0, ", "'sum': False, ")
        .replace('{"sum": sum(', '{"sum": bool(days) and sum('),
        True,
    ),
    "the old keys in another order": (
        with_key("'many'").replace("{'sum': 0, 'days': [], ", "{'days': [], 'sum': 0, "),
        True,
    ),
    "one more row": (
        TAKINGS.replace(
            "{'sum': 0, 'days': []}", "{'sum': 0, 'days': [{'day': '', 'sum': 0}]}"
        ).replace("    return", '    days = days or [{"day": "", "sum": 0}]\n    return'),
        True,
    ),
    "a key of some rows": (
        IN_ROWS.replace('"open": True}', '**({"open": True} if sum == "3" else {})}'),
        True,
    ),
    "a key of some results": (
        with_key("'many'", shown=("2", "")).replace(
            ", 'many': len(days)}", "} | ({'many': 2} if days else {})"
        ),
        True,
    ),
    "a key that the data name": (
        with_key("month", shown=("", ""))
        .replace("'sum': 4}]}", "'sum': 4}], '2026-05': 2}")
        .replace("'days': []}", "'days': [], '2026-06': 0}"),
        True,
    ),
    "the same key that the data name": (
        with_key("rows[0][1]")
        .replace("rows[0][1]: 2}", "'3': 2}")
        .replace("rows[0][1]: 0}", "'3': 0}"),
        True,
    ),
    "what was empty": (
        TAKINGS.replace("'days': []}", "'days': [], 'note': {'why': 'no rows'}}")
        .replace("'sum': 4}]}", "'sum': 4}], 'note': {'why': 'no rows'}}")
        .replace('"days": days}', '"days": days, "note": {"why": "no rows"}}'),
        True,
    ),
    "an example is gone": (with_key("'many'").replace('"2026-06")', '"2026-07")'), True),
}


@pytest.mark.parametrize("way", [pytest.param(way, id=way.replace(" ", "-")) for way in ADDED])
async def test_a_result_that_got_one_more_key_is_noted_and_asked_about_where_an_old_part_changed(
    here: Room, way: str
) -> None:
    code, is_asked = ADDED[way]
    note = ", 'note': {}"
    old = TAKINGS.replace("'days': []}", f"'days': []{note}}}").replace(
        "'sum': 4}]}", f"'sum': 4}}]{note}}}"
    )
    await here.save(
        old.replace('"days": days}', '"days": days, "note": {}}') if "empty" in way else TAKINGS
    )
    here.shop.granting.approver = asked = human("yes")
    verdict = await here.shop.replace("takings", code, reason="more is shown", author=AGENT)
    assert (verdict.admitted, len(asked.asked)) == (True, int(is_asked)), verdict.problems
    assert ("result-added" in codes(verdict, "warns")) == (not is_asked)


USES = """\


def month_line(rows: list[list[str]]) -> str:
    \"\"\"Write what was taken in May.

    Args:
        rows: Dates and amounts.
SHOWN    \"\"\"
    found = takings(rows, "2026-05")
    return ", ".join(f"{key}={value}" for key, value in found.items() if key KEPT)
"""
SHOWN = """
    >>> month_line([["2026-05-01", "3"]])
    'sum=3'
    >>> month_line([])
    'sum=0'
"""


@pytest.mark.parametrize(
    ("shown", "kept", "is_asked"),
    [
        pytest.param(SHOWN, "== 'sum'", False, id="its examples agree"),
        pytest.param("", "== 'sum'", True, id="nothing proves it"),
        pytest.param(SHOWN.replace("'sum=3'", "'sum=4'"), "== 'sum'", True, id="one fails anyway"),
    ],
)
async def test_one_more_key_is_asked_about_where_something_may_rely_on_the_result(
    here: Room, shown: str, kept: str, is_asked: bool
) -> None:
    await here.save(TAKINGS + USES.replace("SHOWN", shown).replace("KEPT", kept))
    here.shop.granting.approver = asked = human("yes")
    code = with_key("'many'")
    verdict = await here.shop.replace("takings", code, reason="more is shown", author=AGENT)
    assert (verdict.admitted, len(asked.asked)) == (True, int(is_asked)), verdict.problems


async def test_one_more_key_that_breaks_what_uses_the_result_is_refused(here: Room) -> None:
    await here.save(TAKINGS + USES.replace("SHOWN", SHOWN).replace("KEPT", "!= 'days'"))
    verdict = await here.shop.replace("takings", with_key("'many'"), reason="more", author=AGENT)
    assert codes(verdict)[:1] == ["breaks-caller"]


async def test_another_return_type_excuses_no_other_result(here: Room) -> None:
    await here.save(TALLY)
    longer = TALLY.replace("-> int", "-> list[int]").replace("return sum(", "return [sum(")
    longer = (
        longer.replace(".lower())", ".lower())]")
        .replace("    5\n", "    [5]\n")
        .replace("    0\n", "    [0]\n")
    )
    verdict = await here.shop.replace("tally", longer, author=AGENT)
    assert (verdict.admitted, codes(verdict)) == (False, ["example-dropped"])
    assert "`5`, now `[5]`" in told(verdict)
    here.shop.granting.approver = asked = human("yes")
    more = longer.replace(
        "    [5]\n", "    [5]\n    >>> tally('eel')\n    [2]\n    >>> tally('ibis')\n    [2]\n"
    )
    verdict = await here.shop.replace("tally", more, reason="a list now", author=AGENT)
    assert (verdict.admitted, len(asked.asked)) == (True, 1)


async def test_an_argument_that_may_be_less_than_before_takes_no_example_away(here: Room) -> None:
    await here.save(TALLY)
    narrow = 'text: Literal["rhythm", "rhythms", "banana"]'
    code = "from typing import Literal\n\n\n" + TALLY.replace(FIVE, THREE).replace(
        "text: str", narrow
    )
    verdict = await here.shop.replace("tally", code, author=AGENT)
    assert (verdict.admitted, codes(verdict)) == (False, ["example-dropped"])
    assert '`tally("queueing")` → `5`' in told(verdict)


async def test_an_example_that_was_kept_changes_by_confirming_only_with_a_reason_and_a_yes(
    here: Room,
) -> None:
    await here.save(TALLY)
    body = ("return sum(", "return 1 + sum(")
    assert codes(await here.shop.edit("tally", *body, author=AGENT)) == ["example-disagrees"] * 2
    refused = await here.shop.confirm("tally", author=AGENT)
    assert (refused.admitted, codes(refused), here.letters.read_text()) == (
        False,
        ["example-dropped"],
        TALLY,
    )
    here.shop.granting.approver = human("yes")
    verdict = await here.shop.confirm("tally", reason="counts from one now", author=AGENT)
    assert (verdict.admitted, len(verdict.confirmed)) == (True, 2)
    assert here.letters.read_text() == PLUS
    assert (await here.shop.history.of("tally")).versions[
        -1
    ].version.row.reason == "counts from one now"


@pytest.mark.parametrize("by", ["agent", "human"])
async def test_a_confirmed_result_stays_marked_while_its_example_stays(here: Room, by: str) -> None:
    await here.shop.create("tally", TALLY.replace("    5\n", "    4\n"), "letters", author=AGENT)
    await here.shop.confirm("tally", author=AGENT)
    again = TALLY.replace("Count the", "Number the")
    if by == "agent":
        await here.shop.replace("tally", again, author=AGENT)
    else:
        await here.save(again)
    await here.shop.edit("tally", FIVE, THREE, reason="plainer")
    marked = [row.confirmed for row in (await here.shop.history.of("tally")).versions]
    assert marked == [('tally("queueing")',)] * 2 + [()]
    await here.shop.rollback("tally", "1", author=AGENT)
    verdict = (await here.shop.introspect("tally")).verdict
    assert verdict is not None
    assert verdict.confirmed == ('tally("queueing")',)


async def test_an_example_is_written_into_the_docstring_and_nothing_else_is_touched(
    here: Room,
) -> None:
    shown = '"""Halve it.\n\n    >>> half(4)\n    2'
    six = "    >>> half(6)\n    3\n"
    error = "TypeError: unsupported operand type(s) for //: 'str' and 'int'"
    for docstring, call, expected, added in (
        (f'{shown}\n    """', "half(6)", "3", six),
        ('"""Halve it."""', ">>> half(6)", "3", six),
        ("'Halve it.'", "half(6)", "3", six),
        ('r"""Halve\\it."""', "half(-7)", "-4", "    >>> half(-7)\n    -4\n"),
        (f'{shown}"""', "half( 6 )", "3", "    >>> half( 6 )\n    3\n"),
        ('"""Halve it."""', "half('6')", error, "TypeError"),
    ):
        head = "# mine\nLIMIT = 3  # kept\n\n\ndef half(n):  # no hints\n    "
        await here.save(f"{head}{docstring}\n    return n//2\n")
        verdict = await here.shop.add_example("half", call, expected)
        assert verdict.admitted, verdict
        now = here.letters.read_text()
        assert (added in now, now.startswith(head), now.endswith("\n    return n//2\n")) == (
            True,
            True,
            True,
        ), now
        assert (await here.shop.test("half")).examples[-1].agreed


async def test_an_example_that_cannot_be_kept_is_refused_and_leaves_the_function(
    here: Room,
) -> None:
    await here.save(TALLY)
    for call, expected, *says in (
        ('tally("banana")', "4", "returned `3`; the example says `4`"),
        ("tally( 'queueing')", "5", "has that example already"),
        ('tally("rhythm")', "1", "has that example already", "gives `0`"),
        ("len('a')", "1", "does not call `tally`"),
        ("tally(", "1", "is an expression"),
        ("tally(3)", "1", "AttributeError"),
    ):
        verdict = await here.shop.add_example("tally", call, expected, author=AGENT)
        assert (verdict.admitted, [part for part in says if part not in verdict.error]) == (
            False,
            [],
        ), verdict.error
        assert (here.letters.read_text(), await here.shop.pending("tally")) == (TALLY, None)


async def test_given_examples_are_kept_in_the_docstring_where_it_has_too_few(here: Room) -> None:
    few = TALLY.replace(FIVE, "")
    three = GivenExample('tally("banana")', "3", None)
    for code, given, kept in (
        (few, three, True),
        (TALLY, three, False),
        (few, GivenExample('tally("banana") / 7', "0.43", 0.01), True),
    ):
        candidate = Candidate("tally", code, "letters", examples=(given,))
        verdict = (
            await here.shop.finish(await here.shop.plans.create(candidate, AGENT), AGENT)
        ).detail
        assert isinstance(verdict, Judgment)
        assert verdict.admitted, verdict
        calls = [
            example.call for example in here.shop.registry.snapshot().functions["tally"].examples
        ]
        assert (given.call in calls) is kept
        assert all(each.agreed for each in (await here.shop.test("tally")).examples)
        await here.shop.delete("tally")
