"""Descriptions in plain sentences: "`n` is the number of words", "a list of integers `items`".

Only what certainly speaks of a parameter is taken. A sentence of its own moves, words inside another are copied.
"""

import re
import textwrap

_END = re.compile(r"(?<=[.;!?])(?<!e\.g\.)(?<!i\.e\.)\s+")
_SECTION = re.compile(r"^\s*[A-Z]\w*(?: \w+)?:\s*$")
_IS = (
    r"(?P<verb>is|are|gives?|holds?|contains?|specif(?:y|ies)|sets?|says?|tells?"
    r"|denotes?|represents?|determines?|indicates?)"
)
_STARTERS = "the|a|an|how|whether|what|which|where|when|one|all|each|any|true|if"
_SMALL = "of|in|on|to|and|or|from|for|with|by|that|is|are|as|at|than|between|into|over|the|an?"
_NOUNS = (
    "list|string|text|number|integer|float|dictionary|dict|array|tuple|set|word|sentence|character|matrix|sequence"
    "|numbers|integers|strings|words|floats|lists|delimiter|delimeter|separator|threshold|target|substring|prefix"
    "|suffix|limit|boolean|flag|date|amount|index|path"
)
_WIDTH = 96
# Beyond these no sentence is looked at: each is tried for each parameter, and patterns walk what fits nearly.
_MOST, _LONGEST = 40, 8_000


def take(lines: list[str], missing: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the lines without the sentences that describe one of the parameters, and the description of each."""
    end = next((at for at, line in enumerate(lines) if ">>>" in line or _SECTION.match(line)), len(lines))
    descriptions: dict[str, str] = {}
    remaining_lines: list[str] = []
    if len(missing) > _MOST or sum(map(len, lines[:end])) > _LONGEST:
        return lines, descriptions
    for number, block in enumerate(_paragraphs(lines[:end])):
        remaining_lines += _without(block, missing, descriptions, is_first=number == 0)
    text = " ".join(" ".join(lines[:end]).split())
    for name in missing:
        if name not in descriptions and (phrase := _phrase_before(name, text)):
            descriptions[name] = phrase
    return [*remaining_lines, *lines[end:]], descriptions


def _paragraphs(lines: list[str]) -> list[list[str]]:
    """Return runs of lines that are all blank or all not."""
    blocks: list[list[str]] = []
    for line in lines:
        if blocks and bool(blocks[-1][-1].strip()) == bool(line.strip()):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return blocks


def _without(block: list[str], missing: list[str], descriptions: dict[str, str], *, is_first: bool) -> list[str]:
    sentences, has_moved = [], False
    for number, sentence in enumerate(_END.split(" ".join(" ".join(block).split()))):
        open_ = [name for name in missing if name not in descriptions]
        texts = _parameter_texts(sentence, open_)
        descriptions |= texts or _parameter_texts(_clause(sentence), open_)
        if texts and not (is_first and number == 0):
            has_moved = True
        else:
            sentences.append(sentence)
    if not has_moved:
        return block
    return textwrap.wrap(" ".join(sentences), _WIDTH, break_long_words=False, break_on_hyphens=False)


def _clause(sentence: str) -> str:
    """Return the text after the last "where" of a sentence."""
    return sentence.rpartition(" where ")[2] if " where " in sentence else ""


def _parameter_texts(sentence: str, missing: list[str]) -> dict[str, str]:
    """Return what a sentence says about parameters, if it says nothing else."""
    texts: dict[str, str] = {}
    names = "|".join(map(re.escape, missing))
    if not names:
        return texts
    subject = (
        rf"(?:(?:[Hh]ere|[Ww]here),?\s+)?(?:[Tt]he (?:parameter|argument|input)\s+)?[`'\"*]*(?P<name>{names})[`'\"*]*"
    )
    fits = re.compile(rf"^{subject}\s+{_IS}\s+(?P<rest>(?:(?i:{_STARTERS})\b)?.*\S)$", re.DOTALL)
    for part in re.split(rf",?\s+and\s+(?=[`'\"*]*(?:{names})[`'\"*]*\s+(?:is|are)\b)", sentence):
        match = fits.match(part.strip())
        words = _description(match) if match else ""
        if not match or not words:
            return {}
        texts[match["name"]] = words
    return texts


def _description(match: re.Match[str]) -> str:
    remainder = match["rest"].strip().rstrip(";")
    if not re.match(rf"(?:{_STARTERS})\b", remainder, re.IGNORECASE):
        return ""
    words = remainder if match["verb"] in ("is", "are") else f"{match['verb']} {remainder}"
    return words[:1].upper() + words[1:]


def _phrase_before(name: str, text: str) -> str:
    """Return the phrase right before a parameter's quoted name: "a list of integers `items`"."""
    plain = rf"(?:(?!(?:{_SMALL})\b)[a-z-]+\s+)"
    match = re.search(
        rf"\b(?P<words>(?i:an?|the)\s+{plain}{{0,2}}?(?:{_NOUNS})(?:\s+of\s+{plain}?[a-z]+s)?)\s+[`'\"]{re.escape(name)}[`'\"]",
        text,
    )
    return f"{match['words'][:1].upper()}{match['words'][1:]}." if match else ""
