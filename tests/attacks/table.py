"""`python -m tests.attacks.table` runs every setting and writes the result into docs/security.md, between marks."""

import re
import sys
from collections.abc import Iterator
from typing import Final, TypeAlias

from tests.attacks.control import in_jail
from tests.attacks.rows import Row, rows
from tests.attacks.settings import CARRIERS, Results, Setting, Unable, leaks, results, rows_of
from tests.attacks.world import REPOSITORY

PAGE: Final = REPOSITORY / "docs" / "security.md"
BEGIN, END = "<!-- attacks: written by `python -m tests.attacks.table` -->", "<!-- attacks: end -->"
_AT_PORTABLE: Final = (
    "At `portable` many of them find nothing to begin with: a component has no "
    "`ctypes`, system calls or processes."
)
_COUNTS = re.compile(r"^\| (\w+): .*? \| (\d+) \|", re.MULTILINE)


Found: TypeAlias = dict[Setting, Results | str]


def page(found: dict[str, Found], proved: Results) -> str:
    """Return that part of the page from the results of the runs."""
    calls = [
        "During calls, with the layers and without the layers that contain the attempts:",
        "",
        *_table("", found, proved),
        "",
        _AT_PORTABLE,
        "",
    ]
    imports = [
        "The same attempts while a package is imported ahead:",
        "",
        *_table("ahead", found, None),
        "",
    ]
    return "\n".join(
        [BEGIN, "", *calls, *_remarks(found), "", *imports, *_remarks_ahead(found), "", END]
    )


def _table(carrier: str, found: dict[str, Found], proved: Results | None) -> Iterator[str]:
    last = [] if proved is None else ["works without its layers"]
    titles = ["family", "attempts", *map(str, CARRIERS[carrier]), *last]
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    for family in (*dict.fromkeys(row.family for row in rows()), ""):
        mine = [row for row in rows_of(carrier) if family in ("", row.family)]
        cells = [_contained(found[carrier][setting], mine) for setting in CARRIERS[carrier]]
        works = (
            []
            if proved is None
            else [str(sum(row.seen in proved.get(row.label, {}) for row in mine))]
        )
        if mine:
            name = (
                f"{family}: {mine[0].about}"
                if family and proved is not None
                else family or "**all**"
            )
            yield f"| {' | '.join([name, str(len(mine)), *cells, *works])} |"


def _contained(found: Results | str, mine: list[Row]) -> str:
    if isinstance(found, str):
        return "–"
    out = {row.label for row, _reached in leaks(found) if row}
    return str(sum(row.label not in out and row.seen != "inherent" for row in mine))


def _remarks(found: dict[str, Found]) -> Iterator[str]:
    yield from _leaks_by_level("", found[""])
    yield "Possible everywhere, by design, and not counted as contained:"
    yield from (f"- *{_words(row)}*: {row.remark}" for row in rows() if row.seen == "inherent")
    yield ""
    apart = [row for row in rows() if row.seen == "apart"]
    yield f"{len(apart)} attempts are not run without layers, for the reasons that `tests/attacks/families/` gives."


def _remarks_ahead(found: dict[str, Found]) -> Iterator[str]:
    yield from _leaks_by_level("ahead", found["ahead"])
    yield "Not tried there:"
    for why in dict.fromkeys(row.not_ahead for row in rows() if row.not_ahead):
        left_out = [row for row in rows() if row.not_ahead == why]
        families = ", ".join(dict.fromkeys(row.family for row in left_out))
        yield f"- {len(left_out)} attempts of {families}: {why}"


def _leaks_by_level(carrier: str, found: Found) -> Iterator[str]:
    for level in dict.fromkeys(each.level for each in CARRIERS[carrier]):
        out = _names([each for each in CARRIERS[carrier] if each.level == level], found)
        yield f"What escapes at `{level}`:{'' if out else ' nothing.'}"
        reasons = [
            (row, row.reason(level, ahead=carrier == "ahead") or "not yet known") for row in out
        ]
        yield from (f"- *{_words(row)}*: {reason}" for row, reason in reasons)
        yield ""


def _names(settings: list[Setting], found: Found) -> list[Row]:
    mine = [each for each in map(found.get, settings) if isinstance(each, dict)]
    out = {row.label for each in mine for row, _reached in leaks(each) if row}
    return [row for row in rows() if row.label in out]


def _words(row: Row) -> str:
    return f"{row.family}: {row.name.replace('_', ' ')}"


def counts_of_the_rows() -> dict[str, int]:
    """Return family → number of attempts in the data."""
    return {
        family: sum(row.family == family for row in rows())
        for family in {row.family for row in rows()}
    }


def counts_in_the_page() -> dict[str, int]:
    """Return family → number of attempts on the page."""
    _before, _begin, rest = PAGE.read_text().partition(BEGIN)
    return {name: int(count) for name, count in _COUNTS.findall(rest.partition(END)[0])}


def write() -> None:
    """Run all settings and update the page."""
    found: dict[str, Found] = {"": {}, "ahead": {}}
    for carrier in found:
        for setting in CARRIERS[carrier]:
            try:
                found[carrier][setting] = results(setting, {carrier: ()})[carrier]
            except Unable as reason:
                found[carrier][setting] = str(reason)
            print(setting, carrier, file=sys.stderr)
    before, _begin, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(before + page(found, in_jail()) + after)


if __name__ == "__main__":
    write()
