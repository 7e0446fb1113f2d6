"""A change asks once, shows what changes and nothing else, and asks about nothing that could not run."""

import pytest

from agent_core.access.grants import Grants, Question
from agent_core.views.grant_question import GrantDialog, question_rows
from agent_core.views.styled_lines import plain
from tests.functions.support import Room
from tests.kit.sources import function_text

from .support import AGENT, human

SAYS = "Add up whole numbers.\n\nArgs:\n    numbers: The numbers.\n\nExamples:\n    >>> total_of([1, 2])\n    3"
BEFORE = function_text(
    "total_of(numbers: list[int]) -> int",
    f"{SAYS}\n    >>> total_of([])\n    0",
    "return sum(numbers)",
)
AFTER = function_text(
    "total_of(numbers: list[int]) -> int",
    SAYS,
    'return sum(numbers, int(open("data/1").read()) - 1)',
)
READS = function_text("first() -> str", "Return the first number.", 'return open("data/1").read()')


async def test_what_goes_and_what_is_granted_are_one_question_and_the_yes_is_not_put_back(
    here: Room,
) -> None:
    assert (
        await here.shop.create("total_of", f"import math\n\n\n{BEFORE}", "sums", author=AGENT)
    ).admitted
    asked = here.shop.granting.approver = human("yes")
    plan = await here.shop.plans.replace(
        "total_of", f"import math\n\n\n{AFTER}", "it begins with the first", AGENT
    )
    done = await here.shop.finish(plan, AGENT)
    (question,) = asked.asked
    assert (question.missing, len(question.doubts)) == (Grants(read=("data/1",)), 1)
    assert "total_of([])" in question.doubts[0]
    assert plain(question_rows(question, 100)).startswith(
        "? total_of, a new version, asks to join, and to:"
    )
    changed = [
        row
        for row in question.diff.splitlines()
        if row[:1] in "+-" and row[:3] not in ("+++", "---")
    ]
    assert [row for row in changed if "import" in row] == []
    assert done.outcome == "returned", done.text
    assert "put it back" not in done.text
    assert "it was agreed to" in done.text


async def test_nobody_is_asked_about_what_calls_something_that_was_rejected(here: Room) -> None:
    wrong = BEFORE.replace("    3\n", "    4\n")
    assert not (await here.shop.create("total_of", wrong, "sums", author=AGENT)).admitted
    asked = here.shop.granting.approver = human("yes")
    text = READS.replace(
        "return open", 'self.call("total_of", numbers=[1])\n    return open'
    ).replace("first()", "first(self)")
    judgment = await here.shop.create("first", text, "firsts", author=AGENT)
    assert (judgment.admitted, asked.asked) == (False, [])
    assert "It calls `total_of`, which was rejected and is not there." in judgment.denied
    assert (await here.shop.confirm("total_of", author=AGENT)).admitted
    assert (await here.shop.create("first", text, "firsts", author=AGENT)).admitted
    assert [question.missing for question in asked.asked] == [Grants(read=("data/1",))]


async def test_a_docstring_changes_without_a_question(here: Room) -> None:
    here.shop.granting.approver = human("yes")
    assert (await here.shop.create("first", READS, "firsts", author=AGENT)).admitted
    asked = here.shop.granting.approver = human("no")
    changed = await here.shop.edit(
        "first", "the first number", "the number that comes first", author=AGENT
    )
    assert (changed.admitted, (await here.shop.call("first", {})).value, asked.asked) == (
        True,
        "1",
        [],
    )


async def test_a_yes_that_keeps_nothing_offers_neither_once_nor_always_and_claims_no_file() -> None:
    for question in (
        Question("f", moment="join"),
        Question("f", Grants(read=("data/",)), moment="program"),
    ):
        dialog = GrantDialog(question)
        assert [key.letter for key in dialog.keys] == ["y", "n", "w"]
        reply = dialog.reply("y")
        assert reply is not None
        assert plain([dialog.ending(reply)]) == "  → yes\n"


def signed(body: str, top: str = "") -> str:
    """Return a function that gets something with a secret."""
    says = "Get something from the service.\n\nArgs:\n    path: What."
    text = function_text(
        "get_from_works(self, path: str) -> str", says, f'key = self.secret("WORKS_KEY")\n{body}'
    )
    return f"{top}\n\n\n{text}".lstrip()


KEYED = 'headers={"X-Key": key}).text()'
HOSTS = {
    "one text": signed(f'return self.fetch(f"http://HOST{{path}}", {KEYED}'),
    "a sum": signed(f'return self.fetch("http://HOST" + path, {KEYED}'),
    "a constant": signed(f'return self.fetch(f"{{BASE}}{{path}}", {KEYED}', 'BASE = "http://HOST"'),
    "a host alone": signed(
        f'return self.fetch(f"http://{{WHERE}}{{path}}", {KEYED}', 'WHERE = "HOST"'
    ),
    "pages": signed(
        f'url = "http://HOST/" + path\ntext = ""\nwhile url:\n    text += self.fetch(url, {KEYED}\n'
        "    url = text[:0]\nreturn text"
    ),
}


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """The value of a secret of this user."""
    monkeypatch.setenv("KNAPPER_SECRET_WORKS_KEY", "wk-29-rivers")
    return "wk-29-rivers"


@pytest.mark.parametrize("is_saved", [False, True], ids=["joins", "saved"])
@pytest.mark.parametrize("way", HOSTS)
async def test_a_secret_and_the_host_that_it_goes_to_are_one_question(
    here: Room, host: str, key: str, way: str, is_saved: bool
) -> None:
    text, asked = HOSTS[way].replace("HOST", host), human("yes")
    here.shop.granting.approver = asked
    if is_saved:
        await here.save(text, here.root / "functions" / "works.py")
    else:
        assert (await here.shop.create("get_from_works", text, "works", author=AGENT)).admitted
        assert len(asked.asked) == 1
    report = await here.shop.call("get_from_works", {"path": "/holders"})
    assert str(report.value).lstrip("/").replace("in /", "in ") == "rain in holders"
    assert [question.missing for question in asked.asked] == [
        Grants(network=(host,), secrets=("WORKS_KEY",))
    ]


async def test_any_other_host_than_the_one_beside_the_secret_asks_by_itself(
    here: Room, key: str
) -> None:
    text = signed('return self.fetch("http://127.0.0.1" + path).text() + key[:0]')
    here.shop.granting.approver = human("yes")
    assert (await here.shop.create("get_from_works", text, "works", author=AGENT)).admitted
    asked = here.shop.granting.approver = human("no")
    for path in (
        ":8999/",
        ".example.org/",
        "@example.org/",
    ):  # nobody is asked about an address with a name in it
        assert (await here.shop.call("get_from_works", {"path": path})).outcome == "raised"
    assert [question.missing.network for question in asked.asked] == [
        ("127.0.0.1:8999",),
        ("127.0.0.1.example.org",),
    ]


async def test_half_a_hosts_name_is_not_asked_for(here: Room, key: str) -> None:
    text = signed('return self.fetch(f"http://node{path}.example.org/").text() + key[:0]')
    asked = here.shop.granting.approver = human("yes")
    assert (await here.shop.create("get_from_works", text, "works", author=AGENT)).admitted
    assert [question.missing for question in asked.asked] == [Grants(secrets=("WORKS_KEY",))]
