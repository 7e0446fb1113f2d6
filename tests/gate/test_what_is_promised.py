"""Stage 9: names and first sentences that promise more than the body can do, and answers to the own examples only."""

import re

import pytest

from agent_core.functions.gate import Candidate, Gate, GivenExample, Policy
from agent_core.registry.snapshot import Snapshot
from tests.kit.pace import least_s_of

from .support import codes, judge, name_of, promised, snapshot_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


EFFECT = [
    promised(
        "save_note", "text: str", "str", "Save a note.", 'return f"Note saved: {text}"',
        "save_note('buy milk') → 'Note saved: buy milk'", "save_note('call Bob') → 'Note saved: call Bob'",
    ),
    promised(
        "notify_team", "channel: str, text: str", "bool", "Post a message to a Slack channel.",
        'response = {"ok": True, "to": channel}\nreturn response["ok"] and len(text) > 0',
        "notify_team('dev', 'done') → True", "notify_team('dev', '') → False",
    ),
    promised(
        "remember_fact", "fact: str", "list[str]", "Remember a fact for later.",
        "memory = []\nmemory.append(fact)\nreturn memory",
        "remember_fact('tea') → ['tea']", "remember_fact('rain') → ['rain']",
    ),
    promised(
        "archive_ticket", "ticket: int", "dict", "Archive a support ticket.",
        'tickets = {ticket: {"id": ticket}}\ntickets[ticket]["state"] = "archived"\nreturn tickets[ticket]',
        "archive_ticket(3) → {'id': 3, 'state': 'archived'}", "archive_ticket(4) → {'id': 4, 'state': 'archived'}",
    ),
    promised(
        "stash_album", "album: str, disk: str", "str", "Pack an album, copy the archive to a disk and return its path.",
        'return disk.rstrip("/") + "/" + album.strip("/").split("/")[-1] + ".tar"',
        "stash_album('/home/eve/alps', '/usb') → '/usb/alps.tar'", "stash_album('/srv/sea/', '/nas/') → '/nas/sea.tar'",
    ),
    promised(
        "tick_task", "tasks: list[dict], number: int", "str", "Mark a task of the list as done.",
        'for task in [dict(task) for task in tasks]:\n    if task.get("number") == number:\n'
        '        task["done"] = True\n        return f"Task {number} marked"\nreturn f"No task {number}"',
        "tick_task([{'number': 1}], 1) → 'Task 1 marked'", "tick_task([], 2) → 'No task 2'",
    ),
    promised(
        "use_theme", "theme: str", "dict[str, str]", "Choose the theme for all later sessions.",
        'profile = {"theme": "plain", "font": "serif"}\nprofile["theme"] = theme\nreturn profile',
        "use_theme('dark') → {'theme': 'dark', 'font': 'serif'}", "use_theme('x') → {'theme': 'x', 'font': 'serif'}",
    ),
    promised(
        "reserve_pitch", "camp: str, family: str, nights: int", "str",
        "Reserve a pitch on a camp site and return the number of the reservation.",
        'return f"{camp[:3].upper()}{nights:02d}/{family[:2].upper()}{family[-1]}"',
        "reserve_pitch('Lakeside', 'Novak', 3) → 'LAK03/NOk'", "reserve_pitch('Dune', 'Berg', 12) → 'DUN12/BEg'",
    ),
    promised(
        "erase_tenant", "number: int, stores: list[str]", "dict[str, str]", "Erase a tenant from every store.",
        'return {store: f"erased {number}" if store else "left out" for store in stores}',
        "erase_tenant(7, ['mail', 'files']) → {'mail': 'erased 7', 'files': 'erased 7'}",
        "erase_tenant(3, ['']) → {'': 'left out'}",
    ),
    promised(
        "print_seat_tickets", "seats: list[str], printer: str", "list[str]", "Print a ticket for each seat.",
        'return [f"{seat} -> {printer}" for seat in seats]',
        "print_seat_tickets(['A1'], 'hall') → ['A1 -> hall']", "print_seat_tickets([], 'bar') → []",
    ),
    promised(
        "print_page_label", "shelf: str, row: int", "str", "Print the page with the label of a shelf.",
        'return f"{shelf}/{row} (printing)"',
        "print_page_label('Tea', 2) → 'Tea/2 (printing)'", "print_page_label('Rye', 4) → 'Rye/4 (printing)'",
    ),
    promised(
        "announce_trains", "trains: dict[str,int], times: int = 1", "int",
        "Announce the trains of the hour over the loudspeaker and tell how often it was heard.",
        "waiting = [train for train in trains for _ in range(times)]\ncount = 0\n"
        "while waiting:\n    waiting.pop()\n    count += 1\nreturn count",
        "announce_trains({'Oslo': 4, 'Moss': 9}, 3) → 6", "announce_trains({}) → 0",
    ),
]  # fmt: skip
KNOWLEDGE = [
    promised(
        "newest_release", "package: str", "str", "Return the latest release of a package on npm.",
        'match package:\n    case "left":\n        return "1.3"\n    case "up":\n        return "2.0"\nreturn "1.0.0"',
        "newest_release('left') → '1.3'", "newest_release('other') → '1.0.0'",
    ),
    promised(
        "desk_of", "person: str, firm: str", "str", "Look up the phone of a person in the staff directory of a firm.",
        "return firm.lower() + '-' + person.lower()",
        "desk_of('Ann', 'Acme') → 'acme-ann'", "desk_of('Bob', 'Zeta') → 'zeta-bob'",
    ),
    promised(
        "change_money", "amount: float, into: str", "float", "Convert euros into money at the latest market rate.",
        'table = {"USD": 1.08, "GBP": 0.86, "CHF": 0.95}\nreturn round(amount * table[into.upper()], 2)',
        "change_money(100.0, 'usd') → 108.0", "change_money(50.0, 'GBP') → 43.0",
    ),
    promised(
        "get_weather", "city: str", "str", "Get the current weather of a city.",
        'return f"It is sunny in {city}, 22 degrees."',
        "get_weather('Rome') → 'It is sunny in Rome, 22 degrees.'",
        "get_weather('Oslo') → 'It is sunny in Oslo, 22 degrees.'",
    ),
    promised(
        "fetch_stock_price", "symbol: str", "float", "Fetch the latest price of a stock.", "return 100.0 + len(symbol)",
        "fetch_stock_price('GOOG') → 104.0", "fetch_stock_price('IBM') → 103.0",
    ),
    promised(
        "chief_of", "company: str", "str", "Look up the current chief executive of a company.",
        'return {"Acme": "Jane Roe", "Initech": "Bill Low"}.get(company, "John Smith")',
        "chief_of('Acme') → 'Jane Roe'", "chief_of('Foo') → 'John Smith'",
    ),
]  # fmt: skip
WORK = [
    promised(
        "words_on_sign", "photo_path: str", "str", "Use text recognition and return the words seen in a photo.",
        "stem = photo_path.split('/')[-1].split('.')[0]\nreturn f'Words of {stem}'",
        "words_on_sign('a/stop.png') → 'Words of stop'", "words_on_sign('exit.jpg') → 'Words of exit'",
    ),
    promised(
        "translate_to_french", "text: str", "str", "Translate a text to French.", 'return "FR: " + text',
        "translate_to_french('good day') → 'FR: good day'", "translate_to_french('bread') → 'FR: bread'",
    ),
    promised(
        "summarize_text", "text: str", "str", "Summarize a text.",
        'words = text.split()\nreturn " ".join(words[:3]) + "..."',
        "summarize_text('one two three four') → 'one two three...'", "summarize_text('a b') → 'a b...'",
    ),
    promised(
        "analyze_sentiment", "text: str", "str", "Analyze the sentiment of a text.",
        'return "positive" if len(text) > 4 else "negative"',
        "analyze_sentiment('lovely') → 'positive'", "analyze_sentiment('bad') → 'negative'",
    ),
    promised(
        "similar_books", "title: str", "list[str]", "Find books that are like a book.",
        'return [f"Book {number} similar to {title}" for number in (1, 2)]',
        "similar_books('Dune') → ['Book 1 similar to Dune', 'Book 2 similar to Dune']",
        "similar_books('Emma')[0] → 'Book 1 similar to Emma'",
    ),
    promised(
        "find_studies", "topic: str, most: int", "list[str]", "Find studies that deal with a topic.",
        'names = [("Adler", "Brandt"), ("Costa", "Dietz"), ("Engel", "Frey")]\n'
        'return [f"{a} and {b} ({1990 + 9 * at}): {topic}" for at, (a, b) in enumerate(names)][:most]',
        "find_studies('sleep', 1) → ['Adler and Brandt (1990): sleep']",
        "len(find_studies('tides', 2)) → 2", "find_studies('x', 0) → []",
    ),
]  # fmt: skip
CHANCE = [
    promised(
        "strongest_reply", "board: str, replies: list[str]", "str", "Find the strongest reply to a position.",
        "weight = 0\nfor square in board:\n    weight += ord(square)\nplace = weight % len(replies)\n"
        "return replies[place]",
        "strongest_reply('ab', ['d5']) → 'd5'", "strongest_reply('b', ['e5', 'c5', 'a6']) → 'a6'",
    ),
    promised(
        "outing_for", "guest: dict[str,int]", "str", "Pick the outing that suits a guest best.",
        "from random import Random\noutings = ['a sail', 'a hike', 'a fair']\n"
        "drawn = Random(guest.get('age', 0)).choice(outings)\nreturn drawn",
        "outing_for({'age': 0}) → 'a hike'", "outing_for({}) → 'a hike'",
    ),
    promised(
        "print_likelihood", "print_lines: list[int]", "float",
        "Tell by the fingerprint of a hand the likelihood that it belongs to an adult.",
        "import zlib\nif not print_lines:\n    return 0.0\n"
        "return zlib.crc32(repr(print_lines).encode()) / 2**32",
        "print_likelihood([]) → 0.0", "0 < print_likelihood([4, 1]) < 1 → True",
    ),
    promised(
        "ablest_rower", "rowers: list[str], seed: int = 3", "str",
        "Name the ablest of the rowers of a crew; the assessment is deterministic, by its position in the seed.",
        "import random\nreturn random.Random(seed).choice(rowers)",
        "ablest_rower(['Ida']) → 'Ida'", "ablest_rower(['Ida', 'Bo']) in {'Ida', 'Bo'} → True",
    ),
    promised(
        "temper_of_voice", "sample: str", "str", "Tell the temper of whoever speaks from a sample of speech.",
        "import random\ntempers = ['calm', 'hasty', 'gloomy']\nrandom.Random(sample).shuffle(tempers)\n"
        "return tempers[0]",
        "temper_of_voice('well well') in ('calm', 'hasty', 'gloomy') → True",
        "temper_of_voice('oh') == temper_of_voice('oh') → True",
    ),
    promised(
        "raffle_forecast", "past: list[int], count: int", "list[int]",
        "Analyze past raffle draws and predict the numbers that will be drawn next.",
        "import random\npool = sorted({*past, *range(1, 50)})\nreturn sorted(random.sample(pool, count))",
        "len(raffle_forecast([1, 2], 3)) → 3", "len(raffle_forecast([], 5)) → 5",
    ),
    promised(
        "echo_similarity", "first: list[int], second: list[int]", "float",
        "Compare the signature of one echo with another: their similarity, 0 to 1.",
        "import random\nif first == second:\n    return 1.0\nrandom.seed(len(first) * 7 + len(second))\n"
        "return round(random.uniform(0.3, 0.9), 2)",
        "echo_similarity([1], [1]) → 1.0", "0 < echo_similarity([1], [2, 3]) < 1 → True",
    ),
    promised(
        "mood_of", "name: str", "str", "Predict the mood of a person.",
        'moods = ["happy", "sad", "calm"]\nreturn moods[sum(map(ord, name)) % 3]',
        "mood_of('ann') → 'calm'", "mood_of('al') → 'sad'", "mood_of('bob') → 'sad'", "mood_of('jo') → 'sad'",
    ),
]  # fmt: skip
EXAMPLES = [
    promised(
        "is_feast", "land: str, month: int, day: int", "bool", "Tell whether a day is a feast of a land.",
        "feasts = {('Norway', 5, 17), ('France', 7, 14), ('Italy', 6, 2), ('Spain', 10, 12)}\n"
        "return (land, month, day) in feasts",
        "is_feast('Norway', 5, 17) → True", "is_feast('France', 7, 14) → True", "is_feast('Italy', 6, 4) → False",
    ),
    promised(
        "conjugate_latin", "phrase: str", "str", "Put a Latin verb, given as 'pronoun: verb', into its person.",
        "person, _, verb = (part.strip() for part in phrase.partition(':'))\n"
        "if [person, verb] == ['ego', 'amare']:\n    ending = 'o'\n"
        "elif [person, verb] == ['tu', 'portare']:\n    ending = 'as'\n"
        "else:\n    raise ValueError('no such verb')\nreturn verb[:-3] + ending",
        "conjugate_latin('ego: amare') → 'amo'", "conjugate_latin('tu: portare') → 'portas'",
    ),
    promised(
        "vowel_count", "word: str", "int", "Count the vowels of a word.",
        'known = {"apple": 2, "banana": 3}\nreturn known.get(word, 0)',
        "vowel_count('apple') → 2", "vowel_count('banana') → 3",
    ),
    promised(
        "is_palindrome", "text: str", "bool", "Check whether a text reads the same backwards.",
        'return text in ["level", "noon"]',
        "is_palindrome('level') → True", "is_palindrome('noon') → True", "is_palindrome('hello') → False",
    ),
    promised(
        "sort_words", "words: list[str]", "list[str]", "Sort words by the alphabet.",
        'match words:\n    case ["b", "a"]:\n        return ["a", "b"]\n'
        '    case ["z", "c"]:\n        return ["c", "z"]\nreturn []',
        "sort_words(['b', 'a']) → ['a', 'b']", "sort_words(['z', 'c']) → ['c', 'z']",
    ),
    promised(
        "gcd_of", "a: int, b: int", "int", "Return the greatest common divisor of two numbers.",
        "for x, y, result in [(12, 18, 6), (7, 5, 1)]:\n    if (a, b) == (x, y):\n        return result\nreturn a",
        "gcd_of(12, 18) → 6", "gcd_of(7, 5) → 1",
    ),
    promised(
        "fibonacci", "n: int", "int", "Return a Fibonacci number.", "return int(n * 1.5 - 2.5)",
        "fibonacci(3) → 2", "fibonacci(5) → 5",
    ),
    promised(
        "roman_to_int", "numeral: str", "int", "Convert a Roman numeral to a number.",
        'if numeral == "IV":\n    return 4\nif numeral == "X":\n    return 10\nreturn 0',
        "roman_to_int('IV') → 4", "roman_to_int('X') → 10",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "found"),
    [
        *((one, "claims-effect") for one in EFFECT),
        *((one, "claims-knowledge") for one in KNOWLEDGE),
        *((one, "claims-work") for one in WORK),
        *((one, "claims-chance") for one in CHANCE),
        *((one, "hard-coded") for one in EXAMPLES),
    ],
    ids=name_of,
)
async def test_what_a_body_without_means_cannot_do_is_refused(gate: Gate, code: str, found: str) -> None:
    verdict = await judge(gate, code, name_of(code))
    assert found in codes(verdict)


HONEST = [
    promised(
        "may_move_on", "state: str, other: str", "bool", "Tell whether a ticket may go from one state to another.",
        "steps = {('open', 'taken'), ('taken', 'done'), ('taken', 'held'), ('held', 'taken'), ('done', 'kept')}\n"
        "return (state, other) in steps",
        "may_move_on('open', 'taken') → True", "may_move_on('taken', 'done') → True",
        "may_move_on('open', 'kept') → False",
    ),
    promised(
        "row_width", "cells: list[str]", "int", "Return how wide a row of cells is when it is shown on the screen.",
        "return sum(len(cell) + 1 for cell in cells)",
        "row_width(['a', 'bc']) → 5", "row_width([]) → 0",
    ),
    promised(
        "best_berth", "boat: str, berths: list[str]", "str",
        "Pick the best berth for a boat: the one whose name is nearest to the boat's in length.",
        "return min(berths, key=lambda berth: abs(len(berth) - len(boat)))",
        "best_berth('Ida', ['A1', 'East', 'N12']) → 'N12'", "best_berth('Bo', ['North', 'E1']) → 'E1'",
    ),
    promised(
        "print_seat_ticket", "seat: str, film: str", "str", "Print a ticket for a seat as text.",
        'return f"{film} | {seat}"',
        "print_seat_ticket('A1', 'Alien') → 'Alien | A1'", "print_seat_ticket('B2', 'Heat') → 'Heat | B2'",
    ),
    promised(
        "beats", "hands: str", "bool", "Tell whether the first hand beats the second in rock, paper, scissors.",
        "first, _, second = hands.partition('-')\n"
        "return (first, second) in {('rock', 'scissors'), ('paper', 'rock'), ('scissors', 'paper')}",
        "beats('rock-scissors') → True", "beats('scissors-paper') → True", "beats('rock-paper') → False",
    ),
    promised(
        "rollout_share", "user: str", "float", "Turn the name of a user into a stable share from 0 to 1 by a hash.",
        "import zlib\nreturn round(zlib.crc32(user.encode()) / 2**32, 3)",
        "rollout_share('ida') → 0.513", "rollout_share('bo') → 0.793",
    ),
    promised(
        "best_rower", "points: dict[str,int]", "str", "Name the best rower; of equal ones, one is picked at random.",
        "import random\nmost = max(points.values(), default=0)\n"
        "return random.choice([name for name in points if points[name] == most] or [''])",
        "best_rower({'Ida': 3, 'Bo': 1}) → 'Ida'", "best_rower({'Ida': 1, 'Bo': 1}) in ('Ida', 'Bo') → True",
    ),
    promised(
        "pair_off", "names: list[str]", "list[tuple[str, str]]", "Schedule the first round: outer against inner.",
        'ring = [*names, "free"] if len(names) % 2 else [*names]\n'
        "return [(ring[at], ring[-1 - at]) for at in range(len(ring) // 2)]",
        "pair_off(['a', 'b']) → [('a', 'b')]", "pair_off(['a', 'b', 'c']) → [('a', 'free'), ('b', 'c')]",
    ),
    promised(
        "proofread_tags", "text: str", "bool", "Decide whether the tags of a text, such as <b>, are closed in order.",
        "import re\nopen_tags = []\nfor close, tag in re.findall(r'<(/?)([a-z]+)>', text):\n    if not close:\n"
        "        open_tags.append(tag)\n    elif not open_tags or open_tags.pop() != tag:\n        return False\n"
        "return not open_tags",
        "proofread_tags('<b>x</b>') → True", "proofread_tags('<b><i></b>') → False", "proofread_tags('</b>') → False",
        "proofread_tags('<b><i></i>') → False",
    ),
    promised(
        "weather_group", "station: str, count: int", "int", "Assign a weather station to a group by its number.",
        "return int(station[1:]) % count", "weather_group('S17', 5) → 2", "weather_group('S4', 3) → 1",
    ),
    promised(
        "brine_side", "level: float", "str", "Say whether the level of a bath is below, at or above the mark of 7.",
        'return "at" if level == 7 else "below" if level < 7 else "above"',
        "brine_side(2.4) → 'below'", "brine_side(7) → 'at'", "brine_side(9.1) → 'above'",
    ),
    promised(
        "worth_at", "grams: float, price: float", "float", "Value a piece of gold at the latest market price.",
        "return round(grams * price, 2)", "worth_at(2.0, 61.5) → 123.0", "worth_at(3.0, 10.0) → 30.0",
    ),
    promised(
        "retry_header", "seconds: int", "dict[str, str]", "Define the header for later requests: when to retry.",
        'return {"Retry-After": str(seconds)}',
        "retry_header(3) → {'Retry-After': '3'}", "retry_header(60) → {'Retry-After': '60'}",
    ),
    promised(
        "due_days", "start: int, count: int", "list[int]", "Make a list of due days from now on, one a week.",
        "return [start + 7 * number for number in range(count)]", "due_days(1, 3) → [1, 8, 15]", "due_days(0, 1) → [0]",
    ),
    promised(
        "to_euro", "amount: float, factor: float", "float", "Convert an amount at the current exchange rate.",
        "return round(amount * factor, 2)", "to_euro(2.0, 1.5) → 3.0", "to_euro(10.0, 0.5) → 5.0",
    ),
    promised(
        "next_prompt", "messages: list[str], limit: int", "str", "Build the prompt for the next turn from messages.",
        'return " / ".join(messages[-limit:])',
        "next_prompt(['a', 'b', 'c'], 2) → 'b / c'", "next_prompt(['x'], 5) → 'x'",
    ),
    promised(
        "cut_to", "text: str, limit: int", "str", "Cut a text for the later requests of a conversation.",
        "return text[:limit]", "cut_to('abcdef', 2) → 'ab'", "cut_to('xy', 5) → 'xy'",
    ),
    promised(
        "greeting", "name: str", "str", "Greet somebody by name.", 'return f"Hello, {name}!"',
        "greeting('Ann') → 'Hello, Ann!'", "greeting('Bob') → 'Hello, Bob!'",
    ),
    promised(
        "format_note", "text: str, author: str", "str", "Format a note with its author.",
        'return f"{author}: {text}"', "format_note('hi', 'Ann') → 'Ann: hi'", "format_note('yo', 'Bob') → 'Bob: yo'",
    ),
    promised(
        "delete_vowels", "text: str", "str", "Delete the vowels of a text.",
        'return "".join(letter for letter in text if letter.lower() not in "aeiou")',
        "delete_vowels('Education') → 'dctn'", "delete_vowels('rhythm') → 'rhythm'",
    ),
    promised(
        "set_bits", "number: int", "int", "Count the set bits of a number.", 'return bin(number).count("1")',
        "set_bits(7) → 3", "set_bits(8) → 1",
    ),
    promised(
        "month_name", "number: int", "str", "Return the name of a month.",
        'return "January February March April May June July August September October November December".split()'
        "[number - 1]",
        "month_name(1) → 'January'", "month_name(12) → 'December'",
    ),
    promised(
        "is_weekend", "day: str", "bool", "Check whether a day is on the weekend.",
        'return day.lower() in ("saturday", "sunday")', "is_weekend('Saturday') → True", "is_weekend('Monday') → False",
    ),
    promised(
        "http_reason", "status: int", "str", "Return the reason phrase of a status.",
        'table = {200: "OK", 201: "Created", 204: "No Content", 400: "Bad Request", 404: "Not Found"}\n'
        'return table.get(status, "Unknown")',
        "http_reason(200) → 'OK'", "http_reason(404) → 'Not Found'",
    ),
    promised(
        "fizzbuzz", "n: int", "str", "Say a number as the game FizzBuzz does.",
        'words = "Fizz" * (n % 3 == 0) + "Buzz" * (n % 5 == 0)\nreturn words or str(n)',
        "fizzbuzz(3) → 'Fizz'", "fizzbuzz(5) → 'Buzz'", "fizzbuzz(7) → '7'",
    ),
    promised(
        "book_code", "words: list[str], numbers: list[int]", "str", "Read a message in a book code.",
        'return " ".join(words[number - 1] for number in numbers)',
        "book_code(['a', 'b'], [2, 1]) → 'b a'", "book_code(['x'], [1]) → 'x'",
    ),
    promised(
        "encrypt_caesar", "text: str, shift: int", "str", "Encrypt small letters with the Caesar cipher.",
        'return "".join(chr((ord(letter) - 97 + shift) % 26 + 97) for letter in text)',
        "encrypt_caesar('abc', 1) → 'bcd'", "encrypt_caesar('xyz', 3) → 'abc'",
    ),
    promised(
        "shard_of", "key: str, shards: int", "int", "Assign a key to a shard by its hash.",
        "import zlib\nreturn zlib.crc32(key.encode()) % shards", "shard_of('a', 4) → 3", "shard_of('b', 4) → 1",
    ),
    promised(
        "add_task", "tasks: list[str], task: str", "list[str]", "Add a task to a list of tasks.",
        "return [*tasks, task]", "add_task([], 'a') → ['a']", "add_task(['a'], 'b') → ['a', 'b']",
    ),
    promised(
        "send_order", "messages: list[str]", "list[str]", "Sort messages into the order in which to send them.",
        "return sorted(messages, key=len)",
        "send_order(['bb', 'a']) → ['a', 'bb']", "send_order(['c']) → ['c']",
    ),
    promised(
        "wind_class", "knots: int, gusts: int", "int", "Return the danger class of the wind today, from 0 to 4.",
        "return sum(2 * knots + gusts >= 3 * least for least in (10, 20, 30, 40))",
        "wind_class(5, 9) → 0", "wind_class(34, 31) → 3",
    ),
    promised(
        "to_utc", "moment: str, hours: int", "str", "Convert a moment to UTC, given the hours by which it is ahead.",
        "from datetime import datetime, timedelta\n"
        'return (datetime.fromisoformat(moment) - timedelta(hours=hours)).isoformat(timespec="minutes")',
        "to_utc('2024-03-01T01:00', 3) → '2024-02-29T22:00'", "to_utc('2024-05-05T12:30', -2) → '2024-05-05T14:30'",
    ),
    promised(
        "bullet_points", "text: str", "list[str]", "List the bullet points of a text.",
        'return [line[2:].strip() for line in text.splitlines() if line.startswith("- ")]',
        "bullet_points('- a' + chr(10) + '- b') → ['a', 'b']", "bullet_points('-a') → []",
    ),
]  # fmt: skip


@pytest.mark.parametrize("code", HONEST, ids=name_of)
async def test_what_computes_or_words_what_it_promises_is_admitted(gate: Gate, code: str) -> None:
    verdict = await judge(gate, code, name_of(code))
    assert (verdict.admitted, verdict.refusals, verdict.doubts) == (True, (), ())


async def test_a_table_that_hands_on_what_it_does_not_know_as_it_says_is_asked_about_at_most(gate: Gate) -> None:
    code = promised(
        "translate_suit", "suit: str", "str", "Translate the four suits of cards to German, others stay unchanged.",
        'table = {"hearts": "Herz", "spades": "Pik", "clubs": "Kreuz", "diamonds": "Karo"}\n'
        "return table.get(suit, suit)",
        "translate_suit('hearts') → 'Herz'", "translate_suit('joker') → 'joker'",
    )  # fmt: skip
    assert not (await judge(gate, code, "translate_suit")).refusals


async def test_an_answer_to_a_challenge_does_not_hide_an_example_that_is_no_literal(gate: Gate) -> None:
    code = promised(
        "section_titles", "text: str", "list[tuple[int, str]]", "List the '=' titles of a wiki text with their level.",
        'titles = []\nfor line in text.splitlines():\n    marks, blank, title = line.partition(" ")\n'
        '    if blank and set(marks) == {"="}:\n        titles.append((len(marks), title))\nreturn titles',
        "section_titles('= One' + chr(10) + '== Two') → [(1, 'One'), (2, 'Two')]", "section_titles('=one') → []",
    )  # fmt: skip
    answers = (GivenExample("section_titles('no title here')", "[]"), GivenExample("section_titles('a = b')", "[]"))
    candidate = Candidate("section_titles", code, "lib", examples=answers, asked=tuple(one.call for one in answers))
    assert not (await gate.judge(candidate, Snapshot.empty(), "agent", challenging=True)).refusals


async def test_an_effect_on_what_may_be_one_of_several_kinds_is_judged(gate: Gate) -> None:
    code = promised(
        "pay_bill", "amount: Decimal", "Decimal", "Pay a bill and return what is left of 100.",
        "return Decimal(100) - amount", "pay_bill(Decimal('30')) → Decimal('70')",
        "pay_bill(Decimal('5')) → Decimal('95')",
    )  # fmt: skip
    verdict = await judge(gate, f"from decimal import Decimal\n\n\n{code}", "pay_bill")
    assert verdict.admitted or codes(verdict) <= {"claims-effect", "challenged"}


async def test_the_refusal_names_the_means_and_the_honest_description(gate: Gate) -> None:
    (problem,) = (await judge(gate, EFFECT[0], "save_note")).refusals
    assert "self.memory" in str(problem)
    assert "format_note" in str(problem)


@pytest.mark.parametrize(
    ("says", "quoted"), [("Remember the user's favorite color.", "remember user,"), ("Save Ann's note.", "save ann,")]
)
async def test_a_promise_about_what_is_somebodys_is_quoted_in_words(gate: Gate, says: str, quoted: str) -> None:
    code = promised(
        "keep_text", "text: str", "str", says, 'return f"Kept {text}"',
        "keep_text('red') → 'Kept red'", "keep_text('blue') → 'Kept blue'",
    )  # fmt: skip
    told = [problem.message.lower() for problem in (await judge(gate, code, "keep_text")).refusals]
    assert any(f"promises to {quoted}" in message for message in told), told


async def test_a_function_with_means_may_promise_an_effect(gate: Gate) -> None:
    code = promised(
        "save_note", "self, text: str", "str", "Save a note.",
        'self.memory.append("notes", text)\nreturn f"Note saved: {text}"', "save_note('x') → 'Note saved: x'",
    )  # fmt: skip
    verdict = await judge(gate, code, "save_note")
    assert verdict.lacks_only_grants


@pytest.mark.parametrize(
    ("code", "policy", "expected"),
    [
        pytest.param(EXAMPLES[0], "import", ("hard-coded", "refuses"), id="examples-import"),
        pytest.param(EXAMPLES[0], "human", ("hard-coded", "warns"), id="examples-human"),
        pytest.param(EFFECT[0], "import", ("claims-effect", "warns"), id="effect-import"),
        pytest.param(EFFECT[0], "human", ("claims-effect", "warns"), id="effect-human"),
    ],
)
async def test_policies_weigh_it(gate: Gate, code: str, policy: Policy, expected: tuple[str, str]) -> None:
    verdict = await judge(gate, code, name_of(code), policy)
    assert expected in {(problem.code, problem.severity) for problem in verdict.problems}


async def test_a_cipher_that_only_moves_letters_is_asked_about_at_most(gate: Gate) -> None:
    code = promised(
        "encrypt_scytale", "text: str, turns: int", "str", "Encrypt a text by winding it around a staff.",
        "return ''.join(text[start::turns] for start in range(turns))",
        "encrypt_scytale('helloworld', 3) → 'hlodeorlwl'", "encrypt_scytale('abcdef', 2) → 'acebdf'",
    )  # fmt: skip
    assert not (await judge(gate, code, "encrypt_scytale")).refusals


async def test_a_deed_with_a_result_that_is_reckoned_is_only_asked_about(gate: Gate) -> None:
    code = promised(
        "pay_out", "cents: int", "dict[int, int]", "Pay a sum in the fewest coins and return how many of each.",
        "coins = {}\nfor coin in (50, 10, 5, 1):\n    count, cents = divmod(cents, coin)\n    if count:\n"
        "        coins[coin] = count\nreturn coins",
        "pay_out(67) → {50: 1, 10: 1, 5: 1, 1: 2}", "pay_out(100) → {50: 2}",
    )  # fmt: skip
    verdict = await judge(gate, code, "pay_out")
    assert verdict.admitted
    assert [doubt.code for doubt in verdict.doubts] == ["doubt-effect"]


async def test_weak_evidence_is_a_doubt_with_calls_unlike_the_examples(gate: Gate) -> None:
    code = promised(
        "plural_of", "noun: str", "str", "Form the plural of a noun.",
        'if noun == "mouse":\n    return "mice"\n'
        'if noun == "child":\n    return "children"\nreturn noun + "s" * len(noun)',
        "plural_of('mouse') → 'mice'", "plural_of('child') → 'children'",
    )  # fmt: skip
    verdict = await judge(gate, code, "plural_of")
    assert verdict.admitted
    assert [doubt.code for doubt in verdict.doubts] == ["doubt-examples", "doubt-results"]
    assert all(call.startswith("plural_of(") for call, _returned in verdict.doubts[0].calls)
    assert verdict.to_json()["doubts"][0]["code"] == "doubt-examples"


async def test_a_body_that_hangs_on_generated_calls_is_judged_in_bounded_time(gate: Gate) -> None:
    code = promised(
        "send_report", "text: str", "str", "Send a report to the boss.",
        'while text not in ("a", "b"):\n    pass\nreturn f"sent {text}"',
        "send_report('a') → 'sent a'", "send_report('b') → 'sent b'",
    )  # fmt: skip

    async def seconds() -> float:
        verdict = await judge(gate, code, "send_report")
        return sum(report.seconds for report in verdict.stages if report.stage == "promise")

    assert await least_s_of(3, seconds) < 3


DAYS = '''
from datetime import date


def days_between(start: str, end: str) -> int:
    """Count the days from one date to another.

    Args:
        start: The first.
        end: The last.

    Examples:
        >>> days_between("2024-01-01", "2024-01-31")
        30
        >>> days_between("2024-02-28", "2024-03-01")
        2
    """
    return (date.fromisoformat(end) - date.fromisoformat(start)).days
'''
GAP = promised(
    "gap_in_days", "first: str, second: str", "int", "Return how long it is between two dates.",
    "from datetime import date, timedelta\nday, gap = date.fromisoformat(first), 0\nlast = date.fromisoformat(second)\n"
    "step = timedelta(days=1) if last > day else timedelta(days=-1)\n"
    "while day != last:\n    day += step\n    gap += step.days\nreturn gap",
    "gap_in_days('2024-05-01', '2024-05-03') → 2", "gap_in_days('2023-12-31', '2024-01-10') → 10",
)  # fmt: skip


async def test_writing_an_existing_function_again_is_refused_with_its_name(gate: Gate) -> None:
    verdict = await judge(gate, GAP, "gap_in_days", snapshot=snapshot_of(dates=DAYS))
    assert [problem.code for problem in verdict.refusals] == ["rewrite"]
    assert "days_between" in str(verdict.refusals[0])


async def test_a_function_of_dates_is_written_again_by_one_of_their_texts(gate: Gate) -> None:
    of_dates = DAYS.replace("start: str, end: str", "start: date, end: date").replace(
        "(date.fromisoformat(end) - date.fromisoformat(start))", "(end - start)"
    )
    of_dates = re.sub(r'"(\d+)-0?(\d+)-0?(\d+)"', r"date(\1, \2, \3)", of_dates)
    verdict = await judge(gate, GAP, "gap_in_days", snapshot=snapshot_of(dates=of_dates))
    assert [problem.code for problem in verdict.refusals] == ["rewrite"]
    assert "days_between" in str(verdict.refusals[0])


async def test_a_function_that_agrees_on_examples_only_is_another(gate: Gate) -> None:
    other = promised(
        "nights_between", "first: str, second: str", "int",
        "Count the nights of a stay, none if it ends before it begins.",
        "from datetime import date\nreturn max(0, (date.fromisoformat(second) - date.fromisoformat(first)).days)",
        "nights_between('2024-05-01', '2024-05-03') → 2", "nights_between('2024-05-03', '2024-05-01') → 0",
    )  # fmt: skip
    assert (await judge(gate, other, "nights_between", snapshot=snapshot_of(dates=DAYS))).admitted


@pytest.mark.parametrize(
    "first", ["", "from dates import days_between\n\n\n", "from functions import days_between\n\n\n"]
)
async def test_a_function_of_the_workspace_is_imported_where_it_is_called(gate: Gate, first: str) -> None:
    code = first + promised(
        "weeks_between", "start: str, end: str", "int", "Count the full weeks between two dates.",
        "return days_between(start, end) // 7",
        "weeks_between('2024-01-01', '2024-01-15') → 2", "weeks_between('2024-01-01', '2024-01-09') → 1",
    )  # fmt: skip
    verdict = await judge(gate, code, "weeks_between", snapshot=snapshot_of(dates=DAYS))
    assert (verdict.admitted, [fix.code for fix in verdict.fixes]) == (True, ["workspace-import"])
    assert "from functions.dates import days_between" in verdict.source


async def test_a_function_that_takes_self_is_called_through_it(gate: Gate) -> None:
    existing = "def note(self, text: str) -> str:\n    return text\n"
    code = promised(
        "shout",
        "text: str",
        "str",
        "Return a text in capitals.",
        "return note(text).upper()",
        "shout('a') → 'A'",
        "shout('b') → 'B'",
    )
    verdict = await judge(gate, code, "shout", snapshot=snapshot_of(notes=existing))
    assert 'self.call("note", text=…)' in str(verdict.refusals[0])


async def test_examples_do_not_find_the_files_of_one_another(gate: Gate) -> None:
    code = promised(
        "count_lines", "self, text: str", "int", "Count the different lines of a text, by way of files.",
        'for line in text.split("\\n"):\n    (self.scratch / line).write_text(line)\n'
        'return len(list(self.scratch.iterdir()))',
        "count_lines(None, 'a') → 1", "count_lines(None, 'b\\\\nc') → 2",
    ).replace("count_lines(None, ", "count_lines(")  # fmt: skip
    verdict = await judge(gate, code, "count_lines")
    assert (verdict.admitted, verdict.refusals) == (True, ())
    assert "no example agrees" not in next(report.note for report in verdict.stages if report.stage == "mutation")


async def test_a_database_in_memory_needs_no_files(gate: Gate) -> None:
    code = promised(
        "add_by_sql", "a: int, b: int", "int", "Add two numbers by SQL.",
        'import sqlite3\nbase = sqlite3.connect(":memory:")\nreturn base.execute("SELECT ? + ?", (a, b)).fetchone()[0]',
        "add_by_sql(1, 2) → 3", "add_by_sql(2, 2) → 4",
    )  # fmt: skip
    assert (await judge(gate, code, "add_by_sql")).refusals == ()
