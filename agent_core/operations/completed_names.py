"""Names that a shell completes: of functions, agents and models, read from the files of the workspace.

Tab must not wait: nothing is run, opened or requested over a network, and the number of files read is limited.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem

from agent_core.base.plain_files import read_plain
from agent_core.base.user_folders import NoHome
from sandbox.wire.strict_json import Malformed, read_toml

_MOST_FILES: Final = 500
_MOST_BYTES: Final = 1 << 20
_MOST_NAMES: Final = 2_000
_LONGEST_NAME: Final = 200
_DEFINED: Final = re.compile(r"(?m)^(?:async )?def ([a-z]\w*)\(")


class _Name(click.types.StringParamType):
    """A parameter type for a name that the shell can complete."""

    def __init__(self, names: Callable[[Path], Iterable[str]]) -> None:
        self._names = names

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; a longer text than any name is refused before it is looked up or shown."""
        if len(value) > _LONGEST_NAME:
            self.fail(
                f"A name has at most {_LONGEST_NAME} characters, this has {len(value):,}.",
                param,
                ctx,
            )
        return str(super().convert(value, param, ctx))

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that begin with the incomplete text."""
        given = ""
        parent: click.Context | None = ctx
        while parent is not None and not given:
            given, parent = parent.params.get("root") or "", parent.parent
        here = Path(given or ".").absolute()
        root = next(
            (folder for folder in (here, *here.parents) if (folder / "knapper.toml").is_file()),
            here,
        )
        names = islice(self._names(root), _MOST_NAMES)
        return [
            CompletionItem(name)
            for name in sorted({name for name in names if name.startswith(incomplete)})
        ]


def _file_text(path: Path) -> str:
    try:
        return read_plain(path, _MOST_BYTES).decode("utf-8", "replace")
    except OSError:  # no error messages during completion; the command itself will report it
        return ""


def _functions(root: Path) -> Iterator[str]:
    for path in islice((root / "functions").rglob("*.py"), _MOST_FILES):
        yield from _DEFINED.findall(_file_text(path))


def _agents(root: Path) -> Iterator[str]:
    for folder in ("agents", "groups"):
        yield from (path.stem for path in islice((root / folder).glob("*.toml"), _MOST_FILES))


def _models(root: Path) -> Iterator[str]:
    from agent_core.model.beside import names_here  # noqa: PLC0415 - slow to import

    yield "tour"
    with suppress(NoHome):
        yield from names_here()
    with suppress(Malformed):
        models = read_toml(_file_text(root / "knapper.toml")).get("models")
        yield from models if isinstance(models, dict) else ()


FUNCTION: Final = _Name(_functions)
AGENT: Final = _Name(_agents)
MODEL: Final = _Name(_models)
