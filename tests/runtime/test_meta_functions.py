"""How the model inspects, proves, selects and reverts its functions; each result says what to do next."""

import pytest

from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import VOWELS, Desk, another, answers


async def ask(at_desk: OpenDesk, *calls: Wanted, files: dict[str, str] | None = None) -> tuple[list[str], Desk]:
    """Return the results of some calls, each made in a separate step."""
    desk = await at_desk([*(Ask(call) for call in calls), Repeat(Say("Done."))])
    for name, text in (files or {"letters.py": VOWELS}).items():
        desk.put(name, text)
    await desk.workspace.functions.reload()
    return answers(await desk.say("Go.")), desk


USER_OF_VOWELS = '''\
from functions.letters import count_vowels


def has_vowels(text: str) -> bool:
    """Tell whether a text has vowels.

    Args:
        text: The text.
    """
    return count_vowels(text) > 0
'''


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        pytest.param("list_functions", {}, "- count_vowels (letters, trial, computes only): Count the", id="lists"),
        pytest.param("list_functions", {"pattern": "nothing"}, "No function serves this", id="lists-nothing"),
        pytest.param("introspect_function", {"function_name": "count_vowels"}, "def count_vowels", id="introspects"),
        pytest.param("test_function", {"function_name": "count_vowels"}, "2 of 2 examples hold", id="runs-examples"),
        pytest.param(
            "test_function",
            {"function_name": "count_vowels", "arguments": {"text": "aha"}},
            "returned in",
            id="runs-one-call",
        ),
        pytest.param("add_function", {"function_name": "count_vowels"}, "always be shown", id="keeps"),
        pytest.param("remove_function", {"function_name": "count_vowels"}, "still exists", id="releases"),
        pytest.param("reload_functions", {}, "Nothing changed", id="reloads"),
        pytest.param(
            "confirm_function", {"function_name": "count_vowels"}, "No candidate named", id="confirms-nothing"
        ),
        pytest.param("introspect_function", {"function_name": "no_such"}, "There is no function", id="unknown"),
        pytest.param("delete_function", {"function_name": "no_such"}, "There is no function", id="deletes-unknown"),
        pytest.param(
            "create_function",
            {"function_name": "count_vowels", "function_code_with_docstring": VOWELS},
            "exists already",
            id="makes-what-is-there",
        ),
    ],
)
async def test_a_meta_function_answers_in_a_text_for_a_model(
    at_desk: OpenDesk, name: str, arguments: dict[str, object], says: str
) -> None:
    (answer,), _ = await ask(at_desk, Wanted(name, arguments))
    assert says in answer


async def test_a_function_that_others_use_is_not_deleted_and_they_are_named(at_desk: OpenDesk) -> None:
    files = {"letters.py": VOWELS, "more.py": USER_OF_VOWELS}
    (answer,), desk = await ask(at_desk, Wanted("delete_function", {"function_name": "count_vowels"}), files=files)
    assert "has_vowels" in answer
    assert "count_vowels" in desk.workspace.functions.names()


async def test_an_edit_that_finds_its_text_twice_shows_the_source_and_changes_nothing(at_desk: OpenDesk) -> None:
    edit = {"function_name": "count_vowels", "old_text": "count_vowels", "new_text": "x"}
    (answer,), desk = await ask(at_desk, Wanted("edit_function", edit))
    assert "is in it 3 times" in answer
    assert (desk.functions / "letters.py").read_text() == VOWELS


async def test_a_function_is_replaced_in_its_place_and_the_new_one_is_called(at_desk: OpenDesk) -> None:
    better = (
        VOWELS.replace('"aeiou"', '"aeiouäöü"').replace("    5\n", "    5\n").replace("e, i, o or u", "e, i, o, u or ü")
    )
    replace = {"function_name": "count_vowels", "code": better}
    call = Wanted("count_vowels", {"text": "grün"})
    (changed, value), _ = await ask(at_desk, Wanted("replace_function", replace), call)
    assert "was changed in functions/letters.py" in changed
    assert value == "1"


async def test_a_refused_edit_keeps_the_function_as_it_was(at_desk: OpenDesk) -> None:
    edit = {"function_name": "count_vowels", "old_text": "return sum(", "new_text": "return 1 + sum("}
    (refused, value), _ = await ask(at_desk, Wanted("edit_function", edit), Wanted("count_vowels", {"text": "aha"}))
    assert "is not changed yet" in refused
    assert "replace_function" in refused
    assert value == "2"


@pytest.mark.parametrize("module", ["../x", "a/b", ".hidden", "class", "web."])
async def test_a_module_name_that_leaves_the_folder_is_refused(at_desk: OpenDesk, module: str) -> None:
    given = {"function_name": "count_more", "module_name": module}
    code = VOWELS.replace("count_vowels", "count_more")
    (answer,), desk = await ask(at_desk, Wanted("create_function", {**given, "function_code_with_docstring": code}))
    assert "was not made" in answer
    assert sorted(path.name for path in desk.functions.rglob("*.py")) == ["letters.py"]


async def test_a_module_may_be_named_as_its_file(at_desk: OpenDesk) -> None:
    given = {"function_name": "count_more", "module_name": "x.py"}
    code = another("count_more")
    _, desk = await ask(at_desk, Wanted("create_function", {**given, "function_code_with_docstring": code}))
    assert (desk.functions / "x.py").exists()


@pytest.mark.parametrize("name", ["create_function", "class", "print", "with-dash", "naïve", "x" * 65])
async def test_a_name_that_cannot_be_a_functions_is_refused(at_desk: OpenDesk, name: str) -> None:
    code = VOWELS.replace("count_vowels", name)
    (answer,), desk = await ask(
        at_desk, Wanted("create_function", {"function_name": name, "function_code_with_docstring": code})
    )
    assert "was not made" in answer
    assert desk.workspace.functions.names() == ["count_vowels"]


async def test_the_own_set_is_kept_over_a_restart(at_desk: OpenDesk) -> None:
    _, desk = await ask(at_desk, Wanted("add_function", {"function_name": "count_vowels"}))
    assert desk.agent.own_set == frozenset({"count_vowels"})


async def test_what_cannot_be_confirmed_is_told_what_else_is_in_the_way(at_desk: OpenDesk) -> None:
    create = {"function_name": "hollow", "function_code_with_docstring": "def hollow(x: int) -> int:\n    pass\n"}
    confirm = Wanted("confirm_function", {"function_name": "hollow"})
    (_, answer), desk = await ask(at_desk, Wanted("create_function", create), confirm)
    assert "cannot be confirmed" in answer
    assert "You sent the same code" not in answer
    assert desk.workspace.functions.names() == ["count_vowels"]
