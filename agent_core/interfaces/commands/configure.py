"""`toolwright configure`: which model answers and a few limits, tried before they are written."""

import asyncio
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from agent_core.errors import SettingsError, UsageError

from ..scene import Scene, scene
from ..spans import Line, line


@dataclass(frozen=True, slots=True)
class Asked:
    """One setting that is asked for."""

    key: str
    question: str


ASKED = (
    Asked("model.base_url", "Address of an endpoint, such as http://127.0.0.1:11434/v1"),
    Asked("model.name", "Model: its name there, or local/NAME"),
    Asked("turn.max_steps", "Model replies in one turn, at most"),
    Asked("sandbox.wall_s", "Seconds that one call of a function may take"),
)


@click.command()
@click.option("--model", metavar="NAME", help="The model's name, without being asked.")
@click.option("--base-url", metavar="URL", help="The endpoint's address, without being asked.")
@click.option("--confirm-address", is_flag=True, help="Confirm the address that toolwright.toml names, and no more.")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: what is given and what is in force is taken.")
@scene
def configure(scene: Scene, model: str | None, base_url: str | None, **given: bool) -> int:
    """Choose the model and a few limits. What is chosen is tried with one real request, and written to toolwright.toml.

    A key is never asked for and never written: it comes from OPENAI_API_KEY.
    """
    from agent_core.assemble import Workspace

    yes, confirms = given["yes"], given["confirm_address"]
    if not yes and not sys.stdin.isatty():
        next_command = "--confirm-address --yes" if confirms else "--yes --model NAME"
        raise UsageError("There is no terminal to ask at.", mend=f"Next: toolwright configure {next_command}")
    root = Workspace.find(scene.root)
    if confirms:
        return _confirm(scene, root, yes=yes)
    values = {**_checked({"model.base_url": base_url, "model.name": model})}
    if not yes:
        values |= _asked(root, values)
    return _take(scene, root, values, yes=yes)


def _confirm(scene: Scene, root: Path, *, yes: bool) -> int:
    """Confirm the address that only the file names, or of a server that may be another user's."""
    from agent_core.connection import in_force, unconfirmed_server
    from agent_core.grants.addresses import confirm, unconfirmed

    from ..confirming import ask_to_confirm, told
    from ..question import say

    settings, environment = in_force(root)
    url = unconfirmed(settings, environment) or unconfirmed_server(root, settings.model, environment)
    if url and yes:
        say(told(settings, url))
        confirm(root, url)
    elif url:
        ask_to_confirm(root, settings, url)
    said = f"{url} is confirmed for this workspace." if url else "There is no address here that is to be confirmed."
    scene.result({"confirmed": url}, [line(("ok", "✓ "), said)])
    return 0


def _take(scene: Scene, root: Path, values: dict[str, Any], *, yes: bool) -> int:
    """Try what was chosen, write it if it works or the human insists, and say what is left to do."""
    from agent_core.connection import exports, in_force, keep_address, try_model

    from ..menu import tested_lines
    from ..question import agreed, say

    settings, environment = in_force(root, values)
    _check_address(root, settings, yes=yes)
    if not scene.as_json:
        say([line(("dim", "Trying it with one real request …"))])
    tested = asyncio.run(try_model(settings.model, environment, root))
    if not scene.as_json or not yes:
        say(tested_lines(tested))
    keep = tested.ok or (not yes and bool(values) and agreed("Write it all the same?"))
    if keep and values:
        keep_address(root, values)
    commands = exports(settings)
    document = {
        "file": str(root / "toolwright.toml"),
        "written": values if keep else {},
        "in_force": {asked.key: _value(settings, asked.key) for asked in ASKED},
        "tested": tested.to_json(),
        "export": commands,
    }
    scene.result(document, _told(document))
    return 0 if tested.ok else 1


def _check_address(root: Path, settings: Any, *, yes: bool) -> None:  # Any: Settings, which only bodies import
    """Nothing is tried at an address that only the file names, before the human confirmed it."""
    from agent_core.doctor import check_address
    from agent_core.grants.addresses import UnconfirmedAddress

    from ..confirming import ask_to_confirm

    try:
        check_address(settings)
    except UnconfirmedAddress as error:
        if yes:
            raise
        ask_to_confirm(root, settings, error.url)


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    from agent_core.connection import check_new_address, check_new_name

    checks: dict[str, Callable[[str], str]] = {"model.base_url": check_new_address, "model.name": check_new_name}
    given = {key: value for key, value in values.items() if value is not None}
    return {key: checks[key](value) if key in checks else value for key, value in given.items()}


def _asked(root: Path, given: dict[str, Any]) -> dict[str, Any]:
    from agent_core.connection import in_force

    from ..question import say

    settings, _ = in_force(root, given)
    say([line(("strong", "In force now")), *_in_force({each.key: _value(settings, each.key) for each in ASKED})])
    say([line(), line(("dim", "Enter keeps what is in force. Nothing is written before it was tried."))])
    answers: dict[str, Any] = {}
    for each in ASKED:
        if each.key not in given:
            answers |= _answer(root, each, _value(settings, each.key))
    return answers


def _answer(root: Path, asked: Asked, now: Any) -> dict[str, Any]:
    """What is typed for one setting, once it is a value that the setting can have; nothing for Enter."""
    from agent_core.connection import in_force

    from ..faults import fault_lines
    from ..question import ask, say

    while typed := ask(f"{asked.question} [{_shown(now)}]:"):
        try:
            settings, _ = in_force(root, _checked({asked.key: typed}))
            return {asked.key: _value(settings, asked.key)}
        except UsageError as error:
            say(fault_lines(error.message, "" if isinstance(error, SettingsError) else error.mend))
    if typed is None:
        raise click.Abort
    return {}


def _told(document: dict[str, Any]) -> list[Line]:
    written = [
        line(("ok", "✓ "), f"{key} = {value} written to {document['file']}")
        for key, value in document["written"].items()
    ]
    lines = [
        *(written or [line(("dim", "Nothing was written."))]),
        line(("strong", "In force")),
        *_in_force(document["in_force"]),
    ]
    if document["export"]:
        lines += [line("A key is in no file. In each shell where you run it, type:")]
        lines += [line("  ", ("strong", command)) for command in document["export"]]
    return lines


def _in_force(values: dict[str, Any]) -> list[Line]:
    from agent_core.settings import PREFIX

    lines = []
    for key, value in values.items():
        variable = PREFIX + key.replace(".", "_").upper()
        by = f"  (by {variable})" if variable in os.environ else ""
        lines.append(line("  ", ("name", f"{key:<15}"), f" {_shown(value)}", ("dim", by)))
    return lines


def _shown(value: Any) -> str:
    return "found by itself" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _value(settings: Any, key: str) -> Any:
    section, _, name = key.partition(".")
    return getattr(getattr(settings, section), name)
