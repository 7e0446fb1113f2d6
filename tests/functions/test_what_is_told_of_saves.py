"""A human's save of functions is reported to listeners, at the prompt, and to the model."""

from pathlib import Path

from agent_core.base.events import FunctionsChanged
from agent_core.base.records import to_json
from agent_core.functions.sandbox_client import SandboxClient
from agent_core.functions.service import Author, FunctionService
from agent_core.views.call_log import changed_lines
from tests.conftest import OpenDesk
from tests.functions.support import Room, named, room
from tests.kit import Expect, Say, contains
from tests.kit.desk import VOWELS, of
from tests.kit.sources import function_text

FLAWED = VOWELS.replace("aeiou", "aeio")
FETCHING = function_text(
    "page_of(self, path: str) -> str",
    "Fetch a page of the site.\n\nArgs:\n    path: Where it is.\n\nReturns:\n    Its text.",
    'return self.fetch("https://example.org/" + path).text()',
    "page_of(\"a\") → 'a page'",
)
RAISING = VOWELS.replace("return sum", "return 1 / 0 + sum")


async def save(shop: FunctionService, folder: Path, text: str) -> list[FunctionsChanged]:
    """Return the events that listeners receive for one save."""
    heard: list[FunctionsChanged] = []
    quiet = shop.on_change(heard.append)
    file = folder / "functions" / "letters.py"
    file.write_text(text)
    await shop.saved([file])
    quiet()
    return heard


def shown(event: FunctionsChanged) -> str:
    """Return the lines at the prompt."""
    return "\n".join("".join(text for _, text in line) for line in changed_lines(event))


async def test_a_save_is_told_with_its_standing_and_the_examples_that_disagree(
    shop: FunctionService, tmp_path: Path
) -> None:
    (event,) = await save(shop, tmp_path, VOWELS)
    assert (event.loaded, event.disagreeing, event.fixed) == (("count_vowels",), {}, ())
    assert (
        shown(event)
        == "⟳ count_vowels was added outside\n  ✓ count_vowels is on trial: its examples agree"
    )
    (event,) = await save(shop, tmp_path, FLAWED)
    how = 'count_vowels("queueing") gave 3, its example on line 10 says 5'
    assert (event.changed, event.disagreeing) == (("count_vowels",), {"count_vowels": how})
    assert (
        shown(event)
        == f"⟳ count_vowels was changed outside\n  ~ count_vowels is a draft now: {how}"
    )
    assert f"`count_vowels` is a draft now: {how}." in shop.tell_changes([event])
    (row,) = (await shop.list()).functions
    assert row.standing == "draft"
    (event,) = await save(shop, tmp_path, RAISING)
    assert "gave ZeroDivisionError: division by zero" in event.disagreeing["count_vowels"]
    (event,) = await save(
        shop, tmp_path, "def half(number: float) -> float:\n    return number / 2\n"
    )
    assert shown(event).endswith("~ half is a draft: it has no examples")
    (event,) = await save(shop, tmp_path, FETCHING)
    waits = "its examples need what is not granted yet; its first call asks for it"
    assert shown(event).endswith(f"~ page_of is a draft: {waits}")


async def test_a_file_that_stays_broken_is_told_at_each_save_and_said_to_be_good_again(
    shop: FunctionService, tmp_path: Path
) -> None:
    await save(shop, tmp_path, VOWELS)
    (broken,) = await save(shop, tmp_path, VOWELS + "def (:\n")
    assert (len(broken.rejected), broken.fixed) == (1, ())
    for more in ("# one\n", "# two\n"):
        (again,) = await save(shop, tmp_path, f"{VOWELS}def (:\n{more}")
        assert again.rejected == broken.rejected
        assert await save(shop, tmp_path, f"{VOWELS}def (:\n{more}") == []
    (fixed,) = await save(shop, tmp_path, VOWELS)
    assert (fixed.fixed, fixed.changed, fixed.rejected) == (("functions/letters.py",), (), ())
    assert shown(fixed) == "✓ functions/letters.py loads again"
    assert "`functions/letters.py`, which was rejected, loads again." in shop.tell_changes([fixed])
    await save(shop, tmp_path, "def (:\n")
    (tmp_path / "functions" / "letters.py").unlink()
    found = await shop.reload()
    assert (found.removed, found.fixed, found.rejected) == (("count_vowels",), (), ())
    lists = ("loaded", "changed", "removed", "rejected", "fixed")
    assert to_json(await shop.reload()) == {
        **{name: [] for name in lists},
        "standings": {},
        "disagreeing": {},
        "noted": {},
    }


async def test_saves_that_were_taken_while_an_editor_was_open_are_told_when_it_is_left(
    here: Room,
) -> None:
    await here.save(VOWELS)

    async def edit() -> None:
        for text in (RAISING, "def (:\n", FLAWED):
            await here.save(text)

    found = await here.shop.reload_after(edit())
    assert (found.changed, found.fixed) == (("count_vowels",), ("functions/letters.py",))
    assert list(found.disagreeing.values()) == [
        'count_vowels("queueing") gave 3, its example on line 10 says 5'
    ]
    again = await here.shop.reload_after(here.save(VOWELS))
    assert (again.changed, again.disagreeing, again.rejected) == (("count_vowels",), {}, ())


async def test_an_agents_own_change_is_not_told_as_another_hands_but_a_humans_is(
    here: Room,
) -> None:
    heard: list[FunctionsChanged] = []
    here.shop.on_change(heard.append)
    await here.shop.create("count_vowels", VOWELS, "letters", author=Author("agent"))
    assert heard == []
    await here.shop.replace("count_vowels", VOWELS.replace("Count the", "Number the"))
    assert [(change.changed, change.by) for change in heard] == [(("count_vowels",), "user")]


async def test_a_file_that_became_a_package_keeps_its_module_and_its_row(here: Room) -> None:
    await here.save(VOWELS)
    (package := here.letters.with_name("letters")).mkdir()
    here.letters.rename(package / "__init__.py")
    await here.shop.reload()
    assert (here.shop.names(), list(await here.store.manifest())) == (["count_vowels"], ["letters"])


BY_USE = (
    f"from functions.letters import count_vowels\n\n\n{named('twice').partition('    return ')[0]}"
    + ("    return count_vowels(text)\n")
)


async def standings(here: Room) -> dict[str, str]:
    return {row.name: row.standing for row in (await here.shop.list()).functions}


async def test_a_save_that_breaks_what_uses_it_says_whom_and_makes_drafts_of_them(
    here: Room, tmp_path: Path
) -> None:
    await here.save(VOWELS)
    for name in ("twice", "thrice"):
        await here.save(BY_USE.replace("twice", name), here.letters.with_name(f"{name}.py"))
    assert [(await here.shop.call("twice", {"text": "aha"})).value for _ in range(3)] == [2, 2, 2]
    text = VOWELS.replace('    >>> count_vowels("queueing")\n    5\n', "").replace(
        'aeiou"', 'aeio"'
    )
    (event,) = await save(here.shop, tmp_path, text)
    dropped, *broken = event.noted["count_vowels"].split("\n")
    assert "queueing" in dropped
    assert [one.partition(" gave")[0] for one in broken] == [
        f'breaks `{name}` (functions/{name}.py:4), a draft now: `{name}("queueing")`'
        for name in ("twice", "thrice")
    ]
    assert "roll back with rollback_function or /rollback count_vowels" in shown(event)
    assert "Of `count_vowels`: breaks `twice`" in here.shop.tell_changes([event])
    assert await standings(here) == {"count_vowels": "trial", "twice": "draft", "thrice": "draft"}
    await here.save(VOWELS)
    assert await standings(here) == {"count_vowels": "trial", "twice": "trial", "thrice": "trial"}


KINDS = "\n\n".join(
    [
        "KINDS = {}\n",
        "def _kind(function):\n    KINDS[function.__name__] = function\n    return function\n",
        '@_kind\ndef _is_vowel(letter):\n    return letter in "aeiou"\n',
        function_text(
            "count_vowels(text: str) -> int",
            "Count the vowels of a text.\n\nArgs:\n    text: The text.\n\nReturns:\n    How many there are.",
            'return sum(KINDS["_is_vowel"](letter) for letter in text)',
            'count_vowels("aha") → 2',
        ),
    ]
)
BY_NAME = function_text(
    "twice(self, text: str) -> int",
    "Count the vowels of a text, two times.\n\nArgs:\n    text: The text.\n\nReturns:\n    Twice as many.",
    'return 2 * self.call("count_vowels", text=text)',
    'twice("queueing") → 10',
)
HIDDEN = BY_NAME.replace(
    'self.call("count_vowels", text=text)', "sum(map(_is_vowel, text))"
).replace("(self, ", "(")
THROUGH = BY_NAME.replace("twice", "twofold").replace("2 * ", "").replace("count_vowels", "twice")


async def test_what_uses_a_changed_private_helper_is_judged_again_also_if_no_program_ran(
    tmp_path: Path, sandbox: SandboxClient
) -> None:
    hidden = "from functions.letters import _is_vowel\n\n\n" + HIDDEN.replace("twice", "doubled")
    files = {"letters": KINDS, "by_name": BY_NAME, "through": THROUGH, "hidden": hidden}
    async with room(tmp_path, sandbox) as here:
        for name, text in files.items():
            await here.save(text, here.letters.with_name(f"{name}.py"))
        assert set((await standings(here)).values()) == {"trial"}
        here.letters.write_text(KINDS.replace("aeiou", "aeio"))
    async with room(tmp_path, sandbox) as here:
        event = here.shop.changed_since()
        assert event is not None
        said = event.noted["letters"]
        assert [one for one in ("twice", "twofold", "doubled") if f"breaks `{one}`" in said] == [
            "twice",
            "twofold",
            "doubled",
        ]
        assert await standings(here) == {
            "count_vowels": "trial",
            "twice": "draft",
            "twofold": "draft",
            "doubled": "draft",
        }


async def test_files_that_changed_together_while_no_program_ran_are_judged_together(
    tmp_path: Path, sandbox: SandboxClient
) -> None:
    def more(text: str) -> str:
        return text.replace("\n    5\n", "\n    6\n").replace("\n    0\n", "\n    1\n")

    user = tmp_path / "functions" / "a_user.py"
    async with room(tmp_path, sandbox) as here:
        await here.save(VOWELS)
        await here.save(BY_USE, user)
        here.letters.write_text(more(VOWELS).replace("return sum(", "return 1 + sum("))
        user.write_text(more(BY_USE))
    async with room(tmp_path, sandbox) as here:
        assert await standings(here) == {"count_vowels": "trial", "twice": "trial"}


async def test_a_function_shows_the_problems_of_its_own_lines_where_it_stands_now(
    shop: FunctionService, tmp_path: Path
) -> None:
    poor = "def {0}(number: float) -> float:\n    return number / {1}\n"
    await save(shop, tmp_path, "\n\n".join((poor.format("half", 2), poor.format("third", 3))))
    await save(
        shop, tmp_path, "\n\n".join((VOWELS, poor.format("half", 2), poor.format("third", 3)))
    )
    found = await shop.introspect("third")
    assert found.verdict
    problems = found.verdict.problems
    assert problems
    assert {problem.where.path for problem in problems} == {"functions/letters.py"}
    assert {problem.where.line for problem in problems} <= {
        found.function.line,
        found.function.line + 1,
    }
    assert not any("`half`" in problem.message for problem in problems)


async def test_the_model_and_the_turns_listeners_are_told_of_doubts_and_of_fixed_files(
    at_desk: OpenDesk,
) -> None:
    said = [
        Expect(Say("Seen."), contains("is a draft now: ")),
        Expect(Say("Seen."), contains("loads again")),
    ]
    desk = await at_desk(said)
    heard: list[list[FunctionsChanged]] = []
    for texts in ([FLAWED], ["def (:\n", FLAWED]):
        for text in texts:
            await desk.workspace.functions.saved([desk.put("letters.py", text)])
        heard.append(of(FunctionsChanged, await desk.say("Look.")))
    assert [list(change.disagreeing) for change in heard[0]] == [["count_vowels"]]
    assert [change.fixed for change in heard[1]] == [(), ("functions/letters.py",)]
