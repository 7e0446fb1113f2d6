"""What the shell completes: names of functions, agents and models, read from the workspace's files.

Tab must not wait: nothing is run, opened or asked over a network, and only so many files are read.
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
from sandbox.wire.foreign import Malformed, read_toml

_MOST_FILES: Final = 500
_MOST_BYTES: Final = 1 << 20
_MOST_NAMES: Final = 2_000
_DEFINED: Final = re.compile(r"(?m)^(?:async )?def ([a-z]\w*)\(")


class _Name(click.types.StringParamType):
    """A name that the shell can complete."""

    def __init__(self, names: Callable[[Path], Iterable[str]]) -> None:
        self._names = names

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin so."""
        names = islice(self._names(_root(ctx)), _MOST_NAMES)
        return [CompletionItem(name) for name in sorted({name for name in names if name.startswith(incomplete)})]


def _root(ctx: click.Context) -> Path:
    """Return the nearest folder that is a workspace, from the one that was given or the current one upward."""
    given = next((each.params["root"] for each in _chain(ctx) if each.params.get("root")), None)
    here = Path(given or ".").absolute()
    return next((folder for folder in (here, *here.parents) if (folder / "knapper.toml").is_file()), here)


def _chain(ctx: click.Context | None) -> Iterator[click.Context]:
    while ctx is not None:
        yield ctx
        ctx = ctx.parent


def _text(path: Path) -> str:
    try:
        return read_plain(path, _MOST_BYTES).decode("utf-8", "replace")
    except OSError:  # nobody is to be told of it while a command is typed; the command tells
        return ""


def _functions(root: Path) -> Iterator[str]:
    for path in islice((root / "functions").rglob("*.py"), _MOST_FILES):
        yield from _DEFINED.findall(_text(path))


def _agents(root: Path) -> Iterator[str]:
    for folder in ("agents", "groups"):
        yield from (path.stem for path in islice((root / folder).glob("*.toml"), _MOST_FILES))


def _models(root: Path) -> Iterator[str]:
    from agent_core.workspace.local_models import installed_models  # noqa: PLC0415 - slow to import

    yield "tour"
    with suppress(NoHome):
        yield from installed_models()
    with suppress(Malformed):
        models = read_toml(_text(root / "knapper.toml")).get("models")
        yield from models if isinstance(models, dict) else ()


FUNCTION: Final = _Name(_functions)
AGENT: Final = _Name(_agents)
MODEL: Final = _Name(_models)
