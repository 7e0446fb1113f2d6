"""A model uses a function's history in a turn: inspect, roll back, add an example, settle a candidate."""

from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Step, Wanted
from tests.kit.desk import VOWELS, Desk, answers

NAME = {"function_name": "count_vowels"}
CREATE = Ask(
    Wanted("create_function", {**NAME, "function_code_with_docstring": VOWELS, "reason": "asked"})
)
FLAWED = VOWELS.replace("    5\n", "    4\n")
BROKEN = {**NAME, "changes": [{"old_text": "return sum(", "new_text": "return 1 + sum("}]}


async def ask(at_desk: OpenDesk, *calls: Step) -> tuple[list[str], Desk]:
    desk = await at_desk([*calls, Say("Done.")])
    return answers(await desk.say("Go.")), desk


async def test_a_history_tells_who_did_what_why_and_how_to_go_back(at_desk: OpenDesk) -> None:
    edit = Ask(
        Wanted(
            "edit_function",
            {
                **NAME,
                "changes": [{"old_text": "Count the", "new_text": "Number the"}],
                "reason": "clearer",
            },
        )
    )
    (_, _, told), _ = await ask(at_desk, CREATE, edit, Ask(Wanted("function_history", NAME)))
    newest, oldest = [line for line in told.splitlines() if line.startswith("- ")]
    assert "2 (" in newest
    assert "the current one: changed" in newest
    assert "by agent main (scripted), +1 -1 lines. Why: clearer" in newest
    assert "created" in oldest
    assert "Why: asked" in oldest
    assert "rollback_function(function_name='count_vowels')" in told


async def test_what_is_asked_of_a_functions_past_is_answered_with_what_there_is(
    at_desk: OpenDesk,
) -> None:
    example = 'count_vowels("aha")'
    keeps = f"`count_vowels` keeps the example `{example}` now, in functions/grown.py"
    asked: list[tuple[str, dict[str, str], str]] = [
        ("rollback_function", {**NAME, "version": "7"}, "has no version `7`. Its versions: 1 ("),
        ("rollback_function", NAME, "no version before the current one"),
        ("function_history", {"function_name": "no_such"}, "There is no function"),
        ("add_example", {**NAME, "call": example, "expected": "3"}, "returned `2`"),
        ("add_example", {**NAME, "call": example, "expected": "2"}, keeps),
    ]
    calls = [Ask(Wanted(name, arguments)) for name, arguments, _ in asked]
    (_, *told), _ = await ask(at_desk, CREATE, *calls)
    assert [says in answer for (_, _, says), answer in zip(asked, told, strict=True)] == [
        True
    ] * 5, told


async def test_a_change_that_drops_an_example_goes_once_a_person_agrees(at_desk: OpenDesk) -> None:
    confirm = {**NAME, "reason": "it counts from one now"}
    steps: list[Step] = [
        CREATE,
        Ask(Wanted("edit_function", BROKEN)),
        Ask(Wanted("confirm_function", NAME)),
    ]
    steps += [Ask(Wanted("confirm_function", confirm)), Say("It waits for you.")]
    (_, edited, refused, alone), desk = await ask(at_desk, *steps)
    assert edited.splitlines()[-1].endswith(
        "were there before: to change it, confirm with a `reason`, and a person decides."
    )
    assert '`count_vowels("queueing")` → `5`, now `6`' in refused
    assert "confirm_function(function_name='count_vowels', reason=…)" in refused
    assert "a person decides, if asked, or by `functions confirm count_vowels`" in alone
    assert (await desk.workspace.functions.confirm("count_vowels")).admitted


async def test_a_result_that_was_confirmed_is_marked_wherever_the_function_is_looked_at(
    at_desk: OpenDesk,
) -> None:
    create = Ask(Wanted("create_function", {**NAME, "function_code_with_docstring": FLAWED}))
    looks = [Ask(Wanted(name, NAME)) for name in ("introspect_function", "function_history")]
    (_, _, *shown), desk = await ask(at_desk, create, Ask(Wanted("confirm_function", NAME)), *looks)
    marked = 'Taken as they came back, not as predicted: `count_vowels("queueing")`.'
    assert [marked in text for text in shown] == [True, True]
    assert '>>> count_vowels("queueing")\n    5' in (desk.functions / "grown.py").read_text()


async def test_where_no_other_text_was_there_no_way_back_is_offered(at_desk: OpenDesk) -> None:
    steps = [CREATE, Ask(Wanted("introspect_function", NAME)), Ask(Wanted("delete_function", NAME))]
    steps += [Ask(Wanted("rollback_function", NAME)), Ask(Wanted("function_history", NAME))]
    (_, open_, *_, told), _ = await ask(at_desk, *steps)
    assert "1 version of its module is kept." in open_
    assert told.splitlines()[-1] == "There is no other text of it to go back to."
