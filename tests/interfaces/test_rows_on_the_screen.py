"""The rows of a turn: results, reasons and questions are folded; `/show` opens the rest."""

import re
from pathlib import Path

import pytest

from tests.interfaces.asking import DONE, home, made, press, weather
from tests.interfaces.support import COUNT_VOWELS, FLAWED, create, prompt
from tests.kit import Ask, Say, Script, Wanted
from tests.kit.desk import SHIPPING, right
from tests.kit.steps import Seen
from tests.kit.terminal import ENTER, ESCAPE, Terminal

CALL = Ask(Wanted("count_vowels", {"text": "queueing"}))
FIVE = Say("Five.")
EDITED = {
    "function_name": "count_vowels",
    "changes": [{"old_text": "        7\n", "new_text": "        0\n"}],
}
MENDED: Script = [Ask(create(FLAWED)), Ask(Wanted("edit_function", EDITED)), CALL, FIVE]
LONG = "".join(f"    total += {n}\n" for n in range(40))
SUMS = f'''def sums(total: int) -> int:
    """Add numbers.

    Args:
        total: Where to begin.

    >>> sums(0)
    780
    >>> sums(1)
    781
    """
{LONG}    return total
'''


SAYS = (
    "What the presses of the association took in this month, with refunds and without deposits, is"
)
TELLS = f'''def tell(month: str, one: str = "presses/jablon.tsv", two: str = "presses/lagar.xml", it: str = "a") -> str:
    """Tell what was taken.

    Args:
        month: The month.
        one: The first file.
        two: The second file.
        it: What is asked for.

    >>> tell("May", "a", "b", "euros")
    '{SAYS} euros: 3'
    >>> tell("June", "a", "b", "crowns")
    '{SAYS} crowns: 5'
    """
    return f"{SAYS} {{it}}: {{len(month) + len(one) - len(two)}}"
'''


def predicted(seen: Seen) -> Ask:
    """Return the model's answer to the question for results."""
    calls = re.findall(r"^- (shipping\(.*\))$", str(seen.messages[-1]["content"]), re.MULTILINE)
    return Ask(
        Wanted("confirm_function", {"function_name": "shipping", "expected": [*map(right, calls)]})
    )


def turn(screen: Terminal, message: str = "go") -> list[str]:
    """Return the rows of one whole turn, from below the message to its last line."""
    before = screen.scrolled().count("∙ ")
    screen.line(message)
    screen.wait(lambda: screen.scrolled().count("∙ ") > before, "the end of the turn")
    rows = screen.scrolled().split("\n")
    ends = max(at for at, row in enumerate(rows) if row.startswith("∙ "))
    return rows[max(at for at, row in enumerate(rows) if row == f"› {message}") + 1 : ends + 1]


@pytest.mark.parametrize(
    ("script", "most", "kept"),
    [
        pytest.param(
            [Ask(create(COUNT_VOWELS)), CALL, FIVE],
            6,
            [
                r"✓ made count_vowels\(text\) -> int · 2 of 2 examples · computes only · 1 hint: /show 1"
            ],
            id="made",
        ),
        pytest.param(
            MENDED,
            12,
            [
                r"✗ count_vowels refused: 1 problem · 1 of 2 examples agree · goes back to the model · /show 1",
                r"  `count_vowels\(\"xyz\"\)` returned `0`; its example says `7`",
                r"✓ made count_vowels\(text\) -> int · 2 of 2 examples · computes only · 1 hint: /show 2",
                r"  -        7",
                r"  \+        0",
            ],
            id="refused-and-mended",
        ),
        pytest.param(
            [
                Ask(create(SHIPPING, "shipping")),
                predicted,
                Ask(Wanted("shipping", {"weight": 12})),
                FIVE,
            ],
            12,
            [
                r"~ shipping not made yet · 2 of 2 examples agree · the model is asked for \d .* · \d hints?: /show 1",
                r"✓ made shipping\(weight, express\) -> int · \d of \d examples · computes only · .*/show 2",
            ],
            id="challenged",
        ),
    ],
)
def test_a_turn_that_makes_a_function_takes_few_rows_and_ends_with_the_answer(
    folder: Path, script: Script, most: int, kept: list[str]
) -> None:
    with prompt(script, folder, columns=120, rows=40) as (screen, _):
        rows = turn(screen)
    assert len(rows) <= most, rows
    assert all(re.fullmatch(pattern, row) for pattern, row in zip(kept, rows, strict=False)), rows
    assert [*map(bool, rows[len(kept) :])] == [True, False, True, False, True], (
        rows
    )  # call, answer, end
    assert (rows[len(kept)][:2], rows[-3]) == ("▸ ", "Five.")
    assert re.match(r"∙ (created|changed) (count_vowels|shipping) · ", rows[-1]), rows


def test_a_question_takes_at_most_eight_rows_and_seven_with_its_answer(
    folder: Path, place: str
) -> None:
    (outside := folder.parent / "sales.txt").write_text("7")
    for name, said in (("host", "self.fetch(city).text()"), ("file", "open(city).read()")):
        text = (
            weather(place)
            .replace("weather(", f"{name}(")
            .replace("what the weather is", f"what the {name} has")
        )
        (folder / "functions" / f"{name}.py").write_text(re.sub(r"self\.fetch\(.*", said, text))
    script: list[Ask | Say] = [made(place, reason="it was asked for " * 20), DONE]
    for name, city in (("host", f"http://{place}/Oslo"), ("file", str(outside))):
        script += [Ask(Wanted(name, {"city": city})), DONE]
    with prompt(script, folder, columns=120, environment=home(folder)) as (screen, _):
        for turns, name in enumerate(("weather", "host", "file"), 1):
            screen.do("go", f"? {name} ")
            screen.wait_for("Press o (once)")
            rows = screen.screen()
            first = next(at for at, row in enumerate(rows) if row.startswith(f"? {name} "))
            assert next(at for at, row in enumerate(rows[first:]) if row == "›") <= 8, rows
            press(screen, "o")
            screen.wait_count("∙ ", turns)
            kept = screen.scrolled().split("\n")
            first = next(at for at, row in enumerate(kept) if row.startswith(f"? {name} "))
            assert (
                next(at for at, row in enumerate(kept[first:]) if row.startswith("  → once")) <= 6
            ), kept


@pytest.mark.slow
def test_source_streams_in_ten_rows_an_edit_shows_its_first_lines_and_show_opens_the_rest(
    folder: Path,
) -> None:
    code = (
        'def chat() -> str:\n    """Print."""\n    print("a\\n" * 30)\n    return "done\\n" * 9\n'
    )
    (folder / "functions" / "chat.py").write_text(code)
    told = "".join(f"    {n} is added.\n" for n in range(40))
    edited = {
        "function_name": "sums",
        "changes": [{"old_text": "Add numbers.\n", "new_text": f"Add numbers.\n\n{told}"}],
    }
    script: Script = [
        Ask(create(SUMS, "sums"), pause_s=0.02),
        FIVE,
        Ask(Wanted("edit_function", edited)),
        FIVE,
    ]
    with prompt([*script, Ask(Wanted("chat")), FIVE], folder, columns=120, rows=40) as (screen, _):
        most = 0
        screen.line("go")
        while "∙ " not in screen.scrolled():
            rows = screen.screen()
            begun = next(
                (at for at, row in enumerate(rows) if row.startswith("✎ create_function")), None
            )
            most = max(
                most,
                len(rows[begun : rows.index("›")] if begun is not None and "›" in rows else []),
            )
        assert most == 10
        before = screen.scrolled()
        assert "total += 20" not in before
        assert re.search(r"✓ made sums.* \d+ hints?: /show 1", before)
        screen.do(
            "/show 1",
            "Esc leaves",
            "✓ sums added to words, on trial",
            "hint: functions/words.py:12 ",
        )
        for part in ("arguments", "answer, as the model reads it", "def sums(total: int) -> int:"):
            assert part in "\n".join(screen.screen())
        screen.type("   ")
        screen.wait_for("the end")
        screen.wait_for("return total")
        screen.type(ESCAPE)
        screen.wait_gone("Esc leaves")
        assert "return total" not in screen.scrolled().removeprefix(before)
        rows = turn(screen, "again")
        assert re.fullmatch(
            r"✓ changed sums\(total\) -> int · 2 of 2 examples · computes only · .*/show 2", rows[0]
        )
        assert rows[1:6] == [
            *(f"  +    {n} is added." for n in range(4)),
            "  … 36 more changed lines",
        ], rows
        assert "hint" not in rows[0]  # it was told before
        rows = turn(screen, "chat")
        assert re.fullmatch(r"▸ chat\(\) → .*printed 31 lines  .* \[3\]", rows[0]), rows
        assert rows[1:3] == ["", "Five."]
        screen.do("/show 3", "Esc leaves")
        screen.type("q")
        screen.wait_gone("Esc leaves")
        screen.do("q", "There is nothing for q to close.")
        screen.do("/show 1", "Esc leaves")
        screen.type(ENTER)
        screen.wait_gone("Esc leaves")
        screen.wait(
            lambda: "total += 0" in screen.scrolled() and "return total" in screen.scrolled(),
            "all of it",
        )


def test_the_full_form_shows_source_and_hints_once(folder: Path) -> None:
    (folder / "knapper.toml").write_text('[repl]\nshow = "full"\n')
    with prompt(MENDED, folder, columns=120, rows=40) as (screen, _):
        rows = "\n".join(turn(screen))
    assert rows.count("def count_vowels") == 1
    assert rows.count("✗ count_vowels refused: 1 problem") == 1
    assert "  ✓ count_vowels added to words, on trial" in rows
    assert "  -        7\n  +        0\n" in rows
    assert rows.count("weak-examples") == 1


def test_of_long_rows_that_changed_the_parts_are_shown_that_differ(folder: Path) -> None:
    edited = {
        "function_name": "tell",
        "changes": [{"old_text": 'it: str = "a"', "new_text": 'it: str = "b"'}],
        "reason": "The other file.",
    }
    script: Script = [
        Ask(create(TELLS, "tell")),
        Ask(Wanted("confirm_function", {"function_name": "tell"})),
        FIVE,
        Ask(Wanted("edit_function", edited)),
        FIVE,
    ]
    with prompt(script, folder, columns=100, rows=40) as (screen, _):
        for parts in (("crowns: 5", "crowns: 4"), ('"a"', '"b"')):
            rows = [row for row in turn(screen) if re.match(r"  [-+]", row)]
            assert [row[2] for row in rows] == ["-", "+"]
            assert [part in row for part, row in zip(parts, rows, strict=True)] == [True, True], (
                rows
            )
            assert all(len(row) <= 100 for row in rows)
