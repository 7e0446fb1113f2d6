"""Edits of a block's lines: append, replace, remove. Pure: lines in, lines and a sentence out.

What is there already is not added again; what denies a line takes its place; what cannot be found is
answered with the lines that it may have meant.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent_core.base.errors import UsageError

from . import repeated
from .contradictions import Contradiction, contradicted

ALREADY = "Already there"  # so begins what is said where nothing is left to be done
_WORD = re.compile(r"\w+")
_LIST = re.compile(r"(?<![\w,])[\w-]+(?:, [\w-]+)*,? (?:and|und|et|y|e|or) [\w-]+(?=\W*$)|[\w-]+(?:, [\w-]+)+(?=\W*$)")
_BETWEEN = re.compile(r",? (?:and|und|et|y|e|or) |, ")
_SHOWN = 160
_MOST_PAIRS = 50_000
_MOST_ADVISED = 20  # lines of one edit for which those that they make untrue are looked for
_MOST_TRIES = 1_000  # at places where a text stands, but within a word
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
    """Add each line of the content that is not there already. A line that denies another replaces it."""
    new = [line.strip() for line in content.split("\n") if line.strip()]
    if not new:
        raise EditRefused("`content` is empty, so there is nothing to add.")
    if _is_too_many(new, lines):
        existing_lines = {line.strip() for line in lines}
        fresh = [line for line in dict.fromkeys(new) if line not in existing_lines]
        return Edited([*lines, *fresh], f"Added {len(fresh)} lines.")
    now, summaries = list(lines), []
    for number, line in enumerate(new):
        added = _add(now, line, advise=number < _MOST_ADVISED)
        now = added.lines
        summaries.append(added.edit_summary)
    return Edited(now, "\n".join(summaries))


def _add(lines: list[str], line: str, *, advise: bool) -> Edited:
    # Only a denial speaks of each alone: "A and B are friends" is more than that A is one, and B.
    parts = repeated.apart(line) if repeated.read(line).denied else [line]
    line_numbers = [_holding(lines, part) for part in parts]
    whole = line_numbers[0] if len(parts) == 1 or None not in line_numbers else _holding(lines, line)
    if whole is not None:
        return Edited(lines, f"{ALREADY}, line {whole + 1}: {shown(lines[whole])}")
    missing = [part for part, number in zip(parts, line_numbers, strict=True) if number is None]
    if len(missing) < len(parts):
        return append(lines, "\n".join(missing))
    facts = [repeated.read(part) for part in parts]
    rests = {n: denial for n, old in enumerate(lines) if (denial := _denied(old, facts)) is not None}
    if rests:
        now = _put(lines, rests, line, parts)
        hint = _conflict_hint(now, line, but=min(rests)) if advise else ""
        return Edited(now, f"It took the place of {listed(lines, [*rests])}, which says otherwise.{hint}")
    hint = _conflict_hint(lines, line) if advise else ""
    return Edited([*lines, line], f"Added as line {len(lines) + 1}.{hint}")


def _is_too_many(some: Sequence[str], others: Sequence[str]) -> bool:
    """Check whether there are too many pairs of lines to compare their meaning."""
    return len(some) * len(others) > _MOST_PAIRS


def _holding(lines: Sequence[str], line: str) -> int | None:
    """Return the line that already says this, alone or before something else."""
    fact = repeated.read(line)
    numbers = (
        n for n, old in enumerate(lines) if any(repeated.same(clause, fact) for clause, _ in repeated.clauses(old))
    )
    return next(numbers, None)


def _denied(old: str, facts: Sequence[repeated.Fact]) -> tuple[int, str] | None:
    """Return which of these facts denies the first clause of a line, and the rest of the line; None if none does."""
    for first, remainder in repeated.clauses(old):
        for number, fact in enumerate(facts):
            # "A and B are no friends" may mean of each other, where the line names the friend of A.
            if repeated.opposite(first, fact) and (len(facts) < 2 or fact.whom or not first.whom):
                return number, remainder
    return None


def _put(lines: Sequence[str], rests: Mapping[int, tuple[int, str]], line: str, parts: Sequence[str]) -> list[str]:
    """Return the lines with a new one in place of several, or with a part of it before each rest of those."""
    if len(rests) > 1 and any(rest for _, rest in rests.values()):
        return [_joined(parts[rests[n][0]], rests[n][1]) if n in rests else old for n, old in enumerate(lines)]
    where, (_, rest) = min(rests.items())
    remaining = [(n, old) for n, old in enumerate(lines) if n == where or n not in rests]
    return [_joined(line, rest) if n == where else old for n, old in remaining]


def _joined(line: str, rest: str) -> str:
    """Return a line and the rest of another, which begins with a comma or a semicolon, as one sentence."""
    return line.rstrip(" .!;,") + rest if rest else line


def _conflict_hint(lines: Sequence[str], line: str, but: int = -1) -> str:
    """Return which lines the new one makes untrue, with the call that takes each out: small models add where they
    should replace.
    """
    return "".join(
        _advice(lines[untrue.line], line, untrue) for untrue in contradicted(lines, line) if untrue.line != but
    )


def _advice(old: str, new: str, untrue: Contradiction) -> str:
    if not untrue.reason:
        doubt = f" Line {untrue.line + 1} may be untrue now: {shown(old)}. If the new line takes its place, call"
        return f"{doubt} core_memory_replace; if both hold, leave it."
    rest = _without(old, untrue.words)
    content = f"new_content {_quoted(new if rest == old else rest)}"
    if rest == old and repeated.clauses(old)[1:]:
        content = "new_content with what still holds of it"
    call = f"core_memory_replace with old_content {_quoted(old)} and {content}"
    return f" Line {untrue.line + 1} no longer fits, {untrue.reason}: {shown(old)}. Correct it: {call}."


def _without(line: str, words: frozenset[str]) -> str:
    """Return a list without a member, in the words of the line; the line itself if it is no list."""
    listing = _LIST.search(line)
    if listing is None:
        return line
    members = _BETWEEN.split(listing[0])
    remaining = [member for member in members if not words & repeated.subjects(member)]
    if len(remaining) in (0, len(members)):
        return line
    return line[: listing.start()] + ", ".join(remaining) + line[listing.end() :]


def replace(lines: Sequence[str], old: str, new: str) -> Edited:
    """Replace a text that occurs exactly once. An empty replacement removes it."""
    if not old.strip():
        raise EditRefused("`old_content` is empty. To add a line, call core_memory_append.")
    text = "\n".join(lines)
    spans = _find(text, lines, old.strip("\n"))
    if not spans:
        return _absent(lines, old, new)
    if len(spans) > 1:
        numbers = sorted({text.count("\n", 0, start) for start, _ in spans})
        raise EditRefused(
            f"{_quoted(old)} stands there {len(spans)} times: {listed(lines, numbers)}. "
            "Repeat with the whole line that is meant."
        )
    return _replaced(text, spans[0], new.strip("\n"))


def remove(lines: Sequence[str], content: str) -> Edited:
    """Remove a text that occurs exactly once."""
    if not content.strip():
        raise EditRefused("`content` is empty, so there is nothing to remove.")
    return replace(lines, content, "")


def _find(text: str, lines: Sequence[str], old: str) -> list[_Span]:
    """Return the spans meant by the text: as a whole line, as words, as letters, in other spelling, or as the same
    fact.
    """
    whole = _lines_where(lines, [line.strip() == old.strip() for line in lines])
    if whole:
        return whole[:1]
    if spans := _whole_words(text, old) or [*_stretches(text, old)] or _same_words(text, old):
        return spans
    sought = repeated.read(old)
    return _lines_where(lines, [repeated.same(repeated.read(line), sought) for line in lines])


def _stretches(text: str, sought: str) -> Iterator[_Span]:
    """Yield the occurrences of a text in another, without overlaps."""
    start = text.find(sought)
    while start >= 0:
        yield start, start + len(sought)
        start = text.find(sought, start + len(sought))


def _whole_words(text: str, sought: str) -> list[_Span]:
    """Return the occurrences that begin and end at word boundaries."""
    spans, start = list[_Span](), text.find(sought)
    for _ in range(_MOST_TRIES):
        if start < 0:
            break
        end = start + len(sought)
        is_whole = not _is_letter(text[start - 1 : start]) and not _is_letter(text[end : end + 1])
        spans += [(start, end)] if is_whole else []
        start = text.find(sought, end if is_whole else start + 1)
    return spans


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"


def _same_words(text: str, sought: str) -> list[_Span]:
    """Return where the same words occur in order, ignoring what is between them, in one pass (Knuth, Morris, Pratt)."""
    words = [word.casefold() for word in _WORD.findall(sought)]
    spans: list[_Span] = []
    if not words:
        return spans
    back, places, done = _back(words), list[int](), 0
    for place in _WORD.finditer(text):
        word = place[0].casefold()
        while done and words[done] != word:
            done = back[done - 1]
        done = done + 1 if words[done] == word else 0
        places.append(place.start())
        if done == len(words):
            spans.append((places[-done], place.end()))
            done = 0
    return spans


def _back(words: Sequence[str]) -> list[int]:
    """Return, for each prefix of the words, how many of its last words are also its first."""
    back, done = [0] * len(words), 0
    for place in range(1, len(words)):
        while done and words[done] != words[place]:
            done = back[done - 1]
        done += words[done] == words[place]
        back[place] = done
    return back


def _lines_where(lines: Sequence[str], mask: Sequence[bool]) -> list[_Span]:
    spans, start = [], 0
    for line, is_wanted in zip(lines, mask, strict=True):
        if is_wanted:
            spans.append((start, start + len(line)))
        start += len(line) + 1
    return spans


def _replaced(text: str, span: _Span, new: str) -> Edited:
    start, end = text.rfind("\n", 0, span[0]) + 1, text.find("\n", span[1])
    end = len(text) if end < 0 else end
    before, after = text[:start].split("\n")[:-1], text[end + 1 :].split("\n") if end < len(text) else []
    touched = text[start : span[0]] + new + text[span[1] : end]
    old = text[start:end]
    new_lines = touched.split("\n") if new else _tidied(touched)
    number = len(before) + 1
    if old == "\n".join(new_lines) or _reads_so(text, span, new):
        return _unchanged(text.split("\n"), number, old)
    others = [*before, *after]
    if _is_too_many(new_lines, others):
        return Edited([*before, *new_lines, *after], _change_summary(number, old, new_lines, new_lines))
    facts = [repeated.read(line) for line in others]
    fresh = [line for line in new_lines if not any(repeated.same(repeated.read(line), fact) for fact in facts)]
    return Edited([*before, *fresh, *after], _change_summary(number, old, new_lines, fresh) + _otherwise(others, fresh))


def _unchanged(lines: list[str], number: int, old: str) -> Edited:
    """Return a replacement that changes nothing: perhaps the new line was named where an older one was meant."""
    hint = _conflict_hint(lines, old, but=number - 1) or " What is to change in it has to be in new_content."
    return Edited(lines, f"Line {number} reads so already: {shown(old)}.{hint}")


def _reads_so(text: str, span: _Span, new: str) -> bool:
    """Check whether the new text contains the old one and is already there, as with "is" → "is not", requested
    twice.
    """
    old = text[slice(*span)]
    return bool(new) and old in new and text.startswith(new, max(span[0] - new.index(old), 0))


def _change_summary(number: int, old: str, new_lines: list[str], fresh: list[str]) -> str:
    if not new_lines:
        return f"Removed line {number}: {shown(old)}."
    if not fresh:
        return f"Removed line {number}: {shown(old)}. What was to stand there, another line says already."
    return f"Line {number} was {shown(old)} and is {shown(' / '.join(fresh))}."


def _otherwise(others: Sequence[str], fresh: Sequence[str]) -> str:
    facts = [repeated.read(part) for line in fresh for part in repeated.apart(line)]
    opposite = [
        n for n, line in enumerate(others) if any(repeated.opposite(repeated.read(line), fact) for fact in facts)
    ]
    untrue = {place.line for line in fresh[:_MOST_ADVISED] for place in contradicted(others, line) if place.reason}
    numbers = sorted({*opposite, *untrue})
    return f" But {listed(others, numbers)} says otherwise: take it out, or what is untrue of it." if numbers else ""


def _tidied(line: str) -> list[str]:
    """Return what is left of a line that lost a part; nothing if no fact is left in it."""
    line = re.sub(r"\s{2,}|\t", " ", line)
    line = re.sub(r"([:,;(])\s*(?:,|;|\band\b)\s*", r"\1 ", line)
    line = re.sub(r"(?:\s*[,;]|\s+and)\s*([.]?)\s*$", r"\1", line.rstrip())
    words = repeated.read(line).words
    return [line] if words and not line.rstrip().endswith(":") else []


def _absent(lines: Sequence[str], old: str, new: str) -> Edited:
    fact = repeated.read(new)
    for number, line in enumerate(lines):
        if repeated.same(repeated.read(line), fact):
            return Edited(list(lines), f"{ALREADY}, line {number + 1}: {shown(line)}")
    if not lines:
        raise EditRefused("The block is empty. To add a line, call core_memory_append.")
    close = repeated.nearest(old, lines) or [*range(min(len(lines), 5))]
    first = (repeated.close(old, lines, 1) or close)[0]
    # A small model asked only for the exact text sends it as the new text too: it is given the call whole.
    raise EditRefused(
        f"{_quoted(old)} does not stand there. There is {listed(lines, close)}. If it is line {first + 1}, repeat with "
        f"old_content {_quoted(lines[first])} and new_content {_quoted(new)}. Call core_memory_append for a new fact."
    )


def listed(lines: Sequence[str], numbers: Sequence[int]) -> str:
    """Return lines with their numbers."""
    return "; ".join(f"line {number + 1}: {shown(lines[number])}" for number in numbers)


def shown(text: str) -> str:
    """Return a line in quotation marks, shortened if it is long."""
    return _quoted(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")


def _quoted(text: str) -> str:
    return f'"{text}"'


def difference(before: Sequence[str], after: Sequence[str]) -> str:
    """Return the change of a block's lines, for its history."""
    old, new = {*before}, {*after}
    removed = [line for line in before if line not in new]
    come = [line for line in after if line not in old]
    if removed and come:
        return f"{shown(' / '.join(removed))} became {shown(' / '.join(come))}"
    if come:
        return f"added {shown(' / '.join(come))}"
    return f"removed {shown(' / '.join(removed))}" if removed else ""
