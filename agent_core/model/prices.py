"""The prices of models: in the settings, else in the workspace's `prices.toml`, else as they are built in."""

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from agent_core.base.errors import UsageError
from agent_core.base.plain_files import read_plain
from agent_core.base.problem import misfit_sentence
from agent_core.base.settings import ModelPrice, NamedModel
from sandbox.wire.strict_json import read_toml

from .discover import asks_endpoint

FILE: Final = "prices.toml"
_FILE_BYTES: Final = 256 << 10
_DATED: Final = re.compile(r"[-@]?(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


class Prices:
    """The prices in one workspace, read when the first is asked for."""

    def __init__(self, root: Path, named: Mapping[str, NamedModel] | None = None) -> None:
        """Create them; `named` are the models in the settings."""
        self._root = root
        self._named = {
            name: model.price
            for table, model in (named or {}).items()
            if model.price
            for name in (table, model.name or table)
        }

    @cached_property
    def _known(self) -> dict[str, ModelPrice]:
        own = self._root / FILE
        listed = read_prices(own) if own.is_file() else {}
        return read_prices(Path(__file__).with_name(FILE)) | listed | self._named

    def of(self, model: str) -> ModelPrice | None:
        """Return the price of a model, looked up by its full name, then without the maker, then without the date.

        Raises:
            UsageError: the workspace's file has an invalid format.
        """
        if not asks_endpoint(model):
            return ModelPrice(input=0, output=0, cached=None)
        bare = model.rpartition("/")[2]
        names = (model, bare, _DATED.sub("", bare))
        return next((self._known[name] for name in names if name in self._known), None)


def read_prices(path: Path) -> dict[str, ModelPrice]:
    """Read the prices from a file.

    Raises:
        UsageError: the file has an invalid format.
    """
    try:
        models = read_toml(read_plain(path, _FILE_BYTES)).get("models")
        return TypeAdapter(dict[str, ModelPrice]).validate_python(models)
    except (OSError, ValueError) as e:
        fix = '[models], and a line for each: "NAME" = { input = 1.0, cached = 0.1, output = 4.0 }'
        errors = e.errors() if isinstance(e, ValidationError) else []
        why = (
            f"{'.'.join(map(str, ('models', *errors[0]['loc'])))}: {misfit_sentence(errors[0])}"
            if errors
            else str(e)
        )
        raise UsageError(f"{path} cannot be read as prices: {why}.", fix=fix) from e
