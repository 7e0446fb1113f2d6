"""`python -m tests.attacks.table` runs every setting and writes what it found into docs/security.md, between marks."""

import re
import sys
from collections.abc import Iterator
from typing import Final

from tests.attacks.control import in_jail
from tests.attacks.rows import Row, rows
from tests.attacks.settings import SETTINGS, Results, Unable, leaks, results
from tests.attacks.world import REPOSITORY

PAGE: Final = REPOSITORY / "docs" / "security.md"
BEGIN, END = "<!-- attacks: written by `python -m tests.attacks.table` -->", "<!-- attacks: end -->"
_COUNTS = re.compile(r"^\| (\w+): .*? \| (\d+) \|", re.MULTILINE)


def page(found: dict[tuple[str, str], Results | str], proved: Results) -> str:
    """The part of the page, from what the runs found."""
    return "\n".join([BEGIN, "", *_table(found, proved), "", *_remarks(found), "", END])


def _table(found: dict[tuple[str, str], Results | str], proved: Results) -> Iterator[str]:
    settings = " | ".join(f"`{level}`, {user}" for level, user in SETTINGS)
    yield f"| family | attempts | {settings} | shown to work without its layers |"
    yield f"|---|---|{'---|' * len(SETTINGS)}---|"
    for family in (*dict.fromkeys(row.family for row in rows()), ""):
        mine = [row for row in rows() if family in ("", row.family)]
        cells = [_contained(found[setting], mine) for setting in SETTINGS]
        works = sum(row.seen in proved.get(row.label, {}) for row in mine)
        name = f"{family}: {mine[0].about}" if family else "**all**"
        yield f"| {name} | {len(mine)} | {' | '.join(cells)} | {works} |"


def _contained(found: Results | str, mine: list[Row]) -> str:
    if isinstance(found, str):
        return "–"
    out = {row.label for row, _reached in leaks(found) if row}
    return str(sum(row.label not in out and row.seen != "inherent" for row in mine))


def _remarks(found: dict[tuple[str, str], Results | str]) -> Iterator[str]:
    for level in ("full", "core"):
        out = _names(found, level)
        yield f"What gets out at `{level}`: {'nothing.' if not out else ''}"
        yield from (f"- *{_words(row)}*: {row.leaks_at_core or 'not yet known'}" for row in out)
        yield ""
    yield "What works everywhere, by design, and is not counted as contained:"
    yield from (f"- *{_words(row)}*: {row.remark}" for row in rows() if row.seen == "inherent")
    yield ""
    apart = [row for row in rows() if row.seen == "apart"]
    yield f"{len(apart)} attempts have no run without layers, for the reasons that `tests/attacks/families/` gives."


def _names(found: dict[tuple[str, str], Results | str], level: str) -> list[Row]:
    mine = [each for (where, _user), each in found.items() if where == level and not isinstance(each, str)]
    out = {row.label for each in mine for row, _reached in leaks(each) if row}
    return [row for row in rows() if row.label in out]


def _words(row: Row) -> str:
    return f"{row.family}: {row.name.replace('_', ' ')}"


def counts_of_the_rows() -> dict[str, int]:
    """Family → how many attempts, as they stand in the data."""
    return {family: sum(row.family == family for row in rows()) for family in {row.family for row in rows()}}


def counts_in_the_page() -> dict[str, int]:
    """Family → how many attempts, as the page says."""
    _before, _begin, rest = PAGE.read_text().partition(BEGIN)
    return {name: int(count) for name, count in _COUNTS.findall(rest.partition(END)[0])}


def write() -> None:
    """Run, and put what was found into the page."""
    found: dict[tuple[str, str], Results | str] = {}
    for setting in SETTINGS:
        try:
            found[setting] = results(*setting)
        except Unable as reason:
            found[setting] = str(reason)
        print(*setting, file=sys.stderr)
    before, _begin, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(before + page(found, in_jail()) + after)


if __name__ == "__main__":
    write()
