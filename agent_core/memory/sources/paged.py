"""PDF, page by page, with pypdf. Only in the process of `kinds.py`: the input may be malicious."""

import io
import logging
from typing import Final

import pypdf
from pypdf.errors import DependencyError, PyPdfError

from .cutting import SourcePart, SourceParts, Unreadable

_MOST_TEXT: Final = 64 << 20
_MOST_PAGES: Final = 20_000


def document(data: bytes) -> SourceParts:
    """Return the pages that contain text.

    Raises:
        Unreadable: it is locked, broken, or contains only images.
    """
    logging.disable(logging.CRITICAL)  # pypdf logs every fault that it corrects
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("The PDF is locked by a password.", fix="Save it without one first.")
        if len(reader.pages) > _MOST_PAGES:
            raise Unreadable(f"The PDF says that it has {len(reader.pages)} pages; {_MOST_PAGES} are read at most.")
        pages: list[str] = []
        size = 0
        for page in reader.pages:
            pages.append(page.extract_text())
            size += len(pages[-1])
            if size > _MOST_TEXT:
                raise Unreadable(f"The PDF contains more than {_MOST_TEXT >> 20} MiB of text.", fix="Divide it.")
    except DependencyError as error:
        raise Unreadable(f"Reading the PDF needs a package that is not installed: {error}.") from error
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError) as error:
        raise Unreadable(f"The PDF is broken: {error or type(error).__name__}.") from error
    parts = [SourcePart(text, "", "page", number) for number, text in enumerate(pages, 1) if text.strip()]
    if not parts:
        fix = "Scanned pages are images: run OCR first."
        raise Unreadable("The PDF contains no text.", fix=fix)
    empty = len(pages) - len(parts)
    return SourceParts(tuple(parts), notes=(f"{empty} of {len(pages)} pages hold no text.",) if empty else ())
