"""Stage 9: relations between calls, stores that begin and end with a call, and values that a description names."""

import pytest

from agent_core.functions.gate import Gate

from .support import codes, judge, name_of, promised

pytestmark = pytest.mark.asyncio(loop_scope="module")


REFUSED = [
    promised(
        "strike_stop", "stops: list[str], stop: str", "int", "Strike a stop from the timetable in place.",
        "before = len(stops)\nstops = [one for one in stops if one != stop]\nreturn before - len(stops)",
        "strike_stop(['Elm', 'Ash'], 'Ash') → 1", "strike_stop(['Elm'], 'Oak') → 0",
    ),
    promised(
        "drop_blank_rows", "rows: list[str]", "int", "Remove the blank rows of a sheet in place and count them.",
        "left = list(rows)\nfor row in rows:\n    if not row.strip():\n        left.remove(row)\n"
        "return len(rows) - len(left)",
        "drop_blank_rows(['a', ' ', 'b']) → 1", "drop_blank_rows(['x']) → 0",
    ),
    promised(
        "usher_in", "person: str, rank: int", "int", "Usher somebody in by rank and tell how many wait.",
        "import heapq\nline = []\nheapq.heappush(line, (rank, person))\nreturn rank + len(line)",
        "usher_in('Ida', 2) → 3", "usher_in('Bo', 5) → 6",
    ),
    promised(
        "deviation_of", "depths: list[float]", "float", "Return the standard deviation of depths.",
        "return (depths[-1] - depths[0]) / 2", "deviation_of([2.0, 4.0]) → 1.0", "deviation_of([1.0, 5.0]) → 2.0",
        "deviation_of([3.0, 3.0]) → 0.0",
    ),
    promised(
        "format_contract", "party: str", "str", "Format the head of a contract with a party.",
        'return f"{party}: terms TBD"', "format_contract('Ida') → 'Ida: terms TBD'",
        "format_contract('Bo') → 'Bo: terms TBD'",
    ),
    promised(
        "kelvin_from", "degrees: float, scale: str", "float",
        "Turn degrees into kelvin from one of celsius, fahrenheit, rankine, reaumur.",
        'return degrees + 273.15 if scale == "celsius" else degrees',
        "kelvin_from(0.0, 'celsius') → 273.15", "kelvin_from(1.0, 'celsius') → 274.15",
    ),
    promised(
        "greatest_common_divisor", "first: int, second: int", "int", "Return the greatest common divisor.",
        "return max(first, second) - min(first, second)",
        "greatest_common_divisor(12, 8) → 4", "greatest_common_divisor(9, 6) → 3",
    ),
    promised(
        "tick_crate", "crates: list[dict[str,str]], label: str", "str", "Mark a crate as done in the given list.",
        "ticked = [dict(crate) for crate in crates]\nfor crate in ticked:\n    if crate['label'] == label:\n"
        "        crate['state'] = 'done'\n        return f'{label} is done'\nreturn f'{label} is not there'",
        "tick_crate([{'label': 'tea', 'state': 'open'}], 'tea') → 'tea is done'",
        "tick_crate([], 'rum') → 'rum is not there'",
    ),
    promised(
        "erase_tapes", "shelf: str, years: int", "bool", "Erase all tapes of a shelf older than the given years.",
        "if not shelf or years < 0:\n    return False\nreturn True",
        "erase_tapes('B4', 3) → True", "erase_tapes('', 3) → False",
    ),
    promised(
        "residents_of", "village: str", "int", "Give the number of residents of a village.",
        "return 40 * len(village.strip().lower())", "residents_of('Elm') → 120", "residents_of('Aldea') → 200",
    ),
]  # fmt: skip
ASKED = [
    promised(
        "save_playlist", "name: str, songs: list[str]", "str", "Save a playlist in the library and return its address.",
        'return f"music/{name.lower()}-{len(songs)}.m3u"',
        "save_playlist('Run', ['Go', 'On']) → 'music/run-2.m3u'",
        "save_playlist('Rest', ['Lull']) → 'music/rest-1.m3u'",
    ),
    promised(
        "strip_tilings", "squares: int", "int", "Count the tilings of a strip of squares with tiles of one or two.",
        "return squares * squares - 6 * squares + 13",
        "strip_tilings(4) → 5", "strip_tilings(5) → 8", "strip_tilings(6) → 13",
    ),
    promised(
        "name_captain", "players: list[str], sport: str", "dict[str,str]",
        "Weigh the players up and name the one who is best as captain.",
        "ranked = sorted(players, key=lambda player: 1)\nreturn {'sport': sport, 'captain': ranked[0]}",
        "name_captain(['Ida', 'Bo'], 'rugby') → {'sport': 'rugby', 'captain': 'Ida'}",
        "name_captain(['Cy', 'Al', 'Di'], 'golf') → {'sport': 'golf', 'captain': 'Cy'}",
    ),
    promised(
        "walking_effort", "trail: str", "float", "Rate the effort that a trail takes.",
        "effort = 2.5 if 'flat' in trail.split() else 4.0\nfor part in trail.split():\n    effort += 0.5 * len(part)\n"
        "return effort",
        "walking_effort('flat shore') → 7.0", "walking_effort('cliff top') → 8.0",
    ),
    promised(
        "devise_game", "props: list[str], players: int", "list[str]", "Invent a riddle from the props that are there.",
        "lines = [f'Everybody hides the {prop}' for prop in props]\n"
        "return [*lines, 'Whoever finds most wins', f'For {players}']",
        "devise_game(['hat'], 2) → ['Everybody hides the hat', 'Whoever finds most wins', 'For 2']",
        "devise_game(['cup', 'key'], 4) → "
        "['Everybody hides the cup', 'Everybody hides the key', 'Whoever finds most wins', 'For 4']",
    ),
    promised(
        "delivery_tour", "yard: str, farms: list[str]", "list[str]", "Find the quickest tour from a yard to all farms.",
        "tour, left = [yard], set(farms)\nwhile left:\n    tour.append(min(left))\n    left.remove(tour[-1])\n"
        "return tour",
        "delivery_tour('Yard', ['Oak', 'Elm']) → ['Yard', 'Elm', 'Oak']",
        "delivery_tour('Hub', ['Mill', 'Bay', 'Fox']) → ['Hub', 'Bay', 'Fox', 'Mill']",
    ),
    promised(
        "usual_yield", "tons: list[float]", "float", "Find the median of the tons of several fields.",
        "return (min(tons) + max(tons)) / 2", "usual_yield([5, 6, 7]) → 6.0", "usual_yield([4, 8]) → 6.0",
        "usual_yield([7, 8, 9]) → 8.0",
    ),
    promised(
        "tongue_of", "letter: str", "str", "Detect the language of a letter and return its code.",
        "return 'de' if {'der', 'die', 'und'} & {*letter.lower().split()} else 'en'",
        "tongue_of('the cat sleeps') → 'en'", "tongue_of('der Hund und die Katze') → 'de'",
    ),
    promised(
        "berth_fee", "meters: float", "float",
        "Reckon the fee of a berth: 4 a meter for boats up to 8 m, then 7 a meter for the rest, 15% off above 20 m.",
        "return min(meters, 8) * 4.0 + max(0.0, meters - 8) * 7",
        "berth_fee(5.0) → 20.0", "berth_fee(10.0) → 46.0", "berth_fee(8.0) → 32.0",
    ),
    promised(
        "share_out_hay", "heads: dict[str,int], bales: int", "dict[str,int]",
        "Share bales of hay among stables by their heads, none is left over.",
        "return {stable: bales * count // sum(heads.values()) for stable, count in heads.items()}",
        "share_out_hay({'east': 3, 'west': 1}, 8) → {'east': 6, 'west': 2}",
        "share_out_hay({'hill': 2, 'lake': 2, 'moor': 1}, 10) → {'hill': 4, 'lake': 4, 'moor': 2}",
    ),
    promised(
        "seconds_of_run", "run: str", "int", "Turn the days, hours, minutes and seconds of a run into seconds.",
        "_, hours, minutes, seconds = (int(part) for part in run.split('-'))\n"
        "return hours * 3600 + minutes * 60 + seconds",
        "seconds_of_run('0-01-01-05') → 3665", "seconds_of_run('0-00-02-09') → 129",
    ),
    promised(
        "detect_borrowing", "speech: str, other: str", "bool", "Detect whether a speech borrows from another one.",
        "return speech.strip().lower() == other.strip().lower()",
        "detect_borrowing('We will not rest.', 'we will not rest.') → True",
        "detect_borrowing('We will not rest.', 'Rivers run dry.') → False",
    ),
    promised(
        "detect_thief", "alibis: dict[str,list[int]], hour: int", "str", "Detect the thief: who was away at an hour.",
        "return sorted(alibis)[hour % len(alibis)] if alibis else ''",
        "detect_thief({'Ida': [1, 4], 'Bo': [2]}, 4) → 'Bo'",
        "detect_thief({'Ida': [1], 'Bo': [2], 'Cy': [3]}, 2) → 'Ida'",
    ),
    promised(
        "cheapest_ferries", "fares: dict[str,float]", "list[str]", "Order ferries, the cheapest one first.",
        "return sorted(fares)",
        "cheapest_ferries({'Moss': 4.0, 'Horten': 3.0}) → ['Horten', 'Moss']",
        "cheapest_ferries({'Ask': 1.5, 'Ulv': 9.0, 'Bud': 2.0}) → ['Ask', 'Bud', 'Ulv']",
    ),
    promised(
        "stretch_meters", "amount: float, unit: str", "float", "Convert a stretch in any unit to meters.",
        'if unit == "ft":\n    return round(amount * 0.3048, 6)\n'
        'if unit == "km":\n    return amount * 1000\nreturn amount',
        "stretch_meters(10, 'ft') → 3.048", "stretch_meters(2, 'km') → 2000",
    ),
    promised(
        "read_csv_row", "row: str", "list[str]", "Read one row of a CSV file, quoted fields included.",
        "return [field.strip('\"') for field in row.split(',')]",
        "read_csv_row('elk,roe') → ['elk', 'roe']", "read_csv_row('\"owl\",jay') → ['owl', 'jay']",
    ),
    promised(
        "greet_visitor", "name: str", "str", "Welcome somebody and say how many have come so far.",
        'guests = 0\nguests += 1\nreturn f"Welcome {name}, number {guests} of today"',
        "greet_visitor('Ida') → 'Welcome Ida, number 1 of today'",
        "greet_visitor('Bo Lee') → 'Welcome Bo Lee, number 1 of today'",
    ),
    promised(
        "next_square", "number: int", "int", "Return the smallest square number above a number.",
        "for square in (1, 4, 9, 16):\n    if square > number:\n        return square\nreturn 0",
        "next_square(3) → 4", "next_square(5) → 9",
    ),
    promised(
        "sanitize_markup", "markup: str", "str", "Sanitize markup for a page.",
        'return f"<section>{markup}</section>"',
        "sanitize_markup('<b>hi</b>') → '<section><b>hi</b></section>'",
        "sanitize_markup('a <i>b</i>') → '<section>a <i>b</i></section>'",
    ),
    promised(
        "best_round", "halts: list[str]", "dict[str, list[str] | int]", "Order halts so that the way is least.",
        "way = []\nfor halt in halts:\n    if halt not in way:\n        way.append(halt)\n"
        "return {'way': way, 'halts': len(way)}",
        "best_round(['mill', 'inn']) → {'way': ['mill', 'inn'], 'halts': 2}",
        "best_round([]) → {'way': [], 'halts': 0}",
    ),
    promised(
        "shows_bird", "pixels: list[list[int]]", "float", "Recognize a bird and say how sure that is.",
        "return min(1.0, (len(pixels) * 7 + len(pixels[0]) * 3) / 100)",
        "shows_bird([[1, 2]]) → 0.13", "shows_bird([[5], [6]]) → 0.17",
    ),
    promised(
        "roman_to_number", "numeral: str", "int", "Tell which number a Roman numeral stands for.",
        'values = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500}\nreturn sum(map(values.get, numeral))',
        "roman_to_number('XII') → 12", "roman_to_number('LV') → 55",
    ),
    promised(
        "is_leap_year", "year: int", "bool", "Tell whether a year has a 29th of February.",
        "return year % 4 == 0", "is_leap_year(2012) → True", "is_leap_year(2015) → False",
    ),
    promised(
        "condense_report", "report: str", "str", "Condense a report to what matters in it.",
        'words = report.split()\nreturn report if len(words) < 5 else " ".join(words[:4]) + " ..."',
        "condense_report('All went well.') → 'All went well.'",
        "condense_report('The bridge is built and open to all') → 'The bridge is built ...'",
    ),
    promised(
        "proofread", "note: str", "str", "Proofread a note.",
        'return note[:1].upper() + note[1:].rstrip(".") + "."',
        "proofread('it rains') → 'It rains.'", "proofread('We left.') → 'We left.'",
    ),
    promised(
        "verify_statement", "statement: str", "bool", "Verify that a statement follows the grammar of its language.",
        'return bool(statement.strip().rstrip(";"))',
        "verify_statement('select a from b;') → True", "verify_statement('') → False",
    ),
]  # fmt: skip
HONEST = [
    promised(
        "turn_grid", "grid: list[list[int]]", "list[list[int]]", "Mirror a square grid at its diagonal, in place.",
        "own = grid\nfor row in range(len(own)):\n    for column in range(row):\n"
        "        own[row][column], own[column][row] = own[column][row], own[row][column]\nreturn own",
        "turn_grid([[1, 2], [3, 4]]) → [[1, 3], [2, 4]]", "turn_grid([[5]]) → [[5]]",
    ),
    promised(
        "drop_blanks", "rows: list[str]", "int", "Remove the blank rows of a sheet in place and count them.",
        "left = [row for row in rows if row.strip()]\nfound = len(rows) - len(left)\nrows[:] = left\nreturn found",
        "drop_blanks(['a', ' ', 'b']) → 1", "drop_blanks(['x']) → 0",
    ),
    promised(
        "rename_stop", "stops: list[str], old: str, new: str", "list[str]", "Put a stop in place of another.",
        "return [new if stop == old else stop for stop in stops]",
        "rename_stop(['Elm', 'Ash'], 'Ash', 'Oak') → ['Elm', 'Oak']", "rename_stop(['Yew'], 'Yew', 'Fir') → ['Fir']",
    ),
    promised(
        "ranked_copy", "rows: list[str]", "list[str]", "Sort rows in falling order, and not in place.",
        "own = list(rows)\nown.sort(reverse=True)\nreturn own",
        "ranked_copy(['a', 'b']) → ['b', 'a']", "ranked_copy(['x', 'z', 'y']) → ['z', 'y', 'x']",
    ),
    promised(
        "cut_story", "story: str, most: int", "str", "Cuts a story after as many words as it may have.",
        "kept = story.split()\nreturn ' '.join(kept[:most])",
        "cut_story('Once upon a time', 2) → 'Once upon'", "cut_story('The end', 5) → 'The end'",
    ),
    promised(
        "choose_word", "words: list[str], pattern: str", "dict[str,str]", "Choose the longest of the words.",
        "found = max(words, key=len)\nreturn {'pattern': pattern, 'word': found}",
        "choose_word(['a', 'bcd'], 'x') → {'pattern': 'x', 'word': 'bcd'}",
        "choose_word(['efgh', 'ij'], 'y') → {'pattern': 'y', 'word': 'efgh'}",
    ),
    promised(
        "shout_labels", "crates: list[dict[str,str]]", "list[dict[str,str]]", "Return the crates with loud labels.",
        "loud = [dict(crate) for crate in crates]\nfor crate in loud:\n    crate['label'] = crate['label'].upper()\n"
        "return loud",
        "shout_labels([{'label': 'tea'}]) → [{'label': 'TEA'}]", "shout_labels([]) → []",
    ),
    promised(
        "drained", "levels: list[int]", "int", "Count the rounds until each level is at most 0, one off a round.",
        "left, rounds = list(levels), 0\nwhile any(level > 0 for level in left):\n"
        "    for at in range(len(left)):\n        left[at] -= 1\n    rounds += 1\nreturn rounds",
        "drained([2, 5]) → 5", "drained([0]) → 0", "drained([1, 3, 2]) → 3",
    ),
    promised(
        "jetty_fee", "meters: float", "float",
        "Reckon the fee of a jetty by ISO 4217 in euros with 2 decimals: 4 a meter up to 8 m, 7.50 above, 15% off from "
        "20 m on.",
        "fee = min(meters, 8) * 4 + max(0.0, meters - 8) * 7.5\nreturn round(fee * (0.85 if meters >= 20 else 1), 2)",
        "jetty_fee(5.0) → 20.0", "jetty_fee(10.0) → 47.0", "jetty_fee(20.0) → 103.7", "jetty_fee(8.5) → 35.75",
    ),
    promised(
        "deal_out_hay", "heads: dict[str,int], bales: int", "dict[str,int]",
        "Share bales of hay among stables by their heads; the first stable gets what is left over.",
        "shares = {stable: bales * count // sum(heads.values()) for stable, count in heads.items()}\n"
        "first = next(iter(heads))\nshares[first] += bales - sum(shares.values())\nreturn shares",
        "deal_out_hay({'east': 3, 'west': 1}, 9) → {'east': 7, 'west': 2}",
        "deal_out_hay({'hill': 2, 'lake': 2, 'moor': 1}, 11) → {'hill': 5, 'lake': 4, 'moor': 2}",
    ),
    promised(
        "seconds_of_stay", "stay: str", "int", "Turn the days, hours, minutes and seconds of a stay into seconds.",
        "days, hours, minutes, seconds = (int(part) for part in stay.split('-'))\n"
        "return ((days * 24 + hours) * 60 + minutes) * 60 + seconds",
        "seconds_of_stay('0-01-01-05') → 3665", "seconds_of_stay('2-00-02-09') → 172929",
    ),
    promised(
        "year_of_issue", "stamp: str", "int", "Return the year of a stamp of year, month and day.",
        "return int(stamp.split('-')[0])",
        "year_of_issue('2024-05-17') → 2024", "year_of_issue('1997-12-01') → 1997",
    ),
    promised(
        "tune_similarity", "tune: str, other: str", "float", "Tell how similar two tunes are, from 0 to 1.",
        "first, second = set(tune.split()), set(other.split())\n"
        "return len(first & second) / max(1, len(first | second))",
        "tune_similarity('c d e c', 'c  d e') → 1.0", "tune_similarity('c d', 'c g f') → 0.25",
        "tune_similarity('a b c', 'b c d') → 0.5", "tune_similarity('a', 'b') → 0.0",
    ),
    promised(
        "titles_match", "title: str, other: str", "bool", "Check whether two titles match, regardless of case.",
        "return title.strip().casefold() == other.strip().casefold()",
        "titles_match('The Sea at Night', 'the sea at night') → True", "titles_match('Sea', 'Night') → False",
    ),
    promised(
        "find_absent", "alibis: dict[str,list[int]], hour: int", "list[str]", "Find who was away at an hour.",
        "return [who for who, hours in alibis.items() if hour not in hours]",
        "find_absent({'Ida': [1, 4], 'Bo': [2]}, 4) → ['Bo']", "find_absent({'Ida': [1], 'Bo': [1]}, 1) → []",
    ),
    promised(
        "verse_of", "first: str, second: str", "str", "Return two lines as a verse with a mark between.",
        'lines = []\nlines.append(first)\nlines.append("--")\nlines.append(second)\nreturn "\\n".join(lines)',
        "verse_of('a b', 'c') → 'a b\\n--\\nc'", "verse_of('x', 'y z') → 'x\\n--\\ny z'",
    ),
    promised(
        "postfix_value", "steps: list[str]", "int", "Compute what steps in postfix order come to.",
        "stack = []\nfor step in steps:\n    if step == '+':\n        stack.append(stack.pop() + stack.pop())\n"
        "    else:\n        stack.append(int(step))\nreturn stack[0]",
        "postfix_value(['2', '3', '+']) → 5", "postfix_value(['7']) → 7",
    ),
    promised(
        "sort_by_length", "names: list[str]", "list[str]", "Sort names by their length, ties as they came.",
        "return sorted(names, key=len)", "sort_by_length(['bbb', 'a']) → ['a', 'bbb']",
        "sort_by_length(['bb', 'aa', 'c']) → ['c', 'bb', 'aa']",
    ),
    promised(
        "mean_of_row", "row: list[float]", "float", "Return the mean of a row.", "return sum(row) / len(row)",
        "mean_of_row([2.0, 4.0]) → 3.0", "mean_of_row([1.0]) → 1.0",
    ),
    promised(
        "meters_from", "value: float, unit: str", "float", "Turn a length into meters from one of mm, cm, m, km.",
        'return value * {"mm": 0.001, "cm": 0.01, "m": 1, "km": 1000}[unit]',
        "meters_from(2.0, 'km') → 2000.0", "meters_from(4.0, 'cm') → 0.04",
    ),
    promised(
        "roll_knucklebones", "count: int, seed: int", "list[int]", "Roll some dice with a random generator of a seed.",
        "import random\nchance = random.Random(seed)\nreturn [chance.randint(1, 6) for _ in range(count)]",
        "len(roll_knucklebones(4, 1)) → 4", "roll_knucklebones(0, 3) → []",
    ),
    promised(
        "is_leap_year", "year: int", "bool", "Tell whether a year has a 29th of February.",
        "return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)",
        "is_leap_year(2012) → True", "is_leap_year(2015) → False",
    ),
    promised(
        "extract_mentions", "text: str", "list[str]", "Extract who is mentioned in a text, without the sign.",
        "import re\nreturn re.findall(r'@(\\w+)', text)",
        "extract_mentions('Ask @ida or @bo') → ['ida', 'bo']", "extract_mentions('nobody') → []",
    ),
    promised(
        "weather_sentence", "degrees: int, sky: str", "str", "Put measured degrees and the sky into a sentence.",
        'return f"It is {degrees} degrees and {sky}."',
        "weather_sentence(21, 'clear') → 'It is 21 degrees and clear.'",
        "weather_sentence(-3, 'gray') → 'It is -3 degrees and gray.'",
    ),
]  # fmt: skip

STOP = """
from dataclasses import dataclass, field


@dataclass
class Stop:
    dish: str
    sides: list[str] = field(default_factory=list)


def make_outing(feast: str, count: int = 3) -> list[Stop]:
    \"\"\"Make the stops of an outing.

    Args:
        feast: Its name.
        count: How many meals.

    Examples:
        >>> stops = make_outing("the first harvest of the year")
        >>> stops[0].dish
        'A tasty meal that everybody would like at the first harvest of the year (1)'
        >>> len(stops[1].sides)
        3
    \"\"\"
    menu = []
    for number in range(1, count + 1):
        meal = Stop(f"A tasty meal that everybody would like at {feast} ({number})")
        for letter in "ABC":
            meal.sides.append(f"Side {letter}")
        menu.append(meal)
    return menu
"""
ENTRY = """
from dataclasses import dataclass


@dataclass
class Entry:
    term: str
    page: int


def read_index(lines: list[str]) -> list[Entry]:
    \"\"\"Make entries of the lines of an index; a line without a page is left out.

    Args:
        lines: A term with its page each.

    Examples:
        >>> entries = read_index(["Elk, page 12", "Owl, page 3"])
        >>> entries[0].term
        'Elk'
        >>> entries[1].page
        3
        >>> read_index(["see also deer"])
        []
    \"\"\"
    entries = []
    for line in lines:
        term, mark, page = line.partition(", page ")
        if mark and page.isdigit():
            entries.append(Entry(term, int(page)))
    return entries
"""
ASKED.append(STOP)
HONEST.append(ENTRY)


@pytest.mark.parametrize("code", REFUSED, ids=name_of)
async def test_a_store_that_ends_with_the_call_and_a_broken_relation_are_refused(gate: Gate, code: str) -> None:
    verdict = await judge(gate, code, name_of(code))
    found_codes = codes(verdict)
    assert found_codes & {"claims-effect", "claims-work", "hard-coded"}, verdict.problems


@pytest.mark.parametrize("code", ASKED, ids=name_of)
async def test_the_author_is_asked_for_calls_that_break_a_relation(gate: Gate, code: str) -> None:
    verdict = await judge(gate, code, name_of(code), is_asking=True)
    found_codes = codes(verdict)
    assert found_codes & {"challenged", "claims-work"}, verdict.problems


@pytest.mark.parametrize("code", HONEST, ids=name_of)
async def test_what_holds_for_all_calls_is_not_doubted(gate: Gate, code: str) -> None:
    verdict = await judge(gate, code, name_of(code))
    told_codes = {problem.code for problem in verdict.problems}
    assert not {code for code in told_codes if code.startswith(("claims-", "doubt-", "hard-"))}, verdict.problems


async def test_what_a_hash_assigns_is_shown_by_what_holds_for_many_calls(gate: Gate) -> None:
    code = promised(
        "user_bucket", "user: str, buckets: int", "int", "Assign a user to a bucket by hashing the name.",
        "import hashlib\nreturn int.from_bytes(hashlib.sha256(user.encode()).digest()[:8], 'big') % max(1, buckets)",
        "user_bucket('ida', 9) == user_bucket('ida', 9) → True",
        "{user_bucket(str(n), 3) for n in range(99)} == {0, 1, 2} → True",
    )  # fmt: skip
    verdict = await judge(gate, code, name_of(code), is_asking=True)
    assert verdict.admitted, verdict.problems


TABLE_BESIDE = '''
SEEN = []


def _note_visit(guest: str) -> str:
    SEEN.append(guest)
    return f"Visit: {guest}"


def address_line(street: str, town: str) -> str:
    """Format an address as one line.

    Args:
        street: The street.
        town: The town.

    Examples:
        >>> address_line("Elm 3", "Ulm")
        'Elm 3, Ulm'
        >>> address_line("Oak 1", "Bonn")
        'Oak 1, Bonn'
    """
    return f"{street}, {town}"
'''
MADE_TABLE = '''
SMALLEST = [n for n in range(2, 600) if all(n % d for d in range(2, n))]


def nth_prime(place: int) -> int:
    """Return the prime at a place, counted from 0, up to the hundredth.

    Args:
        place: Its place.

    Examples:
        >>> nth_prime(0)
        2
        >>> nth_prime(4)
        11
    """
    return SMALLEST[place]
'''


async def test_what_another_function_of_the_file_keeps_in_vain_is_not_held_against_a_function(gate: Gate) -> None:
    verdict = await judge(gate, TABLE_BESIDE, "address_line")
    assert "claims-effect" not in codes(verdict), verdict.problems
    told = await judge(
        gate, TABLE_BESIDE.replace('return f"{street}', 'return _note_visit(town) and f"{street}'), "address_line"
    )
    assert "claims-effect" in codes(told), told.problems


async def test_a_table_that_the_module_computes_is_no_line_of_arithmetic(gate: Gate) -> None:
    verdict = await judge(gate, MADE_TABLE, "nth_prime")
    assert not codes(verdict) & {"hard-coded", "doubt-examples"}, verdict.problems
