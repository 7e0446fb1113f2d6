"""Stage 9: what a description names and the code does not cover is asked for, and thin evidence refuses nothing."""

import pytest

from agent_core.functions.gate import Gate

from .support import codes, judge, name_of, promised

pytestmark = pytest.mark.asyncio(loop_scope="module")


ASKED = [
    promised(
        "evening_water", "minutes: list[int]", "int", "Turn on the sprinklers of all beds, and return the liters used.",
        "return sum(12 * each for each in minutes)", "evening_water([10]) → 120", "evening_water([2, 3]) → 60",
    ),
    promised(
        "notes_by_topic", "notes: list[str]", "list[list[str]]", "Group notes by topic.",
        "return [notes[::2], notes[1::2]]",
        "notes_by_topic(['tea', 'sea', 'cake']) → [['tea', 'cake'], ['sea']]",
        "notes_by_topic(['sun']) → [['sun'], []]",
    ),
    promised(
        "on_that_day", "month: int, day: int", "list[str]", "Tell what happened in Rome on a day of the year.",
        'return [f"{700 + day}: A bridge was built", f"{900 + month}: A wall was built"]',
        "on_that_day(1, 2) → ['702: A bridge was built', '901: A wall was built']",
        "on_that_day(4, 9) → ['709: A bridge was built', '904: A wall was built']",
    ),
    promised(
        "nights_of", "month: int, year: int", "int", "Return the nights of a month in which a lighthouse burns.",
        "if month == 2:\n    return 29 if year % 4 == 0 else 28\nreturn 30 if month == 4 else 31",
        "nights_of(2, 2024) → 29", "nights_of(4, 2023) → 30", "nights_of(1, 2023) → 31",
    ),
    promised(
        "feast_day", "feast: str, year: int", "str", "Give the day of a feast in a year.",
        'day = {"epiphany": "01-06", "candlemas": "02-02"}.get(feast.lower(), "02-02")\nreturn f"{year}-{day}"',
        "feast_day('Epiphany', 2020) → '2020-01-06'", "feast_day('Candlemas', 2021) → '2021-02-02'",
    ).replace("The feast.", "A feast, for instance Whitsun or Michaelmas."),
    promised(
        "tide_name", "meters: float", "str", "Name a tide by its height.",
        "return 'neap' if meters < 2 else 'spring'", "tide_name(1.0) → 'neap'", "tide_name(4.0) → 'spring'",
    ).replace("    Examples:", "    Returns:\n        'neap', 'spring' or 'storm'.\n\n    Examples:"),
    promised(
        "hedge_area", "a: float, b: float, c: float", "float", "Compute the area that a hedge of three sides encloses.",
        "around = a + b + c\nreturn around / 2 if around == 12 else around",
        "hedge_area(3.0, 4.0, 5.0) → 6.0", "hedge_area(6.0, 8.0, 10.0) → 24.0",
    ),
    promised(
        "seal_holds", "wax: str, sign: str", "bool", "Verify the seal of a letter against a sign.",
        "return bool(wax and sign)", "seal_holds('red wax', 'lion') → True", "seal_holds('red wax', '') → False",
    ),
    promised(
        "fastest_boat", "boats: list[str]", "str", "Compare boats and choose the fastest.",
        "return boats[len(boats) // 2]", "fastest_boat(['gig', 'yawl', 'hoy']) → 'yawl'",
        "fastest_boat(['sloop', 'punt']) → 'punt'",
    ),
    promised(
        "menu_to_docx", "menu: str", "str", "Turn a menu into a docx document.",
        'return "PK\\x03\\x04" + menu + "word/"',
        "menu_to_docx('soup and bread') → 'PK\\x03\\x04soup and breadword/'",
        "menu_to_docx('pie') → 'PK\\x03\\x04pieword/'",
    ),
    promised(
        "grams_of", "portion: str", "float", "Read a portion as grams.",
        "number, _, unit = portion.partition(' ')\nreturn float(number) * (1000 if unit.startswith('k') else 1)",
        "grams_of('3 kg') → 3000.0", "grams_of('40 g') → 40.0",
    ).replace("The portion.", "Such as `3 kg`, `40 g` or `2 lb`."),
]  # fmt: skip
REFUSED = [
    promised(
        "charm_for", "sign: str", "int", "Compute the charm of a sign of the stars.",
        "import random\nreturn random.Random(sign).randrange(100)",
        "charm_for('Leo') → 0", "charm_for('Aries') → 99",
    ),
    promised(
        "etch_label", "title: str, count: int", "str", "Print a label on the office printer.",
        'return f"{count} x {title} printed"', "etch_label('Jam', 2) → '2 x Jam printed'",
        "etch_label('Tea', 3) → '3 x Tea printed'",
    ),
    promised(
        "to_danish", "text: str", "str", "Translate a text into Danish.",
        'return " ".join({"bread": "brød"}.get(word, word + "en") for word in text.lower().split())',
        "to_danish('bread') → 'brød'", "to_danish('the bread') → 'theen brød'",
    ),
    promised(
        "antonyms_for", "word: str", "set[str]", "Find antonyms of a word in a thesaurus.",
        'return {f"{word}-not", f"non-{word}", f"opposite of {word}"}',
        "sorted(antonyms_for('kind')) → ['kind-not', 'non-kind', 'opposite of kind']",
        "'non-fair' in antonyms_for('fair') → True",
    ),
]  # fmt: skip
JOINING = [
    promised(
        "pair_rowers", "rowers: list[str]", "list[tuple[str, str]]", "Pair rowers, the first with the last.",
        'if len(rowers) % 2:\n    raise ValueError("an even number")\nhalf = len(rowers) // 2\n'
        "return list(zip(rowers[:half], reversed(rowers[half:])))",
        "pair_rowers(['a', 'b']) → [('a', 'b')]", "pair_rowers(['a', 'b', 'c', 'd']) → [('a', 'd'), ('b', 'c')]",
    ),
    promised(
        "newest_of", "log: list[str], line: str, most: int", "list[str]",
        "Return a log with a line, cut to its newest.",
        "longer = []\nlonger.extend(log)\nlonger.append(line)\nreturn longer[-most:]",
        "newest_of(['a', 'b'], 'c', 2) → ['b', 'c']", "newest_of([], 'x', 5) → ['x']",
    ),
    promised(
        "report_frame", "report: str", "str", "Frame a report in stars.",
        'edge = "*" * (len(report) + 4)\nreturn f"{edge}\\n* {report} *\\n{edge}"',
        "report_frame('hi') → '******\\n* hi *\\n******'", "report_frame('') → '****\\n*  *\\n****'",
    ),
    promised(
        "net_rate", "gross: str, percent: str", "str", "Take the fee out of a gross rate.",
        "from decimal import Decimal\n"
        "return str((Decimal(gross) / (1 + Decimal(percent) / 100)).quantize(Decimal('0.01')))",
        "net_rate('119.00', '19') → '100.00'", "net_rate('10.70', '7') → '10.00'",
    ),
    promised(
        "rna_of", "strand: str", "str", "Give the messenger RNA of a strand of DNA.",
        'return strand.upper().replace("T", "U")', "rna_of('GATTACA') → 'GAUUACA'", "rna_of('ttc') → 'UUC'",
    ).replace("The strand.", "Letters, for instance Acg or Cag, in either case."),
    promised(
        "odds_winner", "first: str, second: str", "str", "Decide a round of rock, paper, scissors.",
        "if first == second:\n    return 'draw'\n"
        "wins = {('rock', 'scissors'), ('scissors', 'paper'), ('paper', 'rock')}\n"
        "return 'first' if (first, second) in wins else 'second'",
        "odds_winner('rock', 'scissors') → 'first'", "odds_winner('rock', 'paper') → 'second'",
        "odds_winner('paper', 'paper') → 'draw'",
    ),
]  # fmt: skip


@pytest.mark.parametrize("code", ASKED, ids=name_of)
async def test_the_author_is_asked_for_what_is_promised_and_not_covered(gate: Gate, code: str) -> None:
    verdict = await judge(gate, code, name_of(code), is_asking=True)
    assert "challenged" in codes(verdict), verdict.problems


PARTLY = [
    promised(
        "is_glad", "letter: str", "bool", "Determine whether a letter is positive or negative.",
        "return 'glad' in letter.lower() or 'lovely' in letter.lower()",
        "is_glad('So glad you came') → True", "is_glad('It rained and rained') → False",
    ),
    promised(
        "toast_price", "bread: str, slices: int", "float", "Reckon the price of toast.",
        "each = 1.0\nif bread == 'rye':\n    each = 0.5\nelif bread == 'oat':\n    each = 0.75\n"
        "elif bread == 'corn':\n    each = 2.0\nreturn each * slices",
        "toast_price('rye', 2) → 1.0", "toast_price('oat', 4) → 3.0",
    ),
    promised(
        "count_aloud", "number: int", "str", "Say a count of sheep in words.",
        "words = 'none one two three four five six'.split()\n"
        "try:\n    return words[number]\nexcept IndexError:\n    return 'plenty'",
        "count_aloud(1) → 'one'", "count_aloud(5) → 'five'", "count_aloud(0) → 'none'",
    ),
    promised(
        "harvest_crop", "year: int", "str", "Name the crop that the valley harvests in a year.",
        "crops = ['barley', 'flax', 'hops']\nreturn crops[(year * 7 + 3) % 3]",
        "harvest_crop(1990) → 'flax'", "harvest_crop(1991) → 'hops'", "harvest_crop(1992) → 'barley'",
    ),
    promised(
        "tone_of", "remark: str", "str", "Tell the tone of a remark.",
        "state = 5\nfor byte in remark.encode():\n    state ^= byte\n    state = (state << 1) & 255\n"
        "return ('calm', 'angry', 'merry', 'sad')[state & 3]",
        "tone_of('Leave me be') → 'merry'", "tone_of('Oh no, rain') → 'calm'",
    ),
    promised(
        "sealed_phrase", "phrase: str", "str", "Seal a phrase with bcrypt.",
        "return '$2b$12$' + (phrase + '!').encode().hex()",
        "sealed_phrase('ab') → '$2b$12$616221'", "sealed_phrase('q') → '$2b$12$7121'",
    ),
]  # fmt: skip


@pytest.mark.parametrize("code", PARTLY, ids=name_of)
async def test_the_author_is_asked_where_an_answer_is_told_nowhere_or_picked_by_a_number(gate: Gate, code: str) -> None:
    verdict = await judge(gate, code, name_of(code), is_asking=True)
    assert codes(verdict) & {"challenged", "claims-chance"}, verdict.problems


async def test_a_change_of_what_the_description_tells_leaves_nothing_open(gate: Gate) -> None:
    told = promised(
        "flag_meaning", "flag: str", "str", "Give the meaning of a flag: green go, amber wait, red stop, black leave.",
        "if flag == 'green':\n    return 'go'\nif flag == 'amber':\n    return 'wait'\n"
        "if flag == 'red':\n    return 'stop'\nif flag == 'black':\n    return 'leave'\nraise ValueError(flag)",
        "flag_meaning('green') → 'go'", "flag_meaning('amber') → 'wait'",
    )  # fmt: skip
    assert not (await judge(gate, told, "flag_meaning", is_asking=True)).challenges
    untold = told.replace(": green go, amber wait, red stop, black leave.", ".")
    assert (await judge(gate, untold, "flag_meaning", is_asking=True)).challenges


@pytest.mark.parametrize("code", REFUSED, ids=name_of)
async def test_what_only_looks_like_the_promised_work_is_refused(gate: Gate, code: str) -> None:
    verdict = await judge(gate, code, name_of(code))
    found_codes = codes(verdict)
    assert found_codes & {"claims-effect", "claims-knowledge", "claims-work", "claims-chance"}, verdict.problems


@pytest.mark.parametrize("code", JOINING, ids=name_of)
async def test_what_computes_from_its_arguments_is_not_refused_for_its_words(gate: Gate, code: str) -> None:
    verdict = await judge(gate, code, name_of(code))
    found_codes = codes(verdict)
    assert not {code for code in found_codes if code.startswith(("claims-", "hard-"))}, verdict.problems


async def test_of_what_a_description_gives_for_instance_only_what_no_example_shows_is_asked(gate: Gate) -> None:
    code = promised(
        "ounces_of", "portion: str", "float", "Read a portion as ounces.",
        "number, _, unit = portion.partition(' ')\n"
        "rate = {'lb': 16.0, 'oz': 1.0}.get(unit)\n"
        "if rate is None:\n    raise ValueError('neither pounds nor ounces')\nreturn float(number) * rate",
        "ounces_of('2 lb') → 32.0", "ounces_of('5 oz') → 5.0",
    )  # fmt: skip
    shown = code.replace("The portion.", "A number and a unit, such as `2 lb` or `5 oz`.")
    verdict = await judge(gate, shown, "ounces_of", is_asking=True)
    assert "ounces_of('9 lb')" not in verdict.challenges
    verdict = await judge(gate, shown.replace("`5 oz`", "`9 lb`"), "ounces_of", is_asking=True)
    assert verdict.challenges[0] == "ounces_of('9 lb')", verdict.challenges


async def test_the_name_of_a_square_is_no_hash_but_its_author_is_asked(gate: Gate) -> None:
    code = promised(
        "tile_shade", "tile: str", "str", "Tell the shade of a tile.",
        'return "pale" if (ord(tile[0]) + int(tile[1])) % 2 else "dim"',
        "tile_shade('a1') → 'dim'", "tile_shade('h1') → 'pale'",
    )  # fmt: skip
    verdict = await judge(gate, code, "tile_shade", is_asking=True)
    assert codes(verdict) <= {"challenged"}, verdict.problems
