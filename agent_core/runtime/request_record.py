"""The record of a request in the journal: with the messages of the turn, the request can be reconstructed."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_core import __version__
from agent_core.context import Section
from agent_core.model.request import FunctionShown
from agent_core.registry.snapshot import Snapshot
from agent_core.storage import Entry, SaveText, Write, content_hash


def recorded_request(
    functions: Sequence[FunctionShown],
    snapshot: Snapshot,
    sections: Sequence[Section],
    model: str,
    parameters: Mapping[str, Any],  # Any: JSON
) -> tuple[list[Entry], list[Write]]:
    """Return the entry, which refers to texts by their hashes, and the texts."""
    names, texts = [function.name for function in functions], [section.text for section in sections]
    request = {
        "program": __version__,
        "model": model,
        "parameters": dict(parameters),
        "instructions": content_hash(texts[0]) if texts else "",
        "sections": [content_hash(text) for text in texts],
        "functions": names,
        "versions": {name: snapshot.functions[name].version for name in names if name in snapshot.functions},
    }
    return [Entry("request", request)], [SaveText(text) for text in texts]
