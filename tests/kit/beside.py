"""One more extension in this process, from a folder that is listed like that of the program."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import knapper_ext
from agent_core.base import extensions


@contextmanager
def extension(name: str, text: str, place: Path) -> Iterator[None]:
    """Have an extension while the block runs: `text` is its `__init__.py`."""
    folder = place / f"beside-{name}"
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "__init__.py").write_text(text)
    knapper_ext.__path__.append(str(folder))
    extensions._extensions.cache_clear()
    try:
        yield
    finally:
        knapper_ext.__path__.remove(str(folder))
        extensions._extensions.cache_clear()
