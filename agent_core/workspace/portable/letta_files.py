"""Conversion of the files of a Letta agent, with their text in its agent file, to documents and passages."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agent_core.memory.sources.cutting import cut
from agent_core.memory.sources.prose import plain
from agent_core.storage import DocumentRow, PassageRow, content_hash

from .caps import MOST_LINKS, Room, at_most
from .foreign import Json, objects_at, text_at, whole_characters
from .inward import Words
from .report import AgentReport


@dataclass(frozen=True, slots=True)
class Files:
    """The files in an agent file by id, each with its position."""

    files: Mapping[str, tuple[str, Json]]
    words: Words
    room: Room

    def of_agent(
        self, agent: Json, where: str, ids: str, report: AgentReport, at: float
    ) -> tuple[list[PassageRow], list[DocumentRow]]:
        """Return an agent's files as passages and documents."""
        passages: list[PassageRow] = []
        documents: dict[str, DocumentRow] = {}
        links = {text_at(link, "file_id", place): place for place, link in objects_at(agent, "files_agents", where)}
        at_most(f"{where}.files_agents", MOST_LINKS, len(links))
        for id, place in links.items():
            file_place, file = self.files.get(id, (place, {}))
            text = whole_characters(text_at(file, "content", file_place))
            name = text_at(file, "file_name", file_place)[:300] or "file"
            if not text.strip():
                report.leaves(f"file `{name[:60]}`", "its text is not in the file")
            elif (hash := content_hash(text)) not in documents:
                self.room.take(place, len(text))
                cited = DocumentRow(hash, report.name, name, "text", at)
                rows = list(self._passages(text, cited, f"{ids}{len(documents)}"))
                documents[hash] = DocumentRow(hash, report.name, name, "text", at, len(rows), len(rows), True)
                passages += rows
                report.took("files", "documents")
        report.took("text of files", "passages", len(passages))
        return passages, list(documents.values())

    def _passages(self, text: str, of: DocumentRow, ids: str) -> Iterator[PassageRow]:
        for n, chunk in enumerate(cut(plain(text))):
            yield PassageRow(
                id=f"{ids}-{n}",
                agent=of.agent,
                text=chunk.text,
                words=self.words(chunk.text, None, ()),
                at=of.at,
                source=of.name,
                place=chunk.place[:1000],
                document=of.hash,
                n=n,
            )
