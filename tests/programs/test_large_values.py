"""Results and arguments that are too large for a conversation pass whole between functions, and to programs."""

import hashlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from agent_core.runtime.session import GO_ON
from agent_core.storage import ValueFiles
from agent_core.storage.value_files import FOLDER
from agent_core.workspace.forgetting import ForgetRequest, Forgetting
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted, scripted
from tests.kit.crash import kill_after
from tests.kit.desk import Desk, answers
from tests.kit.sources import function_text
from tests.kit.waiting import until_it_is

from .support import lay_out, lines
from .test_programs_that_are_cut_off import ended, journal, turn

MAKE = function_text(
    "orders(count: int) -> list[dict]",
    "List so many orders.\n\nArgs:\n    count: How many.",
    'return [{"id": f"A-{n:06}", "cents": n, "name": "Müller & Söhne, Straße 5, 12345 Berlin"} for n in range(count)]',
)
SUM = function_text(
    "cents_of(rows: list[dict]) -> int",
    "Add up orders.\n\nArgs:\n    rows: The orders.",
    'return sum(row["cents"] for row in rows)',
)
PASS = function_text(
    "same(rows: list[dict], note: str = '') -> list[dict]",
    "Give orders back.\n\nArgs:\n    rows: The orders.\n    note: Anything.",
    "return rows",
)
INNER = function_text(
    "cents_inside(self, count: int) -> int",
    "Add up so many orders.\n\nArgs:\n    count: How many.",
    'rows = self.call("same", rows=self.call("orders", count=count))\nreturn self.call("cents_of", rows=rows)',
)
TEXT = function_text(
    "letters(count: int) -> str",
    "Give so many letters.\n\nArgs:\n    count: How many.",
    'return "x" * count',
)
FUNCTIONS = {
    "orders.py": MAKE,
    "sums.py": SUM,
    "passing.py": PASS,
    "inner.py": INNER,
    "letters.py": TEXT,
}
COUNT = 20_000  # 1.6 MiB
CENTS = sum(range(COUNT))


async def opened(at_desk: OpenDesk, *calls: Wanted, **flags: Any) -> Desk:
    """Return a desk whose model makes these calls, one per turn."""
    script = [step for call in calls for step in (Ask(call), Say("Done."))]
    desk = await at_desk([*script, Repeat(Say("Done."))], **flags)
    for name, text in FUNCTIONS.items():
        desk.put(name, text)
    await desk.workspace.functions.reload()
    return desk


async def told(desk: Desk, count: int) -> list[str]:
    """Take turns, and return what the model is told about their calls."""
    return [answer for _ in range(count) for answer in answers(await desk.say("Go."))]


def program(code: str) -> Wanted:
    """Return a call that runs a program."""
    return Wanted("run_program", {"code": code})


def value_files(desk: Desk) -> list[Path]:
    """Return the files of large values."""
    folder = desk.workspace.root / ".knapper" / FOLDER
    return sorted(folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(f"cents_of(orders({COUNT}))", id="from-function-to-function"),
        pytest.param(
            f"rows = orders({COUNT})\nrows.reverse()\ncents_of(rows=rows)", id="through-the-program"
        ),
        pytest.param(f"cents_inside({COUNT})", id="by-self-call"),
        pytest.param(f"sum(each(cents_of, each(orders, [{COUNT}, 1])))", id="in-each"),
        pytest.param(
            f"cents_of(same(same(orders({COUNT}), note='n' * 70_000)))", id="with-other-arguments"
        ),
    ],
)
async def test_a_large_result_passes_whole_to_the_next_function(
    at_desk: OpenDesk, code: str
) -> None:
    desk = await opened(at_desk, program(code))
    assert (await told(desk, 1))[0].splitlines()[0] == str(CENTS)


async def test_the_model_sees_what_a_large_result_is_and_pages_of_it(at_desk: OpenDesk) -> None:
    desk = await opened(at_desk, Wanted("orders", {"count": COUNT}))
    (first,) = await told(desk, 1)
    assert f"[A list with {COUNT:,} items, 1.6 MiB as JSON." in first
    assert '[{"id":"A-000000","cents":0,"name":"Müller' in first
    shown = str(desk.model.requests[-1].body["messages"][-1]["content"])
    assert "read_on(name=" in shown
    name = shown.rpartition("read_on(name='")[2].partition("'")[0]
    pages = [await desk.agent.read_on(name, page) for page in (1, 2, 3)]
    assert "A-000000" in pages[0]
    assert "A-000000" not in pages[1] + pages[2]
    whole = json.dumps([json.loads(MADE_ROW)], ensure_ascii=False, separators=(",", ":"))[1:-1]
    assert whole in pages[0] + pages[1] + pages[2]


MADE_ROW = '{"id":"A-000100","cents":100,"name":"Müller & Söhne, Straße 5, 12345 Berlin"}'


async def test_a_large_value_is_a_private_file_named_by_its_content(at_desk: OpenDesk) -> None:
    desk = await opened(at_desk, program(f"cents_of(same(orders({COUNT})))"))
    await told(desk, 1)
    (file,) = value_files(desk)  # the same value three times
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert file.name == hashlib.sha256(file.read_bytes()).hexdigest()
    assert len(json.loads(file.read_bytes())) == COUNT


async def test_an_entry_names_a_large_value_by_digest_size_and_type(at_desk: OpenDesk) -> None:
    desk = await opened(at_desk, Wanted("orders", {"count": COUNT}))
    await told(desk, 1)
    (file,) = value_files(desk)
    (row,) = await desk.workspace.store.history(desk.agent.name, kinds=("result",))
    facts = [file.name, file.stat().st_size, "list", COUNT]
    assert row.payload["detail"]["value"] == {"$": "large", "v": facts}
    assert len(json.dumps(row.payload)) < 30_000


async def test_a_limit_is_told_before_it_is_reached_and_with_the_way_around(
    at_desk: OpenDesk,
) -> None:
    codes = ["len(letters(1_200_000))", "len(letters(1_000_000))", "len(letters(2_200_000))"]
    calls = [*map(program, codes), Wanted("letters", {"count": 1_200_000})]
    desk = await opened(at_desk, *calls, **{"sandbox.value_mib": 2})
    near, small, beyond, direct = await told(desk, 4)
    for text in (near, direct):
        assert "takes 1.1 MiB of the 2.0 MiB that a value may take" in text
        assert "let one function read the data and sum it up" in text
    assert small.splitlines() == ["1000000"]
    assert "the result takes 2200002 bytes as JSON and may take 2097152" in beyond


async def test_arguments_of_the_model_are_told_when_they_are_near_their_limit(
    at_desk: OpenDesk,
) -> None:
    rows = [{"id": "x" * 600_000, "cents": 1}]
    desk = await opened(at_desk, Wanted("cents_of", {"rows": rows}))
    (text,) = await told(desk, 1)
    assert "of the 1,000,000 characters that you can send: pass a path" in text


async def test_values_of_a_program_up_to_four_mebibytes_are_kept_also_after_a_failure(
    at_desk: OpenDesk,
) -> None:
    codes = [
        "big = list(range(350_000))\nfew = 1\n1 / 0",
        "few + 1",
        "big.append(few)\nlen(big)",
        "huge = 'x' * (4 << 20)\nlen(big)",
        "[len(big), big[-1]]",
    ]
    desk = await opened(at_desk, *map(program, codes))
    failed, small, changed, huge, last = await told(desk, 5)
    assert "Kept for your next program: big (350000 items), few." in failed
    assert small == "2"  # nothing is new
    assert changed.splitlines() == [
        "350001",
        "Kept for your next program: big (350001 items).",
        "A value of more than 4.0 MiB is not kept: keep less of big (2.2 MiB).",
    ]
    assert "Not kept (above 4.0 MiB as JSON, 64 MiB in all, or 200 names): huge." in huge
    assert last == "[350001, 1]"


async def test_a_kept_value_that_is_gone_is_told_when_a_program_names_it(at_desk: OpenDesk) -> None:
    desk = await opened(
        at_desk, program("big = list(range(300_000))\nfew = 1"), program("few"), program("few, big")
    )
    await told(desk, 1)
    for file in value_files(desk):
        file.unlink()
    few, both = await told(desk, 2)
    assert few == "1"
    assert (
        "No longer kept (a value above 64 KiB stays for 7 days, on the machine that made it): big."
        in both
    )
    assert "name 'big' is not defined" in both


async def test_a_value_goes_a_week_after_its_last_use_and_the_oldest_when_there_are_too_many(
    at_desk: OpenDesk,
) -> None:
    desk = await opened(at_desk, *(program(f"len(letters({1_100_000 + n}))") for n in range(3)))
    await told(desk, 2)
    first, second = value_files(desk)
    week = time.time() - 8 * 86_400
    os.utime(first, (week, week))
    await told(desk, 1)
    assert first not in value_files(desk)
    files = ValueFiles(desk.workspace.root / ".knapper", most_bytes=2_300_000)
    hour = time.time() - 3_600
    os.utime(second, (hour, hour))
    writer = files.receive()
    await writer.write("1" * 1_150_000)
    large = await writer.finish("int", None)
    assert second not in value_files(desk)
    assert files.has(large.digest)


async def test_a_digest_in_the_arguments_of_a_model_is_text(at_desk: OpenDesk) -> None:
    rows = [
        {"id": f"A-{n:06}", "cents": n, "name": "Müller & Söhne, Straße 5, 12345 Berlin"}
        for n in range(COUNT)
    ]
    data = json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()
    forged = {"$": "large", "v": [hashlib.sha256(data).hexdigest(), len(data), "list", COUNT]}
    code = f"[same([{forged!r}]), same([{{'$': 'large', 'v': [1]}}])]"
    desk = await opened(
        at_desk, program(f"len(orders({COUNT}))"), Wanted("same", {"rows": [forged]}), program(code)
    )
    _, direct, inside = await told(desk, 3)
    assert [file.name for file in value_files(desk)] == [forged["v"][0]]
    assert json.loads(direct.splitlines()[0]) == [forged]
    assert json.loads(inside) == [[forged], [{"$": "large", "v": [1]}]]


@pytest.mark.parametrize(("is_gone", "calls"), [(False, 1), (True, 2)])
async def test_a_program_that_was_cut_off_gets_a_large_result_again(
    tmp_path: Path, is_gone: bool, calls: int
) -> None:
    lay_out(tmp_path)
    for name, text in FUNCTIONS.items():
        (tmp_path / "functions" / name).write_text(text, "utf-8")
    code = f"import time\nrows = orders({COUNT})\nnote('z')\ntime.sleep(2)\ncents_of(rows)"
    with scripted([Ask(program(code)), Repeat(Say("Done."))]) as model:
        first = turn(tmp_path, model, "Go.")
        await until_it_is(lambda: lines(tmp_path))
        kill_after(first, 0.5)
        if is_gone:
            shutil.rmtree(tmp_path / ".knapper" / FOLDER)
        (text,) = ended(turn(tmp_path, model, GO_ON))
    assert str(CENTS) in text.splitlines()
    assert lines(tmp_path) == ["z"]
    made = [
        row
        for row in await journal(tmp_path)
        if row.kind == "inner_call" and row.payload["name"] == "orders"
    ]
    assert len(made) == calls


async def test_a_replay_gets_a_large_argument_from_its_file_and_says_when_it_is_gone(
    at_desk: OpenDesk,
) -> None:
    desk = await opened(at_desk, program(f"cents_of(orders({COUNT}))"))
    await told(desk, 1)
    replays = desk.workspace.functions.replays
    (call,) = [row.call for row in await replays.calls("cents_of")]
    assert (await replays.replay(call)).same
    for file in value_files(desk):
        file.unlink()
    again = await replays.replay(call)
    assert again.outcome.outcome == "refused"
    assert again.outcome.error is not None
    assert "is not kept here any longer" in again.outcome.error.message


async def test_forgetting_a_turn_or_a_text_removes_the_values_that_only_it_had(
    at_desk: OpenDesk,
) -> None:
    codes = [f"len(orders({COUNT}))", f"len(letters({1_100_000}))", f"len(orders({COUNT}))"]
    desk = await opened(at_desk, *map(program, codes))
    await told(desk, 3)
    store, root = desk.workspace.store, desk.workspace.root
    forgetting = Forgetting(root, root / ".knapper", store)
    orders, letters = sorted(
        value_files(desk), key=lambda file: file.read_bytes()[:1], reverse=True
    )

    async def forget(request: ForgetRequest) -> dict[str, int]:
        return (await forgetting.carry_out(await forgetting.order(request, desk.agent.name))).places

    assert "large values" not in await forget(ForgetRequest(turn="1"))  # a later turn names it, too
    assert (await forget(ForgetRequest(turn="2")))["large values"] == 1
    assert value_files(desk) == [orders]
    assert not letters.exists()
    assert (await forget(ForgetRequest("Straße 5")))["large values"] == 1
    assert value_files(desk) == []
