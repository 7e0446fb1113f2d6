"""Edits of a block's lines: append, replace, remove. Pure: lines in, lines and a sentence out.

Existing text is not added again; if a text is not found, the answer has the lines that may be meant.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence

from agent_core.base.errors import UsageError
from agent_core.base.records import dataclass
from agent_core.base.untrusted import from_difference

ALREADY = "Already there"  # the beginning of the message if nothing needs to change
_WORD = re.compile(r"\w+")
_INVISIBLE = re.compile("[\xad\u200b-\u200f\u2060-\u2064\ufeff]")
_LIST_MARK = re.compile(r"^[-*•–] ")
_NUMBERED = re.compile(r"line (\d{1,5})", re.IGNORECASE)
_SHOWN = 160
_MOST_SUMMARIES = 20  # per edit
_PIECE = 500  # sorting many marks over one letter takes quadratic time, so a text is normalized in pieces
_Span = tuple[int, int]


class EditRefused(UsageError):
    """Raised if an edit cannot be made as requested; the block is unchanged."""

    code = "edit-refused"


@dataclass(frozen=True, slots=True)
class Edited:
    """A block's lines after an edit, and a summary of the edit."""

    lines: list[str]
    edit_summary: str


def append(lines: Sequence[str], content: str) -> Edited:
    """Add each line of the content that does not exist yet."""
    new = [line.strip() for line in content.split("\n") if line.strip()]
    if not new:
        raise EditRefused("`content` is empty, so there is nothing to add.")
    now, places, summaries = list(lines), _places(lines), list[str]()
    for line in new:
        place = places.setdefault(normalized(line), len(now))
        if place < len(now):
            summaries.append(f"{ALREADY}, line {place + 1}: {shown(now[place])}")
        else:
            now.append(line)
            summaries.append(f"Added as line {len(now)}.")
    many = len(now) - len(lines)
    return Edited(
        now, "\n".join(summaries) if len(summaries) <= _MOST_SUMMARIES else f"Added {many} lines."
    )


def normalized(line: str) -> str:
    """Return a line in one spelling: without differences in letter forms, case, spaces, list marks and final stops."""
    pieces = (line[start : start + _PIECE] for start in range(0, len(line), _PIECE))
    text = _INVISIBLE.sub(
        "", "".join(unicodedata.normalize("NFKC", piece) for piece in pieces)
    ).casefold()
    return _LIST_MARK.sub("", " ".join(text.split())).rstrip(".!;,。 ") or text.strip()


def _places(lines: Sequence[str]) -> dict[str, int]:
    """Return the first line number of each normalized text."""
    return {normalized(line): number for number, line in reversed([*enumerate(lines)])}


def replace(lines: Sequence[str], old: str, new: str, seen: Sequence[str] | None = None) -> Edited:
    """Replace a text that occurs exactly once. An empty replacement removes it.

    If the text is `line N`, it is that line of `seen`: the lines that the author had read, if others may be there now.
    """
    if not old.strip():
        raise EditRefused("`old_content` is empty. To add a line, call core_memory_append.")
    text = "\n".join(lines)
    spans = _find(text, lines, old.strip("\n"))
    if not spans and (match := _NUMBERED.fullmatch(old.strip())):
        number, seen = int(match[1]), lines if seen is None else seen
        if number <= len(seen) and [*seen[:number]] == [*lines[:number]]:
            spans = _lines_where(lines, [place == number for place in range(1, len(lines) + 1)])
        elif number <= len(seen):
            old = seen[number - 1]
            spans = _lines_where(lines, [line == old for line in lines])
    if not spans:
        place = _places(lines).get(normalized(new)) if new.strip() else None
        if place is not None:
            return Edited(list(lines), f"{ALREADY}, line {place + 1}: {shown(lines[place])}")
        if not lines:
            raise EditRefused("The block is empty. To add a line, call core_memory_append.")
        close = nearest(lines, old) or [*range(min(len(lines), 5))]
        # A small model that is asked only for the exact text sends it as the new text too: it gets the complete call.
        raise EditRefused(
            f"{_quote(old)} does not stand there. There is {listed(lines, sorted(close))}. If it is line "
            f"{close[0] + 1}, repeat with old_content {_quote(lines[close[0]])} and new_content {_quote(new)}. Call "
            "core_memory_append for a new fact."
        )
    if len(spans) > 1:
        numbers = sorted({text.count("\n", 0, start) for start, _ in spans})
        raise EditRefused(
            f"{_quote(old)} stands there {len(spans)} times: {listed(lines, numbers)}. "
            "Repeat with the whole line that is meant."
        )
    return _replace(text, spans[0], new.strip("\n"))


def remove(lines: Sequence[str], content: str, seen: Sequence[str] | None = None) -> Edited:
    """Remove a text that occurs exactly once, as in `replace`."""
    if not content.strip():
        raise EditRefused("`content` is empty, so there is nothing to remove.")
    return replace(lines, content, "", seen)


def _find(text: str, lines: Sequence[str], old: str) -> list[_Span]:
    """Return the spans that match the text: as a whole line, words, letters, or in another spelling."""
    whole = _lines_where(lines, [line.strip() == old.strip() for line in lines])
    if whole:
        return whole[:1]
    letters = re.escape(old)
    for pattern in (rf"(?<!\w){letters}(?!\w)", letters):
        if spans := [match.span() for match in re.finditer(pattern, text)]:
            return spans
    # The same words in order, whatever the characters between them.
    words, places = [*_WORD.finditer(old)], [*_WORD.finditer(text)]
    joined, wanted = (
        "".join(f"\n{word[0].casefold()}\t" for word in each) for each in (places, words)
    )
    spans, start, first = [], 0, 0
    while words and (found := joined.find(wanted, start)) >= 0:
        first += joined.count("\n", start, found)
        spans.append((places[first].start(), places[first + len(words) - 1].end()))
        start, first = found + len(wanted), first + len(words)
    return spans


def _lines_where(lines: Sequence[str], mask: Sequence[bool]) -> list[_Span]:
    spans, start = [], 0
    for line, is_wanted in zip(lines, mask, strict=True):
        if is_wanted:
            spans.append((start, start + len(line)))
        start += len(line) + 1
    return spans


def _replace(text: str, span: _Span, new: str) -> Edited:
    start, end = text.rfind("\n", 0, span[0]) + 1, text.find("\n", span[1])
    end = len(text) if end < 0 else end
    before, after = (
        text[:start].split("\n")[:-1],
        text[end + 1 :].split("\n") if end < len(text) else [],
    )
    touched = text[start : span[0]] + new + text[span[1] : end]
    old = text[start:end]
    new_lines = touched.split("\n")
    if not new:  # the rest of a line that lost a part; nothing if it has no words
        rest = re.sub(r"\s{2,}|\t", " ", touched)
        rest = re.sub(r"([:,;(])\s*[,;]\s*", r"\1 ", rest)
        rest = re.sub(r"\s?[,;]\s?([.]?)$", r"\1", rest.rstrip())
        new_lines = [rest] if _WORD.search(rest) and not rest.rstrip().endswith(":") else []
    number = len(before) + 1
    replaced = text[slice(*span)]
    # The new text contains the old one and already exists, as for "is" → "is not" requested twice.
    is_there = (
        bool(new)
        and replaced in new
        and text.startswith(new, max(span[0] - new.index(replaced), 0))
    )
    if old == "\n".join(new_lines) or is_there:
        hint = "What is to change in it has to be in new_content."
        return Edited(text.split("\n"), f"Line {number} reads so already: {shown(old)}. {hint}")
    others = [*before, *after]
    known = _places(others)
    fresh = [line for line in new_lines if normalized(line) not in known]
    if fresh:
        was, now = shown_change(old, " / ".join(fresh))
        summary = f"Line {number} was {was} and is {now}."
    else:
        instead = " What was to stand there, another line says already." if new_lines else ""
        summary = f"Removed line {number}: {shown(old)}.{instead}"
    return Edited([*before, *fresh, *after], summary)


NEAREST_SHOWN = 3
_LEAST = 0.005


def nearest(
    lines: Sequence[str], text: str, vectors: Mapping[str, bytes] | None = None
) -> list[int]:
    """Return the indexes of the few lines that are most similar to a text, best first; empty if none is similar."""
    from agent_core.base.likeness import likeness  # noqa: PLC0415 - imports numpy, at the first edit

    scores = likeness(lines, text, vectors).tolist()
    order = sorted(range(len(lines)), key=lambda place: -scores[place])
    return [place for place in order[:NEAREST_SHOWN] if scores[place] >= _LEAST]


def listed(lines: Sequence[str], numbers: Sequence[int]) -> str:
    """Return lines with their numbers."""
    return "; ".join(f"line {number + 1}: {shown(lines[number])}" for number in numbers)


def shown(text: str) -> str:
    """Return a line in quotation marks, shortened if it is long."""
    return _quote(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")


def shown_change(old: str, new: str) -> tuple[str, str]:
    """Return both texts in quotation marks; of long ones, the parts that begin shortly before their difference."""
    was = from_difference(old, new, _SHOWN)
    now = from_difference(new, old, _SHOWN)
    return shown(was), shown(now)


def beginning(text: str, most_bytes: int) -> str:
    """Return the beginning of a text up to this many bytes, with an ellipsis if it is cut: tokens grow with bytes."""
    encoded = text.encode("utf-8", "replace")
    return (
        text if len(encoded) <= most_bytes else f"{encoded[:most_bytes].decode('utf-8', 'ignore')}…"
    )


def _quote(text: str) -> str:
    return f'"{text}"'


def difference(before: Sequence[str], after: Sequence[str]) -> str:
    """Return the change of a block's lines, for its history."""
    old, new = {*before}, {*after}
    removed = [line for line in before if line not in new]
    come = [line for line in after if line not in old]
    if removed and come:
        return " became ".join(shown_change(" / ".join(removed), " / ".join(come)))
    if come:
        return f"added {shown(' / '.join(come))}"
    return f"removed {shown(' / '.join(removed))}" if removed else ""
