"""The script of the walk through grants: what the user types, what the scripted model answers, what is shown."""

from dataclasses import dataclass, field
from typing import TypeAlias

from tests.kit.steps import Ask, Say, Script, Wanted

PORT = 8231
PLACE = f"localhost:{PORT}"
KEY = "tide-4471-harbour"
HEAD = """\
# A walkthrough of grants

Four functions get access here: to a weather service, to a folder of CSV files, to a package, and to a secret. The
screens were copied from a terminal of 100 × 30 by `python benchmarks/grants_walk.py`; the service, the package index
and the model are stand-ins, everything else is real. [Grants](grants.md) has the rules.
"""
FILES = {
    "sales/october.csv": "day,item,amount\n1,tea,4.50\n2,bread,3.20\n3,tea,-4.50\n",
    "sales/november.csv": "day,item,amount\n4,salt,1.10\n5,tea,9.00\n",
}


@dataclass(frozen=True, slots=True)
class Typed:
    """A line at the prompt."""

    text: str


@dataclass(frozen=True, slots=True)
class Key:
    """The answer to a question."""

    key: str
    until: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Waited:
    """Wait until the text has appeared `count` times."""

    text: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Shown:
    """Show the screen from the last row that contains `since`, once `when` is on it."""

    says: str
    when: str
    since: str = "› "


@dataclass(frozen=True, slots=True)
class Shell:
    """A command in another terminal, and what is typed when it asks."""

    says: str
    command: tuple[str, ...]
    hidden: str = ""


Act: TypeAlias = Typed | Key | Waited | Shown | Shell


@dataclass(frozen=True, slots=True)
class Part:
    """One section of the walk."""

    title: str
    acts: tuple[Act, ...]
    model: Script = field(default_factory=list)


WEATHER = f'''def weather(self, city: str) -> str:
    """Say what the weather is in a city.

    Args:
        city: The name of a city.

    Returns:
        The temperature in a sentence.
    """
    found = self.fetch(f"http://{PLACE}/v1/{{city.lower()}}").json()
    return f"{{city}}: {{found['celsius']}} °C"
'''
ROUNDED = WEATHER.replace("{found['celsius']}", "{round(found['celsius'])}")
SALES = '''import csv
from pathlib import Path


def sales_total() -> float:
    """Add up the amounts of all CSV files in the folder sales.

    Returns:
        Their sum.
    """
    total = 0.0
    for file in sorted(Path("sales").glob("*.csv")):
        with file.open() as rows:
            total += sum(float(row["amount"]) for row in csv.DictReader(rows))
    return round(total, 2)
'''
SPARK = '''def spark(numbers: list[float]) -> str:
    """Draw numbers as a line of small bars.

    Args:
        numbers: What to draw.

    Returns:
        One bar a number.

    Examples:
        >>> spark([1, 2, 3])
        '▁▅█'
        >>> spark([8, 1])
        '█▁'
    """
    import sparkle

    return sparkle.line(numbers)
'''
STATION = f'''def harbour_wind(self) -> dict[str, object]:
    """Ask the harbour's own station for the wind.

    Returns:
        What the station says.
    """
    return self.fetch("http://{PLACE}/station", headers={{"X-Key": self.secret("STATION_KEY")}}).json()
'''


def _made(name: str, code: str, module: str, reason: str) -> Ask:
    given = {
        "function_name": name,
        "function_code_with_docstring": code,
        "module_name": module,
        "reason": reason,
    }
    return Ask(Wanted("create_function", given))


POSITIVE = {
    "function_name": "sales_total",
    "changes": [
        {
            "old_text": "csv.DictReader(rows))",
            "new_text": 'csv.DictReader(rows) if float(row["amount"]) > 0)',
        },
    ],
    "reason": "leave out what was given back",
}
KEPT = "→ yes, kept"
WALK = (
    Part(
        "A weather function",
        (
            Typed(f"What is the weather in Oslo? Ask http://{PLACE}/v1/oslo."),
            Shown(
                "The function is written and analyzed, and none of it has run:", "Press o (once)"
            ),
            Key("w", "Type the reason"),
            Typed("Whole degrees, please."),
            Waited("→ no: “Whole degrees"),
            Shown(
                "`w` means no, with a word to the model, which sends a better version:",
                "Press o (once)",
                "✗ ",
            ),
            Key("y", KEPT),
            Waited("∙ "),
            Shown("`y` grants it permanently, and the turn continues.", "∙ ", "→ yes"),
        ),
        [
            _made("weather", WEATHER, "outside", "to say what the weather is in Oslo"),
            _made("weather", ROUNDED, "outside", "the same in whole degrees"),
            Ask(Wanted("weather", {"city": "Oslo"})),
            Say("It is 4 °C in Oslo."),
        ],
    ),
    Part(
        "A folder of CSV files",
        (
            Typed("How much did we sell in all? The files are in sales/."),
            Shown(
                "This function would see `sales/`, read-only, and none of your other files:",
                "Press o (once)",
            ),
            Key("y", KEPT, 2),
            Waited("∙ ", 2),
            Typed("Leave out what was given back."),
            Shown(
                "Another version needs the same. You see the difference, and the same keys approve it again:",
                "Press o (once)",
            ),
            Key("y", KEPT, 3),
            Waited("∙ ", 3),
        ),
        [
            _made("sales_total", SALES, "books", "to add up the sales"),
            Ask(Wanted("sales_total")),
            Say("We sold for 13.30 in all."),
            Ask(Wanted("edit_function", POSITIVE)),
            Ask(Wanted("sales_total")),
            Say("Without what was given back: 17.80."),
        ],
    ),
    Part(
        "A package",
        (
            Typed("Draw 3, 1, 4, 1, 5 as a line of bars; the package sparkle can do that."),
            Shown(
                "The question shows what would be installed, with all dependencies:",
                "Press o (once)",
            ),
            Key("d", "The full source:"),
            Key("y", "Trying to import them"),
            Waited("∙ ", 4),
            Shown(
                (
                    "`d` shows the source, too, page by page. The package is available only to this function, whose "
                    "examples ran with it:"
                ),
                "∙ created sp",
                "✓ made spark",
            ),
        ),
        [
            _made("spark", SPARK, "drawing", "to draw the numbers"),
            Ask(Wanted("spark", {"numbers": [3, 1, 4, 1, 5]})),
            Say("Here they are: ▅▁▆▁█"),
        ],
    ),
    Part(
        "A secret",
        (
            Shell(
                "A secret is set outside the conversation; what you type is not shown.",
                ("knapper", "secrets", "set", "STATION_KEY"),
                KEY,
            ),
            Typed(f"How is the wind at the harbour? Ask http://{PLACE}/station, with STATION_KEY."),
            Shown(
                "Both are requested at once: the host, and the secret by name.", "Press o (once)"
            ),
            Key("y", KEPT, 5),
            Waited("∙ ", 5),
            Shown(
                "The station returns the key, and neither you nor the model sees it:", "∙ ", "→ yes"
            ),
        ),
        [
            _made("harbour_wind", STATION, "outside", "to ask the harbour's station"),
            Ask(Wanted("harbour_wind")),
            Say("The wind at the harbour is 7.5 m/s."),
        ],
    ),
    Part(
        "Afterwards",
        (
            Shell(
                "The file that travels with the code, to be reviewed with it:",
                ("tail", "-n", "+5", "functions/grants.toml"),
            ),
            Shell(
                "Revoke a grant:",
                ("knapper", "functions", "revoke", "harbour_wind", "--secret", "STATION_KEY"),
            ),
        ),
    ),
)
