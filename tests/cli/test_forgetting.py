"""`knapper memory forget`: removes what must not stay from the record, and its bytes from the state folder."""

import json
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_core.storage import lock_agent, prepare_state_dir
from agent_core.workspace.workspace import Workspace
from tests.cli.support import run
from tests.interfaces.asking import agree_in_full
from tests.interfaces.support import COUNT_VOWELS, NOTHING_LEFT, create, leave, prompt
from tests.kit import Ask, Expect, Say, Script, Seen, Wanted, contains, scripted
from tests.kit.levels import require_functions
from tests.kit.program import knapper
from tests.kit.terminal import CTRL_C, UP, Terminal

pytestmark = pytest.mark.timeout(240)
NAME = "Zoltánka"
CREATE = create(COUNT_VOWELS).arguments
assert isinstance(CREATE, dict)
SCRIPT: Script = [
    Ask(
        Wanted(
            "core_memory_append",
            {"name": "human", "content": f"Likes pie. Best friend: {NAME}. Lives in Bern."},
        ),
        Wanted(
            "archival_memory_insert",
            json.dumps({"content": f"{NAME} plays the oboe", "tags": [NAME.lower()]}),
        ),
        Wanted("create_function", {**CREATE, "reason": f"{NAME} asked for it"}),
        text=f"I shall remember {NAME}.",
    ),
    Ask(
        Wanted("count_vowels", {"text": f"{NAME} X"}),
        Wanted("count_vowels", {"texts": NAME.upper()}),
    ),
    Say(f"Done, {NAME.upper()}."),
    Expect(Say("Yes."), contains("the weather")),
]


async def talked(root: Path, script: Script, messages: Sequence[str], agent: str = "main") -> None:
    with scripted(script) as model:
        flags = {"model.base_url": model.base_url, "model.name": "scripted"}
        async with Workspace.open(
            root, flags=flags, environment={"OPENAI_API_KEY": "scripted"}
        ) as workspace:
            talker = await workspace.agent(agent)
            for message in messages:
                await talker.ask(message)
            await talker.memory.remember()
        model.verify()


@pytest.fixture
async def told(tmp_path: Path) -> Path:
    require_functions()
    await talked(
        tmp_path, SCRIPT, [f"My best friend is {NAME}; make count_vowels", "How is the weather?"]
    )
    return tmp_path


def written(root: Path, text: str = NAME) -> list[str]:
    """Return the files of the state folder whose bytes contain the text, in any case and form."""
    forms = {
        form
        for case in (text, text.lower(), text.upper())
        for form in (case, unicodedata.normalize("NFD", case))
    }
    forms |= {json.dumps(form)[1:-1] for form in forms}
    plain = unicodedata.normalize("NFD", text).encode("ascii", "ignore").lower()
    stem = plain[:-1]
    sought = [form.encode() for form in forms] + [stem]
    files = [path for path in (root / ".knapper").rglob("*") if path.is_file()]
    return [path.name for path in files if any(form in path.read_bytes() for form in sought)]


def places(report: dict[str, object]) -> dict[str, int]:
    rows = report["places"]
    assert isinstance(rows, list)
    return {row["place"]: row["count"] for row in rows}


async def test_a_name_is_gone_from_every_byte_of_the_state_and_the_conversation_goes_on(
    told: Path,
) -> None:
    assert written(told)
    for name in ("debug.log", "access.log", "access.log.1"):
        (told / ".knapper" / name).write_text(
            f"2026-11-20T16:42:04.125Z GET /agents/{NAME}\n2026-11-20T16:43 GET /\n"
        )
    looked = run(told, "memory", "forget", NAME, "--dry-run")
    assert (looked["outcome"], written(told) != []) == ("previewed", True)
    done = run(told, "memory", "forget", NAME.lower(), "-y")
    assert (done["outcome"], places(done)) == ("forgotten", places(looked))
    assert {
        "messages",
        "calls and answers",
        "inbox",
        "recall",
        "passages",
        "memory blocks",
        "earlier texts of blocks",
        "recorded calls",
        "reasons of versions",
        "debug log",
    } <= {*places(done)}
    assert places(done)["log of requests"] == 2
    assert (told / ".knapper" / "access.log").read_text() == "2026-11-20T16:43 GET /\n"
    assert written(told) == []
    assert "Likes pie. Lives in Bern." in str(run(told, "memory", "show", "human"))
    assert (
        run(told, "memory", "search", "oboe")["archival"]["results"][0]["text"]
        == "[forgotten] plays the oboe"
    )
    await talked(told, [Expect(Say("Still here."), contains("[forgotten]"))], ["and now?"])
    assert run(told, "functions", "list")["functions"]
    assert run(told, "memory", "forget", NAME, "-y")["outcome"] == "nothing"


async def test_a_turn_goes_whole_and_a_message_leaves_its_calls_answered(told: Path) -> None:
    (told / ".knapper" / "debug.log").write_text(
        "2026-11-20 16:42:04,125 → POST … the whole conversation\n"
    )
    found = run(told, "memory", "search", NAME)["recall"]["results"]
    with_calls = next(row["message"] for row in found if "I shall remember" in row["text"])
    done = run(told, "memory", "forget", "--message", with_calls, "-y")
    assert not (told / ".knapper" / "debug.log").exists()
    assert places(done)["messages"] == 1
    await talked(told, [Expect(Say("Yes."), contains("[forgotten]"))], ["and now?"])
    done = run(told, "memory", "forget", "--turn", "1", "-y")
    assert {"messages", "calls and answers", "passages", "reasons of versions"} <= {*places(done)}
    assert written(told) == ["state.db"]  # text that went into a block stays, and is not masked
    run(told, "memory", "edit", "human", "--value", "Likes pie.")
    run(told, "memory", "forget", NAME, "-y")
    assert written(told) == []
    assert "no such turn: 1" in str(run(told, "memory", "forget", "--turn", "1", "-y", code=2))
    await talked(told, [Expect(Say("Sunny."), contains("How is the weather?"))], ["and now?"])


async def test_it_says_where_a_name_stays_and_all_before_a_date_goes(told: Path) -> None:
    source = told / "functions" / "words.py"
    source.write_text(source.read_text().replace("a text.", f"a text for {NAME}."))
    (told / "export.json").write_text(json.dumps({"name": NAME}))
    (told / "longer.txt").write_text(f"un{NAME}s")  # part of another word is not a match
    run(told, "memory", "add", "zoltánka", "--agent", "main")
    run(told, "memory", "edit", "on_Zoltánka", "--section", "--value", "x")
    done = run(told, "memory", "forget", NAME, "-y")
    assert [row["place"] for row in done["stays"]] == [
        *("export.json", "functions/words.py"),
        *("the name of the block zoltánka of main", "the name of the section on_Zoltánka of main"),
    ]
    assert NAME in source.read_text()
    assert run(told, "memory", "forget", "--before", "2001-01-01", "-y")["outcome"] == "nothing"
    done = run(told, "memory", "forget", "--before", "tomorrow", "-y")
    assert places(done)["messages"] >= 4
    assert run(told, "memory", "search", "weather", "--in", "recall")["recall"]["total"] == 0
    await talked(told, [Say("Hello.")], ["hello, heron"])
    results = run(told, "memory", "search", "heron", "--in", "recall")["recall"]["results"]
    assert [row["text"] for row in results] == ["hello, heron", "Hello."]


async def test_a_word_is_left_within_longer_ones_if_asked_and_the_preview_lists_them(
    tmp_path: Path,
) -> None:
    await talked(tmp_path, [Say("Ann, the annual channel of ANN_LEE.")], ["Ann's channel, Joann"])
    looked = run(tmp_path, "memory", "forget", "ann", "--dry-run")
    assert {*looked["longer_words"]} >= {"annual", "channel", "Joann"}
    run(tmp_path, "memory", "forget", "Ann", "--word", "-y")
    texts = [
        row["text"]
        for row in run(tmp_path, "memory", "search", "channel", "--in", "recall")["recall"][
            "results"
        ]
    ]
    assert {*texts} == {
        "[forgotten]'s channel, Joann",
        "[forgotten], the annual channel of [forgotten]_LEE.",
    }
    assert run(tmp_path, "memory", "forget", "JOANN", "--exact", "-y")["outcome"] == "nothing"
    run(tmp_path, "memory", "forget", "Joann", "--exact", "-y")
    assert written(tmp_path, "Joannn") == []


CTRL_R = "\x12"


def knows_no_password(seen: Seen) -> str | None:
    return "it still knows the password" if "hunter2" in str(seen.body).lower() else None


def forget(screen: Terminal, words: str, *shows: str) -> None:
    screen.do(f"/forget {words}", "To forget:", *shows)
    agree_in_full(screen)


def test_a_text_is_forgotten_in_mid_conversation_and_nothing_brings_it_back(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    script: Script = [
        Say("Hi there."),
        Say("Noted, hunter2."),
        Expect(Say("Hello again."), knows_no_password),
    ]
    with prompt(script, tmp_path, columns=110) as (screen, _):
        screen.do("good morning", "∙ 1 step")
        screen.do("my password is hunter2 do not tell", "∙ 1 step")
        assert knapper("memory", "forget", "hunter2", "--dry-run", cwd=tmp_path).returncode == 0
        screen.do("/forget hunter2", "To forget: “hunter2”", "input history  1")
        screen.answer("n", "Nothing was forgotten.")
        forget(screen, "hunter2", "To forget: “hunter2”")
        screen.wait_for("✓ forgot “hunter2”")
        screen.do("/forget giraffe77", "The record does not contain “giraffe77”.")
        screen.line("/clear")
        screen.wait_gone("✓ forgot")
        for shown in ("/clear", "good morning"):  # no line that forgot something, and no answer
            screen.type(UP)
            screen.wait_for(f"› {shown}")
        for begun, whole in (("hunter", "hunter2"), ("giraffe", "giraffe77")):
            screen.type(CTRL_C + CTRL_R + begun)
            screen.wait_for(f"I-search backward: {begun}")
            assert not any(whole in row for row in screen.screen())
        screen.type(CTRL_C)
        screen.wait_gone("I-search")
        screen.do("/cost", "Since ever, main: 2 turns")
        turns = [row for row in screen.screen() if row.startswith("main ")][:2]
        assert [("good morning" in row, "[forgotten]" in row) for row in turns] == [
            (True, False),
            (False, True),
        ]
        screen.do("/show", "No call was made in this session.")
        assert not any("hunter2" in row for row in screen.screen())
        screen.do("hello?", "Hello again.", "∙ 1 step")
        with lock_agent(prepare_state_dir(tmp_path), "other"):
            forget(screen, "turn last", "To forget: turn 3 of main (“hello?”)")
            screen.wait_for("✓ forgot turn 3 of main")
        for left in ("my password is [forgotten] do not tell", "good morning"):
            screen.do("/pop", f"removed from the context: {left}")
        screen.do("/undo", NOTHING_LEFT)
        assert leave(screen) == 0
    state = [path for path in (tmp_path / ".knapper").rglob("*") if path.is_file()]
    assert [path.name for path in state if b"hunter2" in path.read_bytes().lower()] == []


@pytest.mark.slow
def test_the_lines_that_go_and_the_nearest_that_stay_are_shown_and_what_went_is_not_sent_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "one.py").write_text(
        'def one() -> int:\n    """Return one."""\n    return 1\n'
    )
    calls = Ask(Wanted("one")), Say("One.")
    with prompt(
        [Say("Noted."), *calls, *calls, Say("Noted."), Say("Hi.")], tmp_path, columns=110
    ) as (screen, _):
        screen.do("By the way: I like tea\x1b\rand long walks", "∙ 1 step")
        screen.do("/memory edit human Likes tea.", "reads now")
        stays = "the block human still says: Likes tea."
        screen.do("/forget I like tea", "user: By the way: I like tea", stays)
        assert "long walks" not in screen.scrolled().split("To forget:")[1]
        agree_in_full(screen)
        screen.wait_for("✓ forgot “I like tea”")
        screen.wait_count(stays, 2)
        screen.do("the word is zebra", "∙ 2 steps")
        forget(screen, "zebra")
        screen.wait_for("✓ forgot “zebra”")
        screen.do("again", "∙ 2 steps")
        screen.do("/show 1", "Type /show 2 … /show 2. /forget dropped those before.")
        screen.do("/show 2", "[2] one · rows 1-")
        screen.type("q")
        screen.wait_gone("[2] one · rows 1-")
        screen.do(
            "\x1b\r".join(f"{'x' * 150} giraffe {at} {'y' * 150}" for at in range(12)), "∙ 1 step"
        )
        screen.do("/forget giraffe", "The first lines to remove:")
        assert len(re.findall(r"giraffe\s+\d", screen.scrolled().rsplit("To forget:", 1)[1])) == 8
        screen.answer("n", "Nothing was forgotten.")
        screen.do("this is Zoltan", "∙ 1 step")
        forget(screen, "message last", "To forget: message")
        screen.wait_for("✓ forgot message")
        screen.do("/retry", "Part of the last message was forgotten, so it is not sent again.")
        assert leave(screen) == 0


def test_what_was_typed_to_the_debugger_is_forgotten_with_the_rest(tmp_path: Path) -> None:
    typed = prepare_state_dir(tmp_path) / "debug_history"
    typed.write_text(
        "\n# 2026-01-02 10:00:00.000000\n+p 'zoltan'\n\n# 2026-01-02 10:01:00.000000\n+p 1\n"
    )
    done = knapper("memory", "forget", "Zoltan", "-y", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert typed.read_text().strip() == "# 2026-01-02 10:01:00.000000\n+p 1"
