"""A text with a name that another file has is refused whole, and leaves no trace on the function of that name."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_core.base.events import FunctionsChanged
from agent_core.functions.sandbox_client import SandboxClient
from agent_core.functions.service.plan import USER, entered
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from tests.functions.support import CLAMP, Room, room
from tests.kit.desk import VOWELS

WORDS = "functions/words.py"
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


async def test_a_text_with_a_taken_name_is_refused_whole_and_its_last_good_version_goes_on(
    here: Room,
) -> None:
    await here.save(VOWELS)
    await here.save(CLAMP, file(here, "words.py"))
    (event,) = await heard(here, f"{OTHER}\n\n{CLAMP.replace('Keep', 'Hold')}", "words.py")
    assert (event.changed, event.standings, len(event.rejected)) == ((), {}, 1)
    assert "until then, nothing of this text is taken" in event.rejected[0]
    assert await versions(here) == [("letters", "trial")]
    assert await versions(here, "clamp") == [("words", "trial")]
    (event,) = await heard(here, CLAMP.replace("Keep", "Hold"), "words.py")
    assert (event.changed, event.rejected, event.fixed) == (("clamp",), (), ("functions/words.py",))


async def test_a_name_moves_between_files_in_one_save_or_in_two(here: Room) -> None:
    """Also if the file that gives the name up imports the one that takes it, and in a swap."""
    await here.save(f"{VOWELS}\n\n{CLAMP}")
    words = file(here, "words.py")
    user = "from functions.words import count_vowels\n\n\n"
    here.letters.write_text(user + CLAMP)
    words.write_text(VOWELS)
    await here.shop.saved([here.letters, words])
    assert (place(here), codes(here)) == ("functions/words.py", [])
    here.letters.write_text(VOWELS)
    words.write_text(CLAMP)
    await here.shop.saved([words, here.letters])
    assert (place(here), place(here, "clamp")) == ("functions/letters.py", "functions/words.py")
    await here.save(f"{VOWELS}\n\n{CLAMP}", words)
    assert codes(here) == [("functions/words.py", "name-clash")]
    here.letters.unlink()
    await here.shop.saved([here.letters])
    assert (place(here), codes(here)) == ("functions/words.py", [])


async def test_what_imports_a_refused_text_is_judged_with_the_one_that_goes_on(here: Room) -> None:
    await here.save(VOWELS)
    words = file(here, "words.py")
    user = file(here, "user.py")
    words.write_text(f"{OTHER}\n\n{CLAMP}")
    user.write_text(
        "from functions.words import clamp\n\n\ndef held(value: int) -> int:\n"
        '    """Hold a value.\n\n    Args:\n        value: What to hold.\n    """\n'
        "    return clamp(value, 0, 9)\n"
    )
    await here.shop.saved([words, user])
    assert codes(here) == [("functions/user.py", "import-fails"), (WORDS, "name-clash")]
    await here.save(CLAMP, words)
    assert codes(here) == []
    assert place(here, "held") == "functions/user.py"


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
        await here.save(CLAMP, file(here, refused))
        await here.save(f"{OTHER}\n\n{CLAMP}", file(here, refused))
    async with room(tmp_path, sandbox) as here:
        event = here.shop.changed_since()
        assert event is not None
        assert (event.changed, event.removed, len(event.rejected)) == ((), (), 1)
        assert (place(here), codes(here)) == (
            "functions/letters.py",
            [(f"functions/{refused}", "name-clash")],
        )
        (event,) = await heard(here, f"{OTHER}# more\n\n\n{CLAMP}", refused)
        assert (event.standings, len(event.rejected)) == ({}, 1)
        assert await versions(here) == [("letters", "trial")]
        assert await standing(here) == "trial"


async def test_functions_that_an_earlier_version_kept_out_stay_out_and_all_others_stay(
    tmp_path: Path, sandbox: SandboxClient
) -> None:
    """Such a state is made here by hand: of two files with the same two names, each has one."""
    kept_out = {"letters": "clamp", "a": "count_vowels"}
    async with room(tmp_path, sandbox) as here:
        await here.save(VOWELS)
        await here.save(CLAMP, file(here, "a.py"))
        modules = here.shop.registry.snapshot().modules
        for module, more in (("letters", CLAMP), ("a", OTHER)):
            known = modules[module]
            source = ModuleSource.of(module, f"{known.text}\n\n{more}", known.path)
            file(here, f"{module}.py").write_text(source.text)
            await here.store.apply(entered(read_module(source), known.version, USER, "saved"))
    with closing(sqlite3.connect(tmp_path / ".knapper" / "state.db")) as state:
        for module, name in kept_out.items():
            newest = "(select max(seq) from change where module = ?1)"
            state.execute(f"update change set kept_out = ?2 where seq = {newest}", (module, name))
        state.commit()
    for _ in range(2):
        async with room(tmp_path, sandbox) as here:
            assert (place(here), place(here, "clamp")) == (
                "functions/letters.py",
                "functions/a.py",
            )
            assert codes(here) == [
                ("functions/a.py", "name-clash"),
                ("functions/letters.py", "name-clash"),
            ]
            assert [module for module, _ in await versions(here)] == ["letters"]
            refused = await here.shop.edit("clamp", "Keep a value", "Hold a value")
            assert not refused.admitted
            assert any("is already the function at" in one.message for one in refused.problems)
    async with room(tmp_path, sandbox) as here:
        await here.save(VOWELS)
        assert (place(here), place(here, "clamp")) == ("functions/letters.py", "functions/a.py")
        await here.save(CLAMP, file(here, "a.py"))
        assert codes(here) == []
        assert (await here.shop.edit("clamp", "Keep a value", "Hold a value")).admitted


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
