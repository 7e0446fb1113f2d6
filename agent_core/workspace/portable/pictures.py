"""Pictures in the file of an agent: a copy of each is among its texts, in base64, and the entry that shows it names it.

A picture in a file counts only with its copy there: its hash must not show a picture of the workspace that reads it.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final

from agent_core.base.pictures import (
    HEAD_BYTES,
    PICTURES,
    UnusablePicture,
    is_picture,
    pictures_in,
    read_picture,
)
from agent_core.base.records import replace
from agent_core.storage import Entry, WholeAgent
from agent_core.storage.picture_files import PictureFiles

COPY: Final = "copy"
"""The key of a picture in a file for the hash of its copy."""
_HEAD_CHARS: Final = HEAD_BYTES * 4 // 3 // 4 * 4


def with_copies(whole: WholeAgent, files: PictureFiles) -> WholeAgent:
    """Return an agent with a copy of each picture that its entries show and that is still kept."""
    texts = dict(whole.texts)
    copies = dict[str, str]()
    turns = [
        replace(turn, entries=[_named(entry, texts, copies, files) for entry in turn.entries])
        for turn in whole.turns
    ]
    return replace(whole, turns=turns, texts=texts) if copies else whole


def _named(
    entry: Entry, texts: dict[str, str], copies: dict[str, str], files: PictureFiles
) -> Entry:
    """Return an entry whose pictures name their copies, which are added to the texts."""
    pictures = pictures_in(entry.payload)
    if not pictures:
        return entry
    rows = list[dict[str, Any]]()
    for picture in pictures:
        if picture.digest not in copies and (data := files.content(picture.digest)) is not None:
            text = b64encode(data).decode()
            name = sha256(text.encode()).hexdigest()
            copies[picture.digest] = name
            texts[name] = text
        if picture.digest in copies:
            rows.append({**picture.to_json(), COPY: copies[picture.digest]})
    return replace(entry, payload={**entry.payload, PICTURES: rows})


def without_strange_pictures(
    payload: dict[str, Any], texts: Mapping[str, str]
) -> dict[str, Any]:  # Any: JSON
    """Return the payload of an entry in a file with those pictures only whose copies are there.

    Type and size are what the copy says of itself.
    """
    if PICTURES not in payload:
        return payload
    given = payload[PICTURES]
    rows = list[dict[str, Any]]()
    for row in given if isinstance(given, list) else ():
        if not isinstance(row, dict):
            continue
        data = picture_in(texts.get(str(row.get(COPY)), ""))
        if data is None or sha256(data).hexdigest() != row.get("digest"):
            continue
        with suppress(UnusablePicture):  # then its caption is left
            picture = read_picture(data, str(row.get("name", "")))
            rows.append(replace(picture, is_past=row.get("is_past") is True).to_json())
    return {**payload, PICTURES: rows}


def picture_in(text: str) -> bytes | None:
    """Return the picture of which a text is a copy, or None."""
    try:
        if is_picture(b64decode(text[:_HEAD_CHARS], validate=True)):
            return b64decode(text, validate=True)
    except ValueError:
        return None
    return None
