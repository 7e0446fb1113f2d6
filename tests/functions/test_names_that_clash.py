"""A definition rejected for a name clash leaves no trace on the existing function of that name."""

from pathlib import Path

import pytest

from agent_core.base.events import FunctionsChanged
from agent_core.functions.sandbox_client import SandboxClient
from tests.functions.support import CLAMP, Room, room
from tests.kit.desk import VOWELS

pytestmark = pytest.mark.asyncio(loop_scope="module")
OTHER = "def count_vowels(text: str) -> int:\n    return 0\n"
WRONG = (
    'def count_vowels(text: str) -> int:\n    """Count.\n\n    >>> '
    'count_vowels("aa")\n    7\n    """\n    return 2\n'
)


def file(here: Room, name: str) -> Path:
    path = here.root / "functions" / name
    path.parent.mkdir(exist_ok=True)
    return path


async def heard(here: Room, text: str, name: str) -> list[FunctionsChanged]:
    """Return the events that listeners receive for one save."""
    events: list[FunctionsChanged] = []
    quiet = here.shop.on_change(events.append)
    await here.save(text, file(here, name))
    quiet()
    return events


async def versions(here: Room, name: str = "count_vowels") -> list[tuple[str, str]]:
    """Return the module and the standing of each version of a function."""
    found = await here.shop.history.of(name)
    return [(entry.version.row.module, entry.standing) for entry in found.versions]


def place(here: Room, name: str = "count_vowels") -> str:
    return here.shop.registry.snapshot().functions[name].path


def codes(here: Room) -> list[tuple[str, str]]:
    return [
        (problem.where.path, problem.code) for problem in here.shop.registry.snapshot().rejected
    ]


async def standing(here: Room, name: str = "count_vowels") -> str:
    return {row.name: row.standing for row in (await here.shop.list()).functions}[name]


@pytest.mark.parametrize(
    ("holder", "refused"),
    [
        pytest.param("letters.py", "a.py", id="earlier-in-the-alphabet"),
        pytest.param("web/pages.py", "web/__init__.py", id="inside-a-package"),
    ],
)
async def test_a_refused_file_leaves_no_version_and_no_verdict(
    here: Room, holder: str, refused: str
) -> None:
    await here.save(VOWELS, file(here, holder))
    await here.shop.rate("count_vowels", is_good=True)
    before = await here.shop.history.versions("count_vowels")
    hash = here.shop.registry.snapshot().functions["count_vowels"].body_hash
    verdict = await here.store.verdict(hash, "count_vowels")
    await here.save(VOWELS, file(here, refused))  # a copy
    (event,) = await heard(here, OTHER, refused)
    assert (event.loaded, event.changed, event.standings, event.noted) == ((), (), {}, {})
    assert "name-clash: `count_vowels` is already the function" in event.rejected[0]
    assert await here.shop.history.versions("count_vowels") == before
    assert await here.store.verdict(hash, "count_vowels") == verdict
    assert (place(here), await standing(here)) == (f"functions/{holder}", "trial")
    file(here, refused).unlink()
    await here.shop.reload()
    assert await here.shop.history.versions("count_vowels") == before


async def test_what_does_not_clash_in_the_same_file_is_taken_with_its_versions(here: Room) -> None:
    await here.save(VOWELS)
    (event,) = await heard(here, f"{OTHER}\n\n{CLAMP}", "words.py")
    assert (event.loaded, [*event.standings], len(event.rejected)) == (("clamp",), ["clamp"], 1)
    (event,) = await heard(here, f"{OTHER}\n\n{CLAMP.replace('Keep', 'Hold')}", "words.py")
    assert (event.changed, [*event.standings]) == (("clamp",), ["clamp"])
    assert await versions(here) == [("letters", "trial")]
    assert await versions(here, "clamp") == [("words", "trial"), ("words", "trial")]
    assert (await here.shop.edit("clamp", "Hold a value", "Keep the value")).admitted
    assert len(await versions(here, "clamp")) == 3
    assert await versions(here) == [("letters", "trial")]


@pytest.mark.parametrize("how", ["removed", "by-a-command"])
async def test_the_refused_one_is_loaded_with_its_own_first_version_when_the_name_is_free(
    here: Room, how: str
) -> None:
    await here.save(VOWELS)
    await here.save(WRONG, file(here, "words.py"))
    events: list[FunctionsChanged] = []
    quiet = here.shop.on_change(events.append)
    if how == "removed":
        here.letters.unlink()
        await here.shop.saved([here.letters])
    else:
        await here.shop.delete("count_vowels")
    quiet()
    assert (place(here), codes(here), await standing(here)) == ("functions/words.py", [], "draft")
    found = [
        entry
        for entry in (await here.shop.history.of("count_vowels")).versions
        if entry.version.hash
    ]
    assert [(entry.version.row.module, entry.standing) for entry in found] == [
        ("letters", "trial"),
        ("words", "draft"),
    ]
    assert any(event.disagreeing for event in events)
    assert await heard(here, WRONG, "words.py") == []


async def test_after_a_restart_the_one_that_stayed_stays(
    tmp_path: Path, sandbox: SandboxClient
) -> None:
    refused = "a.py"
    async with room(tmp_path, sandbox) as here:
        await here.save(VOWELS)
        await here.save(f"{OTHER}\n\n{CLAMP}", file(here, refused))
    async with room(tmp_path, sandbox) as here:
        assert here.shop.changed_since() is None
        assert (place(here), codes(here)) == (
            "functions/letters.py",
            [(f"functions/{refused}", "name-clash")],
        )
        (event,) = await heard(here, f"{OTHER}# more\n\n\n{CLAMP}", refused)
        assert (event.standings, len(event.rejected)) == ({}, 1)
        assert await versions(here) == [("letters", "trial")]
        assert await standing(here) == "trial"
        await here.save(
            f"{CLAMP.replace('return low', 'return low + 0')}\n\n{VOWELS}"
        )  # each keeps the other out
    async with room(tmp_path, sandbox) as here:
        assert (place(here), place(here, "clamp")) == (
            "functions/letters.py",
            f"functions/{refused}",
        )


async def test_what_is_refused_while_no_program_runs_is_said_to_be_refused_and_no_more(
    tmp_path: Path, sandbox: SandboxClient
) -> None:
    async with room(tmp_path, sandbox) as here:
        await here.save(VOWELS)
    file(here, "a.py").write_text(WRONG)
    async with room(tmp_path, sandbox) as here:
        event = here.shop.changed_since()
        assert event is not None
        assert (event.loaded, event.disagreeing, event.standings, len(event.rejected)) == (
            (),
            {},
            {},
            1,
        )
        assert await versions(here) == [("letters", "trial")]
    file(here, "a.py").unlink()
    async with room(tmp_path, sandbox) as here:
        assert here.shop.changed_since() is None
        assert await versions(here) == [("letters", "trial")]


async def test_a_move_while_no_program_runs_keeps_the_name_from_the_refused_one(
    tmp_path: Path, sandbox: SandboxClient
) -> None:
    async with room(tmp_path, sandbox) as here:
        await here.save(VOWELS)
        await here.save(OTHER, file(here, "a.py"))
    here.letters.rename(file(here, "words.py"))
    async with room(tmp_path, sandbox) as here:
        assert (place(here), codes(here)) == (
            "functions/words.py",
            [("functions/a.py", "name-clash")],
        )
        assert [version.hash for version in await here.shop.history.versions("count_vowels")] == [
            here.shop.registry.snapshot().functions["count_vowels"].body_hash
        ]
