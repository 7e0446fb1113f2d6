"""The prices of models: in the settings, else in the workspace's `prices.toml`, else as they are built in.

A cap on money counts by the highest of them where one came with the folder, so that no folder widens a cap.
"""

import re
from collections.abc import Collection, Mapping
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

    def __init__(
        self,
        root: Path,
        named: Mapping[str, NamedModel] | None = None,
        of_file: Collection[str] = (),
    ) -> None:
        """Create them; `named` are the models in the settings, those `of_file` with prices from the folder."""
        self._root = root
        self._named = named or {}
        self._of_file = of_file

    @cached_property
    def _built_in(self) -> dict[str, ModelPrice]:
        return read_prices(Path(__file__).with_name(FILE))

    @cached_property
    def _listed(self) -> dict[str, ModelPrice]:
        own = self._root / FILE
        return read_prices(own) if own.is_file() else {}

    @cached_property
    def _known(self) -> dict[str, ModelPrice]:
        return self._built_in | self._listed | _by_name(self._named)

    @cached_property
    def _own(self) -> dict[str, ModelPrice]:
        tables = self._named.keys() - set(self._of_file)
        return self._built_in | _by_name({table: self._named[table] for table in tables})

    @cached_property
    def _of_folder(self) -> dict[str, ModelPrice]:
        tables = self._named.keys() & set(self._of_file)
        return self._listed | _by_name({table: self._named[table] for table in tables})

    def of(self, model: str) -> ModelPrice | None:
        """Return the price of a model, looked up by its full name, then without the maker, then without the date.

        Raises:
            UsageError: the workspace's file has an invalid format.
        """
        return _found(self._known, model)

    def for_cap(self, model: str) -> ModelPrice | None:
        """Return the price by which a cap on money counts: one that came with the folder only raises another.

        Raises:
            UsageError: the workspace's file has an invalid format.
        """
        own = _found(self._own, model)
        of_folder = _found(self._of_folder, model)
        if own is None or of_folder is None:
            return own or of_folder
        return ModelPrice(
            input=max(own.input, of_folder.input),
            output=max(own.output, of_folder.output),
            cached=max(own.for_cached, of_folder.for_cached),
        )


def _by_name(named: Mapping[str, NamedModel]) -> dict[str, ModelPrice]:
    return {
        name: model.price
        for table, model in named.items()
        if model.price
        for name in (table, model.name or table)
    }


def _found(prices: Mapping[str, ModelPrice], model: str) -> ModelPrice | None:
    if not asks_endpoint(model):
        return ModelPrice(input=0, output=0, cached=None)
    bare = model.rpartition("/")[2]
    names = (model, bare, _DATED.sub("", bare))
    return next((prices[name] for name in names if name in prices), None)


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
