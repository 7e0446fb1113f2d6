"""What a yes settles for the agent's other functions: a package for those that only call it, folders after an edit."""

from collections.abc import Awaitable, Callable

import pytest

from agent_core.access.grants import Decision, Grants
from agent_core.functions.service import Author
from tests.functions.support import Room
from tests.kit.sources import function_text
from tests.packages.support import placed

from .support import AGENT, Human, human

OTHER_AGENT = Author("agent", "other", "turn", "scripted")
WIDE = Decision("yes", is_wide=True)
BOOK = function_text(
    "read_book(path: str) -> int",
    "Add up the numbers in a book.\n\nArgs:\n    path: The file.",
    "import sheets\nreturn sheets.total(open(path).read())",
)
USES = "from functions.books import read_book\n\n\n"


def user(name: str, body: str = "return read_book(path) + 1", top: str = USES) -> str:
    """Return a function that calls the one with a package by its name."""
    context = "self, " * ("self." in body)
    says = f"Return a number by {name}.\n\nArgs:\n    path: The file."
    return top + function_text(f"{name}({context}path: str) -> int", says, body)


MORE = user("more")


@pytest.fixture
def books(here: Room) -> Room:
    """A workspace in which a package is installed and lies ready."""
    placed(
        here.root,
        "sheets",
        files={"sheets.py": "def total(text):\n    return sum(map(int, text.split()))\n"},
    )
    return here


async def made(
    here: Room, name: str, text: str, author: Author = AGENT, module: str = ""
) -> list[Grants]:
    """Let an agent make a function, and return what was asked with a yes to everything."""
    asked = here.shop.granting.approver = human("yes")
    judgment = await here.shop.create(name, text, module or name, author=author)
    assert judgment.admitted, (judgment.problems, judgment.denied)
    return [question.missing for question in asked.asked]


async def called(here: Room, name: str, answer: str = "no", path: str = "data/2") -> list[Grants]:
    """Call a function, and return what was asked for it; after a yes it must have returned."""
    asked = here.shop.granting.approver = human(answer)
    report = await here.shop.call(name, {"path": path})
    assert answer == "no" or report.outcome == "returned", report
    return [question.missing for question in asked.asked]


async def has_the_folder(here: Room) -> None:
    """Let the agent make the function with a package, and give it the folder and the package."""
    assert await made(here, "read_book", BOOK, module="books") == [Grants(packages=("sheets",))]
    here.shop.granting.approver = Human([WIDE])
    assert (await here.shop.call("read_book", {"path": "data/2"})).value == 2


async def test_a_package_is_not_asked_for_again_by_what_only_calls_the_function_that_has_it(
    books: Room,
) -> None:
    await has_the_folder(books)
    assert await made(books, "more", MORE) == []
    assert await called(books, "more", "yes") == []
    twice = user("twice", "return more(path) * 2", "from functions.more import more\n\n\n")
    assert await made(books, "twice", twice) == []
    assert await called(books, "twice", "yes") == []
    asked = books.shop.granting.approver = human("no")
    assert (await books.shop.edit("more", "+ 1", "+ 10", author=AGENT)).admitted
    assert (await books.shop.call("twice", {"path": "data/2"})).value == 24
    assert asked.asked == []
    assert {*await books.shop.granting.book.entries()} == {"agent:main", "read_book"}


async def saved(here: Room) -> None:
    await here.save(MORE, here.root / "functions" / "more.py")


async def of_another_agent(here: Room) -> None:
    await here.shop.create("more", MORE, "more", author=OTHER_AGENT)


async def writes(here: Room) -> None:
    text = user("more", 'open(path + "x", "w").write("")\nreturn read_book(path)')
    await here.shop.create("more", text, "more", author=AGENT)


async def sends(here: Room) -> None:
    text = user("more", "self.fetch(path)\nreturn read_book(path)")
    await here.shop.create("more", text, "more", author=AGENT)


async def imports_another(here: Room) -> None:
    placed(here.root, "pillars", "sheets", files={"pillars.py": "ONE = 1\n"})
    text = user("more", "import pillars\nreturn read_book(path) + pillars.ONE")
    await here.shop.create("more", text, "more", author=AGENT)


async def after_the_package_was_taken_back(here: Room) -> None:
    await here.shop.grants.revoke("read_book", None)
    await here.shop.create("more", MORE, "more", author=AGENT)


async def after_the_function_with_it_changed(here: Room) -> None:
    await here.save(BOOK.replace("read())", "read() + '1')"), here.root / "functions" / "books.py")
    await here.shop.create("more", MORE, "more", author=AGENT)


NOT_FOR = [
    saved,
    of_another_agent,
    writes,
    sends,
    imports_another,
    after_the_package_was_taken_back,
    after_the_function_with_it_changed,
]


@pytest.mark.parametrize(
    "way", [pytest.param(way, id=way.__name__.replace("_", "-")) for way in NOT_FOR]
)
async def test_a_package_is_asked_for_by_what_is_not_the_agents_or_does_more_than_read(
    books: Room, way: Callable[[Room], Awaitable[None]]
) -> None:
    await has_the_folder(books)
    asked = books.shop.granting.approver = human("no")
    await way(books)
    if not asked.asked:
        await books.shop.call("more", {"path": "data/2"})
    assert [question.function for question in asked.asked if question.missing.packages] == ["more"]


HELPER = function_text(
    "pick(text: str) -> int",
    "Return the number in a text.\n\nArgs:\n    text: A text.\n\n"
    "Examples:\n    >>> pick('4')\n    4\n    >>> pick(' 7')\n    7",
    "return int(text)",
)
READER = "from functions.picks import pick\n\n\n" + function_text(
    "reader(path: str) -> int",
    "Read a number.\n\nArgs:\n    path: The file.",
    "return pick(open(path).read())",
)
EDITED = HELPER.replace("return int(text)", "return int(text) * 1")


async def reads_two_folders(here: Room) -> None:
    """Let the agent make a helper and its caller, and give it two folders."""
    (here.root / "mails").mkdir()
    (here.root / "mails" / "1").write_text("9")
    await made(here, "pick", HELPER, module="picks")
    await made(here, "reader", READER)
    here.shop.granting.approver = Human([WIDE])
    for path in ("data/2", "mails/1"):
        assert (await here.shop.call("reader", {"path": path})).outcome == "returned"


async def test_after_a_person_edits_a_helper_its_caller_asks_once_for_the_folders_that_it_had(
    here: Room,
) -> None:
    await reads_two_folders(here)
    await here.save(EDITED, here.root / "functions" / "picks.py")
    asked = here.shop.granting.approver = human("yes")
    for path in ("data/2", "data/3", "mails/1"):
        assert (await here.shop.call("reader", {"path": path})).outcome == "returned"
    (question,) = asked.asked
    assert question.missing == Grants(read=("data/", "mails/"))
    assert question.doubts == (
        "It read this as one that main made. Someone else has changed `pick`.",
    )
    await here.shop.edit(
        "pick", "* 1", "* 1 + 0", author=AGENT
    )  # it descends from what a person saved
    assert await called(here, "reader", "yes") == [Grants(read=("data/", "mails/"))]
    assert await called(here, "reader", "no", "mails/1") == []


async def test_after_a_person_edits_what_opens_files_it_asks_once_for_the_folders_that_it_had(
    here: Room,
) -> None:
    await reads_two_folders(here)
    await here.save(
        READER.replace("pick(open", "-pick(open"), here.root / "functions" / "reader.py"
    )
    assert await called(here, "reader", "yes") == [Grants(read=("data/", "mails/"))]
    assert await called(here, "reader", "no", "mails/1") == []


async def test_what_lies_elsewhere_or_could_be_sent_is_asked_for_alone_after_an_edit(
    here: Room,
) -> None:
    await reads_two_folders(here)
    (here.root / "other").write_text("1")
    await here.save(EDITED, here.root / "functions" / "picks.py")
    assert await called(here, "reader", "no", "other") == [Grants(read=("other",))]
    sends = EDITED.replace("pick(text", "pick(self, text").replace(
        "return int", "self.fetch(text)\n    return int"
    )
    await here.save(sends, here.root / "functions" / "picks.py")
    await here.save(
        READER.replace("reader(path", "reader(self, path"), here.root / "functions" / "reader.py"
    )
    assert Grants(read=("data/", "mails/")) not in await called(here, "reader", "no")


async def test_a_module_with_a_new_statement_of_a_person_asks_for_each_file(here: Room) -> None:
    await reads_two_folders(here)
    await here.save(f"int = float\n\n\n{HELPER}", here.root / "functions" / "picks.py")
    assert await called(here, "reader") == [Grants(read=("data/2",))]


async def test_a_refusal_for_a_modules_sake_says_one_thing_that_helps(books: Room) -> None:
    await made(books, "pick", HELPER, module="picks")
    at_top = f"import sheets as _unused\n\n\n{BOOK}"
    asked = books.shop.granting.approver = human("yes")
    plan = await books.shop.plan_create("read_book", at_top, "picks", "", AGENT)
    assert plan.text.splitlines() == [
        "`read_book` was not made.",
        "`pick` is in the same module and may not import sheets: it would not run any more, so nobody was asked. Give"
        " `read_book` another module_name, or import sheets inside of it: then the user is asked before it joins.",
    ]
    for module, text in (
        ("books", at_top),
        ("picks", BOOK.replace("read_book", "read_other").replace(".read())", ".read()) - 1")),
    ):
        judgment = await books.shop.create(
            text.partition("def ")[2].partition("(")[0], text, module, author=AGENT
        )
        assert judgment.admitted, judgment.denied
    assert [question.missing for question in asked.asked] == [Grants(packages=("sheets",))] * 2
