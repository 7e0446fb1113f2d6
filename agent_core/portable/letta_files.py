"""The files of a Letta agent, whose text stands in its agent file → documents and passages."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..storage import DocumentRow, PassageRow, content_hash
from .foreign import Json, objects_at, text_at, whole_characters
from .inward import Words
from .report import Report

_PIECE = 1200


@dataclass(frozen=True, slots=True)
class Files:
    """The files of an agent file by id, each with its place."""

    known: Mapping[str, tuple[str, Json]]
    words: Words

    def of_agent(
        self, found: Json, where: str, ids: str, report: Report, at: float
    ) -> tuple[list[PassageRow], list[DocumentRow]]:
        """What an agent has of them, as passages and documents."""
        passages: list[PassageRow] = []
        documents: dict[str, DocumentRow] = {}
        for place, link in objects_at(found, "files_agents", where):
            file_place, file = self.known.get(text_at(link, "file_id", place), (place, {}))
            text = whole_characters(text_at(file, "content", file_place))
            name = text_at(file, "file_name", file_place)[:1000] or "file"
            if not text.strip():
                report.leaves(f"file `{name[:60]}`", "its text is not in the file")
            elif (hash := content_hash(text)) not in documents:
                found_pieces = list(pieces(text))
                documents[hash] = DocumentRow(
                    hash, report.name, name, "text", at, len(found_pieces), len(found_pieces), True
                )
                passages += [
                    PassageRow(
                        f"{ids}{len(documents)}-{n}",
                        report.name,
                        piece,
                        self.words(piece, None, ()),
                        at,
                        source=name,
                        place=f"line {line}",
                        document=hash,
                        n=n,
                    )
                    for n, (line, piece) in enumerate(found_pieces)
                ]
                report.took("files", "documents")
        report.took("text of files", "passages", len(passages))
        return passages, list(documents.values())


def pieces(text: str) -> Iterator[tuple[int, str]]:
    """A text in pieces of whole paragraphs where they fit, each with the line that it begins at."""
    held, line, begins = "", 1, 1
    for paragraph in re.split(r"(?<=\n)\s*\n", text):
        for part in _cut(paragraph):
            if held and len(held) + len(part) > _PIECE:
                yield begins, held.strip()
                held = ""
            begins = begins if held else line
            held += part
            line += part.count("\n")
        held, line = held + "\n", line + 1
    if held.strip():
        yield begins, held.strip()


def _cut(paragraph: str) -> Iterator[str]:
    return (paragraph[at : at + _PIECE] for at in range(0, len(paragraph), _PIECE))
