"""Markdown fences around what a model was asked for, read a line at a time: a pattern would search long texts again."""

from sandbox.wire.lines import lines_of


def fenced_texts(text: str) -> list[str]:
    """Return the text in each fence; one that is not closed ends with the text."""
    texts: list[str] = []
    lines: list[str] = []
    mark = ""
    for line in lines_of(text):
        bare = line.strip()
        if not mark:
            sign = bare[:1]
            begun = bare[: len(bare) - len(bare.lstrip(sign))] if bare[:3] in ("~~~", "```") else ""
            mark = begun if sign == "~" or "`" not in bare[len(begun) :] else ""
        elif bare.startswith(mark) and not bare.strip(mark[0]):
            texts.append("".join(lines))
            lines, mark = [], ""
        else:
            lines.append(line)
    if lines:  # a mark on the last line begins nothing
        texts.append("".join(lines))
    return texts


def without_fence(text: str) -> str:
    """Return what is in the fence that makes up the whole text; the text itself if there is none."""
    stripped = text.strip()
    head, has_more, rest = stripped.partition("\n")
    language = head[3:].strip().replace("-", "_")
    is_fence = head.startswith("```") and rest.endswith("```") and f"_{language}".isidentifier()
    return rest.removesuffix("```").strip() if has_more and is_fence else stripped
