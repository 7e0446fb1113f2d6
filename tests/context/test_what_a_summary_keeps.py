"""The program ensures that a summary keeps what a program can recognize, whatever the model wrote."""

from agent_core.base.messages import Assistant, Call, Message, User
from agent_core.context import History, Summary
from agent_core.context.compaction import CompactionOrder, Sentence, lost, sentences, summarize

ORDER = CompactionOrder(tail=40, chars=700, material=4_000)
SAID: tuple[Message, ...] = (
    User("My sister is called Brunhilde. She was born in 1987."),
    Assistant("Noted.", (Call("c1", "count_vowels", "{}"),)),
    User("The gate is `K-17`, and the weather is fine; well, more or less."),
    *(Assistant("Some words on wind and clouds, and so on, and on. " * 4) for _ in range(6)),
    User("And what now?"),
)


def history_of(*messages: Message) -> History:
    history = History()
    for seq, message in enumerate(messages, 1):
        history.add("turn", [message], seq)
    return history


def texts(found: list[Sentence]) -> list[str]:
    return [each.text for each in found]


async def summed_up(
    answer: str, history: History, order: CompactionOrder = ORDER
) -> tuple[Summary, list[tuple[str, str]]]:
    asked: list[tuple[str, str]] = []

    async def ask(told: str, material: str) -> str:
        asked.append((told, material))
        return answer

    made = await summarize(history, order, ask)
    assert made is not None
    return made[0], asked


async def test_numbers_names_and_functions_that_the_model_left_out_are_added() -> None:
    for kept in ["Brunhilde", "1987", "K-17", "count_vowels"]:
        summary, _ = await summed_up(
            "People and facts: there is a sister, and a gate.", history_of(*SAID)
        )
        assert summary.text.startswith("People and facts: there is a sister"), kept
        assert kept in summary.text, kept


async def test_what_the_model_kept_is_not_said_twice_in_the_summary() -> None:
    said = "People and facts: Brunhilde, born 1987. Open tasks: gate K-17. Functions: count_vowels. Noted: And, Some."
    summary, _ = await summed_up(said, history_of(*SAID))
    assert summary.text.count("Brunhilde") == summary.text.count("1987") == 1


async def test_where_the_model_gives_nothing_the_program_makes_an_extract() -> None:
    for answer in ["", "  \n", "no"]:
        summary, _ = await summed_up(answer, history_of(*SAID))
        assert all(word in summary.text for word in ("Brunhilde", "1987", "K-17")), answer
        assert len(summary.text) <= ORDER.chars, answer


async def test_the_summary_before_goes_into_the_next_one_and_is_counted() -> None:
    history = history_of(*SAID)
    history.compact(Summary("The boat is called Aurelia.", 40, 0))
    summary, asked = await summed_up(
        "What happened: a long talk about a boat, and the weather.", history
    )
    assert "The boat is called Aurelia." in asked[0][1]
    assert "Aurelia" in summary.text
    assert summary.covers == 40 + len(SAID) - 1


async def test_a_long_past_is_summed_up_in_parts_each_with_the_summary_so_far() -> None:
    history = history_of(*(User(f"Part {number}. " + "words " * 200) for number in range(20)))
    _, asked = await summed_up(
        "What happened: parts were read.", history, CompactionOrder(40, 700, 4_000)
    )
    assert len(asked) > 2
    assert all("What happened: parts were read." in material for _, material in asked[1:])


async def test_sparse_priming_asks_for_statements_instead_of_headings() -> None:
    summary, asked = await summed_up(
        "Anything of some length.", history_of(*SAID), CompactionOrder(40, 700, 4_000, "spr")
    )
    assert "sparse priming representation" in asked[0][0]
    assert "Open tasks:" not in asked[0][0]
    assert summary.style == "spr"


async def test_a_cut_inside_a_turn_keeps_what_the_user_asked_for_in_it() -> None:
    steps = [Assistant("Still looking. " * 20) for _ in range(5)]
    history = history_of(User("Find me the lost key of Fenella."), *steps)
    first, _ = await summed_up("What happened: the assistant looks for a thing.", history)
    assert (
        "The user's message that is being worked on: Find me the lost key of Fenella." in first.text
    )
    history.compact(first, len(history.items) - 1)
    history.add("turn", [Assistant("Still looking. " * 20)], 99)
    second, _ = await summed_up("What happened: it still looks.", history)
    assert (
        "The user's message that is being worked on: Find me the lost key of Fenella."
        in second.text
    )


def test_of_what_is_lost_the_sentences_with_most_in_them_come_first() -> None:
    said = [
        *sentences("Fine weather."),
        *sentences("Call Dagny at 555-0199 about Eskil."),
        *sentences("Maybe at 7."),
    ]
    assert texts(lost(said, "", 45)) == ["Call Dagny at 555-0199 about Eskil."]


async def test_what_the_user_said_stays_through_summaries_of_summaries_before_what_the_model_said() -> (
    None
):
    history = history_of(*SAID)
    for number in range(6):
        summary, _ = await summed_up("What happened: they talked of this and that.", history)
        history.compact(summary, len(history.items))
        told: list[Message] = [Assistant(f"Case {number} of {number + 70}. " * 3), User("Go on.")]
        for seq, said in enumerate(told * 4, 100 * number + 50):
            history.add(f"turn{number}", [said], seq)
    assert "user: She was born in 1987." in summary.text
    assert "user: My sister is called Brunhilde." in summary.text


def test_a_number_is_not_told_by_a_longer_one_that_holds_it() -> None:
    for said, longer, kept in [
        ("It was gate 7.", "There are 17 gates.", "There are 17 gates, and gate 7."),
        ("The fee is 3.50 euros.", "It was 13.50, or 3.509, euros.", "It was €3.50, not 13.50."),
        ("It takes 1/2 of it.", "It was on 1/2/2027.", "It takes 1/2, on 1/2/2027."),
    ]:
        assert texts(lost(sentences(said), longer, 100)) == [said]
        assert lost(sentences(said), kept, 100) == [], kept


async def test_what_is_hardly_longer_than_its_summary_is_not_sent_to_a_model() -> None:
    _, asked = await summed_up(
        "Anything.", history_of(User("Short."), Assistant("Yes."), User("Go on."))
    )
    assert asked == []
