"""How the model inspects, proves, selects and reverts its functions; each result says what to do next."""

from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import SHIPPING, VOWELS, Desk, another, answers


async def ask(
    at_desk: OpenDesk, *calls: Wanted, files: dict[str, str] | None = None
) -> tuple[list[str], Desk]:
    """Return the results of some calls, each made in a separate step."""
    desk = await at_desk([*(Ask(call) for call in calls), Repeat(Say("Done."))])
    for name, text in (files or {"letters.py": VOWELS}).items():
        desk.put(name, text)
    await desk.workspace.functions.reload()
    return answers(await desk.say("Go.")), desk


async def test_each_meta_function_answers_in_a_text_for_a_model(at_desk: OpenDesk) -> None:
    of_vowels: dict[str, object] = {"function_name": "count_vowels"}
    rows: list[tuple[str, dict[str, object], str]] = [
        (
            "list_functions",
            {},
            "- count_vowels (letters, trial, computes only; never called): Count the",
        ),
        ("introspect_function", of_vowels, "def count_vowels"),
        ("test_function", of_vowels, "2 of 2 examples hold"),
        ("test_function", {**of_vowels, "arguments": {"text": "aha"}}, "returned in"),
        ("add_function", of_vowels, "always be shown"),
        ("remove_function", of_vowels, "still exists"),
        ("reload_functions", {}, "Nothing changed"),
        ("confirm_function", of_vowels, "No candidate named"),
        ("introspect_function", {"function_name": "no_such"}, "There is no function"),
        (
            "create_function",
            {**of_vowels, "function_code_with_docstring": VOWELS},
            "exists already",
        ),
        ("add_function", of_vowels, "always be shown"),
    ]
    told, desk = await ask(at_desk, *(Wanted(name, arguments) for name, arguments, _ in rows))
    for (name, arguments, says), answer in zip(rows, told, strict=True):
        assert says in answer, (name, arguments)
    assert desk.agent.session.own_set.names == frozenset({"count_vowels"})


async def test_a_search_among_the_programs_own_functions_never_answers_with_others(
    at_desk: OpenDesk,
) -> None:
    wanted = [
        {"module": "meta"},
        {"module": "meta", "pattern": "export"},
        {"module": "memory", "pattern": "sum vowels"},
    ]
    told, _ = await ask(at_desk, *(Wanted("list_functions", arguments) for arguments in wanted))
    assert "- create_function (meta)" in told[0]
    assert "knapper --help" in told[1]
    assert "functions export DIR" in told[1]
    assert "`pip install ./DIR`, then `from DIR import NAME`" in told[1]
    assert "create_function" in told[1]
    assert "conversation_search" in told[2]
    assert not any("count_vowels" in text for text in told)


async def test_names_of_modules_and_functions_that_cannot_be_are_refused(at_desk: OpenDesk) -> None:
    refused = [("count_more", module) for module in ("../x", ".hidden", "class")]
    refused += [(name, "letters") for name in ("create_function", "print", "naïve", "x" * 65)]
    calls = [
        Wanted(
            "create_function",
            {"function_name": name, "module_name": module, "function_code_with_docstring": code},
        )
        for name, module in refused
        for code in [VOWELS.replace("count_vowels", name)]
    ]
    named = {"function_name": "count_more", "module_name": "x.py"}  # as its file
    made = Wanted(
        "create_function", {**named, "function_code_with_docstring": another("count_more")}
    )
    _, desk = await ask(at_desk, *calls, made)
    assert sorted(path.name for path in desk.functions.rglob("*.py")) == ["letters.py", "x.py"]
    assert sorted(desk.workspace.functions.names()) == ["count_more", "count_vowels"]


USER_OF_VOWELS = '''\
from functions.letters import count_vowels


def has_vowels(text: str) -> bool:
    """Tell whether a text has vowels.

    Args:
        text: The text.
    """
    return count_vowels(text) > 0
'''


async def test_a_function_that_others_use_is_not_deleted_and_they_are_named(
    at_desk: OpenDesk,
) -> None:
    files = {"letters.py": VOWELS, "more.py": USER_OF_VOWELS}
    (answer,), desk = await ask(
        at_desk, Wanted("delete_function", {"function_name": "count_vowels"}), files=files
    )
    assert "has_vowels" in answer
    assert "count_vowels" in desk.workspace.functions.names()


async def test_several_functions_are_introspected_at_once(at_desk: OpenDesk) -> None:
    asked = [
        "count_vowels, shipping",
        "count_vowels,shipping,",
        "count_vowels, nothing",
        "read_on, count_vowels",
    ]
    asked += [
        "count_vowels, count_vowels",
        " shipping ",
        ",".join(["count_vowels", *(f"f{number}" for number in range(30))]),
        "nothing",
    ]
    looks = [Ask(Wanted("introspect_function", {"function_name": names})) for names in asked]
    desk = await at_desk([*looks, Repeat(Say("So."))])
    await desk.save("letters.py", VOWELS)
    await desk.save("parcels.py", SHIPPING)
    two, also_two, one_unknown, with_own, once, one, many, unknown = answers(
        await desk.say("Look.")
    )
    assert two == also_two
    assert two.index("count_vowels(text) -> int: Count the vowels in a text.") < two.index(
        "return sum(letter"
    )
    assert (
        two.index("return sum(letter")
        < two.index("Charge a customer")
        < two.index("if weight <= 10")
    )
    assert "There is no function `nothing`" in one_unknown
    assert "return sum(letter" in one_unknown
    assert "is part of the program" in with_own
    assert once.count("Schema:") == one.count("Schema:") == 1
    assert "return sum(letter" in many
    assert "There is no function `f10`" in many
    assert "There is no function `f11`" not in many
    assert "Not shown, because 12 are shown at once: `f11`, `f12`, " in many
    assert many.endswith("`f22` and 7 more.")
    assert "There is no function `nothing`" in unknown


async def test_a_function_is_introspected_with_the_imports_of_its_module_that_it_uses(
    at_desk: OpenDesk,
) -> None:
    uses = (
        "import csv, io\nimport json\nfrom math import floor as down, sqrt\n"
        "if True:\n    import re\n\n\n" + VOWELS
    )
    code = uses.replace(
        "    return ", "    rows = [*csv.reader(io.StringIO(str(down(2))))]\n    return "
    )
    looks = Wanted("introspect_function", {"function_name": "count_vowels, shipping"})
    desk = await at_desk([Ask(looks), Repeat(Say("So."))])
    await desk.save("letters.py", code)
    await desk.save("parcels.py", SHIPPING)
    (text,) = answers(await desk.say("Look."))
    with_imports, without = text.split("`shipping` in")
    assert (
        "Imported in its module: import csv, io; from math import floor as down, sqrt."
        in with_imports
    )
    assert "import json" not in text
    assert "Imported in" not in without
