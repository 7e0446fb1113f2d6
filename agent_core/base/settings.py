"""The typed settings: defaults < `toolwright.toml` < `TOOLWRIGHT_*` variables < flags.

One model validates all of them; an unknown key is an error that names the nearest known one.
Secrets never come from the file: they are read from the environment by `model.discover`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, PrivateAttr, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings import SettingsError as UnreadableVariable

from sandbox.foreign import Malformed, read_toml

from .errors import SettingsError
from .matching import nearest
from .plain_files import read_plain
from .setting_sections import (
    GateSettings,
    GrantSettings,
    HeartbeatSettings,
    MemorySettings,
    ModelSettings,
    ReplSettings,
    SandboxSettings,
    SettingsSection,
    StandingSettings,
    TurnSettings,
)

__all__ = [
    "FILE_NAME",
    "PREFIX",
    "SECRET",
    "GateSettings",
    "GrantSettings",
    "HeartbeatSettings",
    "MemorySettings",
    "ModelSettings",
    "ReplSettings",
    "SandboxSettings",
    "Settings",
    "StandingSettings",
    "TurnSettings",
    "address_of_file",
    "known_keys",
    "load",
]

FILE_NAME = "toolwright.toml"
MOST_BYTES = 256 << 10
PREFIX = "TOOLWRIGHT_"
SECRET = f"{PREFIX}SECRET_"  # what functions are given by name, and no setting


class Settings(BaseSettings):
    """All settings, one section per package."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="_", env_nested_max_split=1, extra="forbid", frozen=True
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return only what `load` passes in: it has read the other sources, in their order, from the right folder."""
        return (init_settings,)

    # The folder with the only file that names `model.base_url`: nothing is sent to that address unasked.
    _address_from: Path | None = PrivateAttr(default=None)

    agent: str = Field("main", pattern=r"^[A-Za-z0-9_-]{1,64}$", description="The agent that `run` talks to.")
    instructions: str | None = Field(None, description="Replaces the built-in instructions of the agent.")
    model: ModelSettings = ModelSettings()
    turn: TurnSettings = TurnSettings()
    sandbox: SandboxSettings = SandboxSettings()
    gate: GateSettings = GateSettings()
    standing: StandingSettings = StandingSettings()
    grants: GrantSettings = GrantSettings()
    memory: MemorySettings = MemorySettings()
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    repl: ReplSettings = ReplSettings()


def address_of_file(settings: Settings, environment: Mapping[str, str]) -> tuple[Path, str] | None:
    """Return the address that only a workspace's file names, with the workspace: the file may be a stranger's."""
    url = settings.model.base_url
    if not url or settings._address_from is None or url == environment.get("OPENAI_BASE_URL"):
        return None
    return settings._address_from, url


def load(root: Path, flags: Mapping[str, Any] | None = None) -> Settings:  # Any: checked by the model
    """Return the settings of a workspace; flags name a key as `section.key`, and None means "not given".

    Raises:
        SettingsError: a key is unknown or a value does not fit; the message names it.
    """
    overrides = [(key.split("."), value) for key, value in (flags or {}).items() if value is not None]
    named = [name for name in os.environ if name.startswith(PREFIX) and not name.startswith(SECRET)]
    unknown = [name for name in named if name not in _variables()]
    if unknown:
        raise _unknown(unknown[0], [*_variables()])
    try:
        return _combine(root, _read_file(root / FILE_NAME), overrides)
    except ValidationError as error:
        raise _explain(error) from error
    except UnreadableVariable as error:
        set_now = ", ".join(f"`{key}`" for key in known_keys() if _variable(key) in os.environ)
        raise SettingsError(
            f"A {PREFIX} variable cannot be read (set are those for {set_now}).",
            fix=f"A list is written as JSON: {PREFIX}SANDBOX_PACKAGES='[\"pydantic\"]'.",
        ) from error


def _combine(root: Path, file: dict[str, Any], overrides: list[tuple[list[str], Any]]) -> Settings:
    _check_file(file)
    mine: dict[str, Any] = EnvSettingsSource(Settings)()
    for path, value in overrides:
        nested = value
        for part in reversed(path):
            nested = {part: nested}
        mine = _merge(mine, nested)
    settings = Settings(**_merge(file, mine))
    if "base_url" in _section(file, "model") and "base_url" not in _section(mine, "model"):
        settings._address_from = root
    return settings


def _check_file(values: Mapping[str, Any]) -> None:
    # The file travels with the folder, and so perhaps from somebody else: it cannot take the walls down.
    if _section(values, "sandbox").get("unsafe"):
        raise SettingsError(
            f"`sandbox.unsafe` cannot be set in {FILE_NAME}, which travels with the folder.",
            fix=f"To run functions without protection on this machine: {PREFIX}SANDBOX_UNSAFE=true.",
        )
    if _section(values, "memory").get("class_name", "chat") != "chat":
        raise SettingsError(
            f"`memory.class_name` cannot be set in {FILE_NAME}, which travels with the folder.",
            fix=f"It names code to be run. If you know it: export {PREFIX}MEMORY_CLASS_NAME=package.module:Class",
        )
    if _section(values, "grants").get("unattended", "deny") != "deny":
        raise SettingsError(
            f"`grants.unattended` cannot be set in {FILE_NAME}, which travels with the folder.",
            fix=f"To let functions/grants.toml decide on this machine: {PREFIX}GRANTS_UNATTENDED=file.",
        )


def _section(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = values.get(name)
    return section if isinstance(section, Mapping) else {}


def known_keys() -> list[str]:
    """Return every settable key, dotted."""
    keys = []
    for name, field in Settings.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, SettingsSection):
            keys += [f"{name}.{inner}" for inner in section.model_fields]
        else:
            keys.append(name)
    return keys


def _variables() -> set[str]:
    return {_variable(key) for key in known_keys()}


def _variable(key: str) -> str:
    return PREFIX + key.replace(".", "_").upper()


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return read_toml(read_plain(path, MOST_BYTES))
    except (FileNotFoundError, IsADirectoryError):
        return {}
    except Malformed as error:
        raise SettingsError(f"{path} is not valid TOML: {error}.", fix="Fix it and try again.") from error
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error


def _merge(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    merged = dict(lower)
    for key, value in upper.items():
        below = merged.get(key)
        merged[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _explain(error: ValidationError) -> SettingsError:
    finding = error.errors()[0]
    key = ".".join(str(part) for part in finding["loc"])
    if finding["type"] == "extra_forbidden":
        return _unknown(key, known_keys())
    return SettingsError(
        f"The setting `{key}` cannot be {finding['input']!r}: {finding['msg']}.",
        fix=f"Fix it in {FILE_NAME}, in its {PREFIX} variable or in the flag.",
    )


def _unknown(key: str, keys: list[str]) -> SettingsError:
    matches = nearest(key, keys)
    hint = f"Did you mean `{matches[0]}`?" if matches else f"Known are: {', '.join(sorted(keys))}."
    return SettingsError(f"`{key}` is not a setting.", fix=hint)
