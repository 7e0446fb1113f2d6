"""A function and what uses it are changed in one reply, in any order: they are judged together, by their last texts."""

from collections.abc import Mapping

import pytest

from agent_core.access.grants import Decision, Question
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import Desk
from tests.kit.sources import function_text

TAXED = function_text(
    "taxed(cents: int) -> int",
    "Add the tax of ten percent to a price.\n\nArgs:\n    cents: The price.",
    "return cents * 110 // 100",
    "taxed(100) → 110",
    "taxed(250) → 275",
)
INVOICE = function_text(
    "invoice(prices: list[int]) -> int",
    "Add up prices with their taxes.\n\nArgs:\n    prices: The prices.",
    "return sum(taxed(price) for price in prices)",
    "invoice([100, 250]) → 385",
    "invoice([]) → 0",
)
LETTER = function_text(
    "letter(prices: list[int]) -> str",
    "Write the sentence of a letter about an invoice.\n\nArgs:\n    prices: The prices.",
    'return f"Please pay {invoice(prices)} cents."',
    "letter([100, 250]) → 'Please pay 385 cents.'",
    "letter([]) → 'Please pay 0 cents.'",
)


def edited(name: str, *places: str) -> Wanted:
    """Return a call that changes places, each written as the old text, an arrow and the new one."""
    changes = [
        dict(zip(("old_text", "new_text"), place.split(" => "), strict=True)) for place in places
    ]
    return Wanted(
        "edit_function",
        {"function_name": name, "changes": changes, "reason": "the law has changed"},
    )


def made(name: str, code: str) -> Wanted:
    return Wanted("create_function", {"function_name": name, "function_code_with_docstring": code})


def deleted(name: str) -> Wanted:
    return Wanted("delete_function", {"function_name": name})


MORE_TAX = edited(
    "taxed", "ten percent => twenty percent", "110 // => 120 //", "    110 =>     120", "275 => 300"
)
MORE_DUE = edited("invoice", "385 => 420", "with their taxes => with their new taxes")
MORE_ASKED = edited("letter", "385 => 420", "about an invoice => about a new invoice")
BY_RATE = edited(
    "taxed",
    "cents: int => cents: int, percent: int",
    "of ten percent to => to",
    "cents: The price. => cents: The price.\n        percent: The tax.",
    "cents * 110 => cents * (100 + percent)",
    "taxed(100) => taxed(100, 10)",
    "taxed(250) => taxed(250, 10)",
)
AT_TEN = edited("invoice", "taxed(price) => taxed(price, 10)")
WITHOUT = edited("invoice", "sum(taxed(price) for price in prices) => sum(prices) * 110 // 100")
MISTAKEN = edited("invoice", "385 => 421")


async def opened(
    at_desk: OpenDesk, *calls: Wanted, answer: str = "yes"
) -> tuple[Desk, list[Question]]:
    """Open a desk whose model makes these calls in one reply, with the questions that a person answers."""
    desk, asked = (
        await at_desk([Ask(*calls), Repeat(Say("So."))], model__context_tokens=64_000),
        list[Question](),
    )

    async def approver(question: Question) -> Decision:
        asked.append(question)
        return Decision("yes" if answer == "yes" else "no", by="human")

    desk.workspace.functions.granting.approver = approver
    await desk.save("shop.py", f"{TAXED}\n\n{INVOICE}\n\n{LETTER}")
    return desk, asked


async def told_by(desk: Desk) -> list[str]:
    """Run the turn, and return the answers in the order of the calls, as the model read them."""
    await desk.say("Change it.")
    return list(desk.model.requests[1].answers)


async def standings(desk: Desk) -> Mapping[str, str]:
    listed = await desk.workspace.functions.list(module="shop")
    return {row.name: row.standing for row in listed.functions}


TOGETHER = {
    "a function and its caller": (MORE_TAX, MORE_DUE, MORE_ASKED),
    "the caller first": (MORE_DUE, MORE_TAX, MORE_ASKED),
    "the caller's caller first": (MORE_ASKED, MORE_DUE, MORE_TAX),
    "the function between them last": (MORE_ASKED, MORE_TAX, MORE_DUE),
    "a parameter that the caller gives": (BY_RATE, AT_TEN),
    "a parameter that the caller already gives": (AT_TEN, BY_RATE),
    "the caller stops using what is deleted": (WITHOUT, deleted("taxed")),
    "what is deleted is used until then": (deleted("taxed"), WITHOUT),
    "the callers are deleted": (BY_RATE, deleted("letter"), deleted("invoice")),
    "the callers are deleted from the bottom": (
        deleted("taxed"),
        deleted("invoice"),
        deleted("letter"),
    ),
}


@pytest.mark.parametrize("calls", TOGETHER.values(), ids=TOGETHER)
async def test_what_is_changed_together_is_judged_together_in_any_order(
    at_desk: OpenDesk, calls: tuple[Wanted, ...]
) -> None:
    desk, asked = await opened(at_desk, *calls)
    told = await told_by(desk)
    for wanted, text in zip(calls, told, strict=True):
        assert isinstance(wanted.arguments, dict)
        assert text.startswith(f"`{wanted.arguments['function_name']}` was "), told
        assert "was not" not in text, told
    assert "draft" not in (await standings(desk)).values()
    assert len({question.id for question in asked}) == len(asked) <= len(calls)


async def test_new_functions_are_made_in_any_order(at_desk: OpenDesk) -> None:
    double = function_text(
        "doubled(cents: int) -> int",
        "Charge a price twice.\n\nArgs:\n    cents: The price.",
        "return cents * 2",
        "doubled(3) → 6",
        "doubled(5) → 10",
    )
    pair = function_text(
        "pair_price(cents: int) -> str",
        "Say what a pair costs.\n\nArgs:\n    cents: The price of one.",
        'return f"{doubled(cents)} cents a pair"',
        "pair_price(3) → '6 cents a pair'",
        "pair_price(5) → '10 cents a pair'",
    )
    program = Wanted("run_program", {"code": "pair_price(4)"})
    desk, _ = await opened(at_desk, made("pair_price", pair), made("doubled", double), program)
    told = await told_by(desk)
    assert "8 cents a pair" in told[-1], told


async def test_what_follows_in_the_reply_runs_the_last_versions(at_desk: OpenDesk) -> None:
    program = Wanted("run_program", {"code": "invoice([100])"})
    desk, _ = await opened(at_desk, MORE_DUE, MORE_TAX, edited("letter", "385 => 420"), program)
    told = await told_by(desk)
    assert told[-1].startswith("120"), told


async def test_a_caller_whose_change_is_refused_is_a_draft_and_the_answer_says_so(
    at_desk: OpenDesk,
) -> None:
    desk, asked = await opened(at_desk, MORE_TAX, MISTAKEN, MORE_ASKED)
    tax, due, letter = await told_by(desk)
    assert "`taxed` was changed" in tax
    assert "Until its own code fits, `invoice` is a draft: `invoice([100, 250])` gave" in tax
    assert (
        "`invoice` stands as it was, and is a draft now; with the new `taxed`: `invoice([100, 250])` gave"
        in due
    )
    assert "was changed" in letter
    assert await standings(desk) == {"taxed": "trial", "invoice": "draft", "letter": "trial"}
    assert [question.function for question in asked] == [
        "taxed",
        "letter",
    ]  # nobody is asked about what is refused


async def test_a_caller_that_only_one_change_breaks_holds_it_back_as_ever(
    at_desk: OpenDesk,
) -> None:
    desk, asked = await opened(
        at_desk, edited("taxed", "110 // => 120 //", "    110 =>     120", "275 => 300")
    )
    (text,) = await told_by(desk)
    assert "[breaks-caller]" in text
    assert asked == []
    assert "draft" not in (await standings(desk)).values()


async def test_what_only_uses_a_caller_must_hold_once_the_caller_has_changed(
    at_desk: OpenDesk,
) -> None:
    desk, _ = await opened(at_desk, MORE_TAX, MORE_DUE)
    tax, due = await told_by(desk)
    assert "`taxed` was changed" in tax
    assert "`letter`" in tax  # broken until the caller between them fits
    assert "[breaks-caller]" in due
    assert "`letter([100, 250])` gave" in due
    assert (await standings(desk))["invoice"] == "draft"


async def test_a_no_is_asked_once_and_nothing_is_tried_again(at_desk: OpenDesk) -> None:
    desk, asked = await opened(at_desk, MORE_DUE, MORE_TAX, MORE_ASKED, answer="no")
    told = await told_by(desk)
    assert not any("was changed" in text for text in told), told
    assert [question.function for question in asked] == ["taxed"]
    assert "draft" not in (await standings(desk)).values()


async def test_a_change_that_is_made_again_in_the_reply_is_judged_by_its_last_text(
    at_desk: OpenDesk,
) -> None:
    better = edited("invoice", "421 => 420")
    desk, asked = await opened(at_desk, MISTAKEN, better, MORE_TAX, MORE_ASKED)
    told = await told_by(desk)
    assert "was not changed" in told[0] or "not changed yet" in told[0]
    assert all("was changed" in text for text in told[1:]), told
    assert len(asked) == 3
