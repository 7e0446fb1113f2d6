"""Functions are found by need: at the shell, by the model, and through the requests they have served."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core import Workspace
from agent_core.base.errors import UsageError
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import answers
from tests.kit.program import knapper
from tests.kit.sources import function_text

PAGES = "\n\n".join(
    [
        function_text(
            "fetch_page(url: str) -> str",
            "Read the text of a web page, without its HTML tags.",
            "return clean(url)",
        ),
        function_text(
            "fetch_json(url: str) -> dict",
            "Read a web address and parse the JSON that it answers with.",
            'return {"url": url}',
        ),
        function_text(
            "clean(text: str) -> str",
            "Take the HTML tags out of a text.",
            'return text.replace("<b>", "")',
        ),
    ]
)
PLANTS = '''\
def water_plan(days: int) -> list:
    """Plan on which days of a month the plants in the garden get water."""
    return [*range(1, 31, days)]
'''


@pytest.fixture
def library(tmp_path: Path) -> Path:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "functions" / "pages.py").write_text(PAGES)
    (tmp_path / "functions" / "plants.py").write_text(PLANTS)
    return tmp_path


def searched(need: str, cwd: Path) -> list[dict[str, Any]]:
    done = knapper("functions", "search", need, "--json", cwd=cwd)
    report = json.loads(done.stdout)
    assert (done.returncode, report["query"]) == (0, need)
    results: list[dict[str, Any]] = report["results"]
    return results


def test_a_need_finds_the_function_and_says_why_how_it_differs_and_what_it_calls(
    library: Path,
) -> None:
    best = searched("show me what a website says", library)[0]
    assert best["name"] == "fetch_page"
    assert set(best) == {"name", "description", "score", "why", "differs", "needs"}
    assert best["needs"] == ["clean"]
    assert (
        best["differs"]
        == "`fetch_json`: Read a web address and parse the JSON that it answers with."
    )


async def test_a_need_is_found_by_meaning_and_what_a_function_calls_comes_right_behind_it(
    library: Path,
) -> None:
    async with Workspace.open(library) as workspace:

        async def found(need: str) -> list[str]:
            return [
                match.function.name for match in (await workspace.functions.search(need)).results
            ]

        names = await found("the text of a web page")
        assert names[names.index("fetch_page") + 1] == "clean"
        assert (await found("irrigation schedule"))[0] == "water_plan"
        assert (await found("water the plants in the garden. " + "x" * 100_000))[0] == "water_plan"
        assert await found("book a flight to Lisbon") == []
    async with Workspace.open(library, flags={"memory.embedding": "none"}) as workspace:
        assert (await found("which days get water"))[0] == "water_plan"
        assert await found("irrigation schedule") == []


def test_a_miss_and_an_empty_need_say_how_to_go_on(library: Path) -> None:
    missed = knapper("functions", "search", "book a flight to Lisbon", cwd=library)
    assert (missed.stdout, "ask for one" in missed.stderr) == ("", True)
    empty = knapper("functions", "search", "  \n", cwd=library)
    assert (empty.returncode, "The need is empty" in empty.stderr) == (2, True)


async def test_the_model_searches_and_is_shown_what_it_found_or_what_to_do_after_a_miss(
    at_desk: OpenDesk,
) -> None:
    wanted = [("list_functions", "pattern"), ("search_functions", "need")]
    asked = [Wanted(name, {argument: "text of a web page"}) for name, argument in wanted]
    missed = Wanted("list_functions", {"pattern": "compose a symphony"})
    desk = await at_desk([Ask(*asked, missed), Repeat(Say("Done."))])
    desk.put("pages.py", PAGES)
    await desk.workspace.functions.reload()
    *found, miss = answers(await desk.say("Go."))
    for answer in found:
        assert answer.splitlines()[1].startswith(
            "- fetch_page(url) -> str: Read the text of a web page"
        )
        assert "needs: clean" in answer
    assert (len(found), miss) == (2, "No function serves this. Next: create_function.")


async def test_a_function_is_found_again_by_a_request_that_it_served(at_desk: OpenDesk) -> None:
    desk = await at_desk([Ask(Wanted("water_plan", {"days": 9})), Repeat(Say("Done."))])
    desk.put("plants.py", PLANTS)
    desk.put("pages.py", PAGES)
    await desk.workspace.functions.reload()
    request = "When do I have to look after grandma's tomatoes?"
    before = await desk.workspace.functions.search("grandma's tomatoes")
    await desk.say(request)
    best = (await desk.workspace.functions.search("grandma's tomatoes")).results[0]
    assert best.function.name == "water_plan"
    assert request in best.why
    assert all(best.score > match.score for match in before.results)


async def test_of_a_long_description_the_beginning_is_read(at_desk: OpenDesk) -> None:
    desk = await at_desk([Repeat(Say("Done."))])
    desk.put("plants.py", PLANTS)
    desk.put("pages.py", PAGES)
    many = (
        "weather garden mail song invoice flight planet chess tax poem hotel password tags novel website color calendar"
        " resume month recipe price days video stock letter forest bridge engine salary museum kitchen river border"
        " anchor pencil violin carpet ladder pepper saddle velvet window yogurt"
    )
    again = "garden mail song invoice flight planet chess tax poem " * 6
    for stuffing in (
        f"{many}. Water the plants: JSON of a web address.",
        f"{again}. Water plants, JSON web address",
    ):
        desk.put(
            "best.py",
            f'def do_anything(text: str) -> str:\n    """{stuffing}"""\n    return text.upper()\n',
        )
        await desk.workspace.functions.reload()
        for need, meant in (
            ("water the plants", "water_plan"),
            ("JSON of a web address", "fetch_json"),
        ):
            results = (await desk.workspace.functions.search(need)).results
            assert results[0].function.name == meant, stuffing
            assert all(
                "shares" not in match.why
                for match in results
                if match.function.name == "do_anything"
            )


async def test_an_honest_description_is_read(at_desk: OpenDesk) -> None:
    desk = await at_desk([Repeat(Say("Done."))])
    desk.put("pages.py", PAGES)
    for description in (
        "Add `a` and `b`, then the `from` date of a bill.",
        "Sum of a, b and c, or none if there are none to add.",
        "Set notifications on or off in the US, from a to b.",
        "Donne la somme de a et de b, ou me la rend.",
        "Zeigt an, was der Garten am Montag in den Beeten an Wasser hat.",
        "Read the rows of an export of shop A: CSV with `;`, decimal commas and dates as dd.mm.yyyy.\n\n"
        "Each row becomes its order number, day (ISO), customer and amount in cents. The amount is in the column"
        " `Gesamtbetrag (EUR)`, with dots between thousands; in exports before November 2026 it is `Betrag`, without"
        " dots. A refund, whose remark (`Bemerkung`) begins with 'Erstattung', is negative.",
        "Tare the scale, log gross and net in kg, and flag drift above 0.2 %. The sensor (HX711) is read ten times; the"
        " median counts. Jitter, mains hum and creep are left out.",
        "Match hallmarks to assay offices: anchor, leopard, castle, rose. Date letters restart in 1975; before it, each"
        " office has a cycle of its own, and shields tell them apart.",
        "Quote sailcloth by luff, foot and leech. Battens, reef points and a bolt rope add to the panels; broadseam is"
        " taken from the chord, and offcuts over 40 cm are kept.",
        "Turn MIDI notes into tablature for a baritone ukulele (D G B E), lowest fret first. Bends, slides, graces"
        " are dropped; a chord that no hand can span is split.",
    ):
        desk.put(
            "thing.py",
            f'def thing(text: str) -> str:\n    """{description}"""\n    return text.upper()\n',
        )
        await desk.workspace.functions.reload()
        best = (await desk.workspace.functions.search(description)).results[0]
        assert best.function.name == "thing", description
        assert "shares" in best.why


async def test_a_deleted_function_is_not_found_any_more_and_search_goes_on(tmp_path: Path) -> None:
    async with Workspace.open(tmp_path) as workspace:
        shop, folder = workspace.functions, tmp_path / "functions"
        (folder / "plants.py").write_text(PLANTS)  # which has a word that is a function, too
        (folder / "days.py").write_text(
            'def days(text: str) -> int:\n    """Count days."""\n    return len(text)\n'
        )
        await shop.reload()
        assert (await shop.search("water plants")).results
        (folder / "days.py").unlink()
        await shop.reload()
        assert [match.function.name for match in (await shop.search("water plants")).results] == [
            "water_plan"
        ]
        (folder / "plants.py").unlink()
        await shop.reload()
        assert not (await shop.search("water plants")).results
        with pytest.raises(UsageError, match="empty"):
            await shop.search(" ")
