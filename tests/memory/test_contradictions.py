"""What a new fact makes untrue: measured on pairs, told in a turn, and nothing else is pointed at."""

import pytest

from agent_core.base.events import CallAnswered
from agent_core.memory.classes import ChatMemory
from agent_core.memory.contradictions import contradicted
from agent_core.memory.edits import append
from benchmarks.contradictions import LANGUAGES, measured, pairs
from tests.conftest import OpenDesk
from tests.kit.desk import of
from tests.kit.steps import Ask, Expect, Say, Wanted, contains

BEST = "Alex and Mitua are also best friends of the user."


def _append(content: str) -> Wanted:
    return Wanted("core_memory_append", {"name": "human", "content": content})


DIALOGUE = {
    "my name is Bob": Ask(_append("The user's name is Bob.")),
    "I like cherry pie": Ask(_append("The user likes cherry pie.")),
    "my best friend is Alya": Ask(_append("The user's best friend is Alya.")),
    "Alex and Mitua are my best friends too": Ask(
        _append("Alex is a best friend of the user."), _append("Mitua is a best friend, and likes pie.")
    ),
    "Alex, I said": Ask(_append("Alex is a best friend of the user.")),
    "Mitua is not my best friend": Ask(_append("Mitua is not a best friend.")),
}


async def test_a_dialogue_of_corrections_glues_nothing_and_leads_nobody_to_erase_what_is_true(
    at_desk: OpenDesk,
) -> None:
    steps = [step for ask in DIALOGUE.values() for step in (ask, Say("All right."))]
    asked = Expect(Say("Alya and Alex."), contains("Mitua is not a best friend, and likes pie."))
    desk = await at_desk([*steps, asked])
    agent = await desk.workspace.agent("blank", memory=ChatMemory())
    answers = [
        [answer.text for answer in of(CallAnswered, [event async for event in agent.turn(message)])]
        for message in DIALOGUE
    ]
    assert all("no longer fits" not in text for texts in answers for text in texts)
    assert answers[4][0].startswith("Already there")
    assert [event async for event in agent.turn("Who are my best friends?")]
    assert agent.memory.blocks.memory["human"].lines == [
        "The user's name is Bob.",
        "The user likes cherry pie.",
        "The user's best friend is Alya.",
        "Alex is a best friend of the user.",
        "Mitua is not a best friend, and likes pie.",
    ]


@pytest.mark.parametrize(
    ("line", "fact", "corrected"),
    [
        pytest.param("Best friends: Alya, Alex, Mitua", "Mitua is not my best friend", "Best friends: Alya, Alex"),
        pytest.param("Likes apples, pears and plums", "The user doesn't like pears", "Likes apples, plums"),
        pytest.param("Speaks English and French", "The user does not speak French", "Speaks English"),
    ],
)
def test_a_list_that_names_what_is_denied_is_offered_without_it(line: str, fact: str, corrected: str) -> None:
    summary = append(["Name: Sam", line], fact).edit_summary
    assert f'Line 2 no longer fits, it says the opposite: "{line}"' in summary
    assert f'new_content "{corrected}"' in summary


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        pytest.param("The ticket is open.", "The ticket was closed.", id="a-result-in-the-passive"),
        pytest.param("The user's landlord is Mr. Kern.", "The new landlord is Ms. Baum.", id="a-name-with-a-title"),
        pytest.param("Has a membership at FitHouse", "The user let the FitHouse membership lapse", id="let-lapse"),
        pytest.param("Allergic to cats", "The user's cat allergy turned out to be a mistake", id="was-never-true"),
        pytest.param("The user owes Ben 50 euros.", "The user paid Ben back.", id="a-debt-that-is-paid"),
        pytest.param("The user saves for a car.", "The user bought the car.", id="a-wish-that-came-true"),
        pytest.param("The user has never been to Japan.", "The user visited Tokyo.", id="a-city-of-the-country"),
        pytest.param("Is on parental leave", "The user returned to work from parental leave", id="back-from-leave"),
        pytest.param("The user is on a low-carb diet.", "The user eats pasta again.", id="what-a-diet-leaves-out"),
        pytest.param("Jon has two kids.", "Jon had a third child.", id="an-ordinal"),
        pytest.param("The user's son Leo is 7.", "Leo had his eighth birthday.", id="a-birthday"),
        pytest.param("The user shares a flat with Tim.", "Tim moved out.", id="who-moved-out"),
        pytest.param("The user lives alone.", "Ben moved in with the user.", id="who-moved-in"),
        pytest.param("Plays tennis on Mondays", "Tennis is on Thursdays now.", id="another-day-of-the-week"),
        pytest.param("Drives a Golf", "The user sold the car and cycles now.", id="a-thing-by-its-kind"),
        pytest.param("The user has braces.", "The braces were taken off.", id="what-was-taken-off"),
        pytest.param("Wears glasses", "The user needs no glasses any more.", id="what-is-needed-no-more"),
        pytest.param("The user is looking for a job.", "The user starts at Bosch on Monday.", id="what-was-sought"),
        pytest.param("The user shares an office with Tom.", "The user has an office of her own now.", id="of-ones-own"),
        pytest.param("Preferred language: German", "Please answer in English from now on.", id="the-language"),
        pytest.param("Coach: Mr. Hale", "Ms. Ott is the new coach.", id="who-is-the-new-one"),
        pytest.param("The user is a dentist.", "The user quit dentistry.", id="the-field-of-a-job"),
        pytest.param("Project deadline is May 3", "The deadline was pushed back to May 9", id="a-thing-in-short"),
        pytest.param("Rent: 700 euros a month", "The landlord raised the rent to 790 euros.", id="raised-by-another"),
        pytest.param("The user's parrot is five years old.", "The parrot is nine years old, actually.", id="actually"),
        pytest.param("Has no siblings", "The user's brother called.", id="whom-the-user-does-not-have"),
        pytest.param("Has no siblings", "My older brother Paul called", id="by-name"),
        pytest.param("Has no children", "Her two sons sing in a choir", id="several-of-them"),
        pytest.param("Hat keine Geschwister", "Mein Bruder Paul hat angerufen", id="in-german"),
        pytest.param("Has two children", "Third child was born in 2023", id="one-more"),
        pytest.param("Uses Vim", "Rewrote the notes in Emacs and no longer uses Vim", id="a-verb-that-begins-it"),
        pytest.param("The user reports to Mrs. Lund.", "The user reports to Mr. Moe now.", id="a-title-with-a-dot"),
        pytest.param("The user is waiting for a visa.", "The visa arrived.", id="what-was-waited-for"),
        pytest.param("Python version: 3.9", "The project was upgraded to Python 3.12.", id="a-number-behind-a-key"),
        pytest.param("Is afraid of horses", "Got a horse and adores it", id="what-it-is"),
        pytest.param("Ida is the user's girlfriend.", "Ida is the user's wife now.", id="a-nearer-relation"),
        pytest.param("Single", "Yesterday Carla said yes, we're engaged!", id="after-a-fronted-word-and-a-comma"),
        pytest.param("Works part-time", "Since May I do full weeks again.", id="after-a-fronted-phrase"),
        pytest.param("Has a broken arm", "The cast came off, my arm is fine again.", id="in-a-second-clause"),
        pytest.param("Favorite color: green", "My favourite colour is orange these days", id="in-british-spelling"),
        pytest.param("Eats everything", "The user doesn't eat pork.", id="what-everything-includes"),
        pytest.param("Plays tennis every week", "My knee made me give up tennis.", id="what-somebody-was-made-to-end"),
        pytest.param("Going to Japan in October", "The Japan trip fell through.", id="a-plan-that-failed"),
        pytest.param("Takes metformin daily", "The doctor took me off metformin.", id="who-was-taken-off-it"),
        pytest.param("Has a dog named Rex", "We had to put Rex to sleep on Friday.", id="a-death-in-other-words"),
        pytest.param("Never exercises", "I started working out three times a week.", id="what-was-never-done"),
        pytest.param("Has no dog", "I walk my dog every morning.", id="the-users-own-in-an-object"),
        pytest.param("Has a season ticket", "The season ticket was cancelled on Monday.", id="ended-on-a-day"),
        pytest.param("Learns Basque", "The user gave up both chess and Basque.", id="one-of-two-that-end"),
        pytest.param("Member of the rowing club", "The user left the rowing club in protest.", id="why-it-ended"),
        pytest.param("Manager is Ines", "Ines has left the company.", id="who-left-the-company"),
        pytest.param("Owes aunt Vera 90 euros", "The loan from aunt Vera was paid back.", id="a-loan-paid-back"),
        pytest.param("Squad dinner every Tuesday", "Squad dinner has been shifted to Fridays.", id="a-thing-unmarked"),
        pytest.param(
            "The user's colleagues are Ida and Bo.", "Bo does not work with the user any more.", id="one-of-several"
        ),
        pytest.param("Baker at a hotel in Hull", "Took a position as cook at Lidl", id="a-job-without-a-verb"),
        pytest.param("Suffers from insomnia at home", "The user sleeps well on the new bed.", id="a-state-of-a-person"),
        pytest.param(
            "The user is the treasurer of the club.", "Mia took over as treasurer of the club.", id="successor"
        ),
    ],
)
def test_what_has_come_to_an_end_or_to_pass_is_pointed_at(line: str, fact: str) -> None:
    assert [untrue.line for untrue in contradicted(["Likes tea", line], fact)] == [1]


def test_what_somebody_was_stays_true_when_they_die() -> None:
    lines = ["The user's grandfather lives in a nursing home.", "The user's grandfather was a miner."]
    assert [untrue.line for untrue in contradicted(lines, "The user's grandfather died last week.")] == [0]


def test_each_line_that_a_move_makes_untrue_is_pointed_at_and_no_other() -> None:
    lines = ["Lives in Berlin", "Sister: Anna, in Rome", "City: Berlin", "Works in Potsdam"]
    assert [untrue.line for untrue in contradicted(lines, "The user moved to Porto")] == [0, 2]


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("The user's sister lives in Rome.", "The user's brother lives in Oslo."),
        ("The user's name is Bob.", "The user's best friend is called Alya."),
    ],
)
def test_a_sentence_of_the_same_shape_is_not_pointed_at(line: str, fact: str) -> None:
    assert append([line], fact).edit_summary == "Added as line 2."


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        pytest.param("Hates horror films", "Walked out of a horror film", id="what-was-walked-out-of"),
        pytest.param("Eats meat", "The user was a vegan in her twenties.", id="a-diet-of-the-past"),
        pytest.param("Eats meat", "The user tried a vegan bakery.", id="a-diet-of-a-place"),
        pytest.param("Lives in Leeds", "The user read a book about moving to Spain.", id="what-is-read-about"),
        pytest.param("Friday: yoga at 6", "Friday: dinner with Mom", id="several-on-a-day"),
        pytest.param("Has no pets", "Saw a kitten in the park", id="what-was-only-seen"),
        pytest.param("Has no dog", "We saw two dogs in the park.", id="whom-the-user-saw"),
        pytest.param("Lives in Leeds", "If I moved to Porto, I would need a visa.", id="what-is-only-supposed"),
        pytest.param("Drives a Golf", "I dreamed that I sold the car.", id="what-was-only-dreamed"),
        pytest.param("Plays tennis", "Should I quit tennis?", id="what-is-only-asked"),
        pytest.param("Plays tennis", "I almost quit tennis last year.", id="what-almost-happened"),
        pytest.param("Phone: 0171 555 01", "I dropped my phone.", id="a-thing-and-its-number"),
        pytest.param("Phone: 0171 555 01", "Nokia announced a new phone.", id="what-a-company-did"),
        pytest.param("Gets up at 6", "The rent went up by 50 euros.", id="a-noun-that-is-a-verb-elsewhere"),
        pytest.param("The user is looking for a cook.", "A lost glove has been found.", id="another-find"),
        pytest.param("The user's car is in the repair shop.", "The user's car is green.", id="where-and-which"),
        pytest.param("Company founded in 2010", "The company has grown to 20 employees.", id="a-year-and-a-count"),
    ],
)
def test_what_holds_beside_a_line_is_not_pointed_at(line: str, fact: str) -> None:
    assert not contradicted(["Likes tea", line], fact)


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        pytest.param("Has no brother", "Paul's brother is a baker", id="of-somebody"),
        pytest.param("Has no wife", "Her boss's wife is ill", id="of-a-relative"),
        pytest.param("Has no children", "Her brother's kids are loud", id="of-a-brother"),
        pytest.param("Has no boss", "The neighbor's boss is strict", id="of-a-neighbor"),
        pytest.param("Has no siblings", "Paul came, and her brother sang", id="of-whom-the-clause-before-is-about"),
        pytest.param("Hat keine Kinder", "Die Kinder der Nachbarn sind laut", id="of-neighbors-in-german"),
        pytest.param("Has no kids", "The kids next door are loud", id="of-nobody-named"),
        pytest.param("Has no sister", "The user's sister-in-law called", id="in-law"),
        pytest.param("Has no partner", "His climbing partner called", id="another-kind-of-partner"),
        pytest.param("Has no baby", "Her baby sister called", id="a-word-before"),
        pytest.param("Has no dog", "Her dog sitter is ill", id="a-word-after"),
        pytest.param("Has no sister", "The sister ship was sold", id="a-thing"),
        pytest.param("Has no brother", "My brother in spirit is Paul", id="no-real-brother"),
        pytest.param("Has no doctor", "Her Doctor Who collection grew", id="a-title"),
        pytest.param("Has no husband", "Her husband died in 2019", id="who-died"),
        pytest.param("Has no boss", "Her former boss called", id="who-was"),
        pytest.param("Has no cat", "My cat would be called Tiger", id="who-may-be-one-day"),
        pytest.param("Has no dog", "My friend's dog barks", id="of-a-friend-whose-verb-no-list-has"),
        pytest.param("Has no dog", "The dog of a friend barks", id="of-a-friend"),
        pytest.param("Has no kids", "Ann said: her kids are loud", id="of-who-said-it"),
        pytest.param("Has no dog", "I walked my neighbor's dog", id="whose-somebody-takes-care-of"),
        pytest.param("Does not own a car", "I drove my dad's car to Oslo", id="what-was-borrowed"),
        pytest.param("Has no baby", "I called my baby sister", id="a-word-before-in-an-object"),
        pytest.param("No tiene hermanos", "El hermano de Ana llamó", id="of-somebody-in-spanish"),
        pytest.param("N'a pas de chien", "Le chien de la voisine aboie", id="of-a-neighbor-in-french"),
        pytest.param("Hat keinen Hund", "Annas Hund bellt", id="of-somebody-in-german"),
        pytest.param("Had no dog as a child", "Her dog is called Rex", id="whom-the-user-did-not-have"),
    ],
)
def test_whom_the_user_does_not_have_others_may_have(line: str, fact: str) -> None:
    assert not contradicted([line], fact)


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("Second son was born in 2018", "Third son was born in 2021"),
        ("Second baby was born in May", "Has three children"),
        ("The second dog is called Rex", "The third dog is called Max"),
    ],
)
def test_the_second_of_several_stays_beside_the_third(line: str, fact: str) -> None:
    assert not contradicted([line], fact)


def test_two_that_are_denied_together_keep_each_what_else_is_known() -> None:
    lines = ["Mitya is a friend, who likes pie", "Mitua is a friend, and sings."]
    assert append(lines, "Mitya and Mitua are not friends.").lines == [
        "Mitya is not friends, who likes pie",
        "Mitua is not friends, and sings.",
    ]


def test_a_line_that_no_claim_excludes_may_be_untrue_and_is_not_said_to_be() -> None:
    lines = [
        "Ines Marlo conducts the youth choir of the harbor district.",
        "Ines Marlo collects old maps of the northern islands.",
    ]
    fact = "Ines Marlo has never conducted a choir, but plays the organ in the harbor church."
    summary = append(lines, fact).edit_summary
    assert f'Line 1 may be untrue now: "{lines[0]}"' in summary
    assert "if both hold, leave it" in summary
    assert "no longer fits" not in summary
    assert "Line 2 " not in summary


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("The user has a daughter, Mia, who is nine.", "The user has a son, Leo, who is four."),
        ("The user has a cat called Mog.", "The user also has a dog called Rex."),
        ("The user speaks Dutch.", "The user speaks Greek."),
        ("The user's sister lives with her family in Rome.", "The user's brother lives with his family in Oslo."),
        ("Best friend: Alya", "Mitua is not a best friend."),
        ("Lives with Tom", "Ann moved in."),
        ("Yoga class on Wednesdays", "Tennis is on Fridays."),
        ("Drives a Golf", "The user sold the boat."),
        ("Doctor: Dr. Lang", "The user's dentist is Dr. Weiss."),
        ("The user plays the violin.", "The user gave up the piano."),
        ("Best friend: Alya", "The user is not friends with Mitua any more."),
    ],
)
def test_what_can_hold_beside_a_line_does_not_make_it_doubtful(line: str, fact: str) -> None:
    assert append([line, "Name: Sam"], fact).edit_summary == "Added as line 3."


def _held(language: str) -> tuple[str, str, float, float]:
    return (language, "held", 0.95, 0.02) if language == "en" else (language, "held", 0.75, 0.05)


@pytest.mark.parametrize(
    ("language", "half", "least", "most"),
    [*((language, "open", 0.95, 0.02) for language in LANGUAGES), *map(_held, LANGUAGES)],
)
def test_contradictions_are_found_and_look_alikes_left_alone(
    language: str, half: str, least: float, most: float
) -> None:
    figures = measured(pairs(language, half))
    assert figures.found >= least * figures.contradictions, figures
    assert figures.misled <= most * figures.pairs, figures
