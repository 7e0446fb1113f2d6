"""`knapper configure`: sets the model and a few limits, tried before they are written."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_core.base.errors import SettingsError, UsageError
from agent_core.base.late import LateModule
from agent_core.operations.command_context import CliContext, workspace_command
from agent_core.operations.completed_names import AGENT, MODEL
from agent_core.views.faults import fault_lines
from agent_core.views.styled_lines import Line, line
from knapper.terminal.dialog import agreed, ask, say

if TYPE_CHECKING:
    from agent_core.workspace import model_check
else:
    model_check = LateModule("agent_core.workspace.model_check")


ASKED = {
    "model.base_url": "Address of an endpoint, such as http://127.0.0.1:11434/v1",
    "model.name": "Model: its name at the endpoint, or that of one that runs here",
    "turn.max_steps": "Maximum number of model replies per turn",
    "sandbox.wall_s": "Maximum seconds per function call",
    "agent": "Agent that `knapper run` talks to",
    "memory.preset": "Preset of new agents",
    "memory.persona": "Persona of new agents: a text, or a name from personas/",
    "memory.human": "What new agents know of you: a text, or a name from humans/",
}
"""The settings to ask the user for."""


_WINDOW = "model.context_tokens"


@click.command()
@click.option("--model", metavar="NAME", type=MODEL, help="The model's name; skips the question.")
@click.option("--base-url", metavar="URL", help="The endpoint's address; skips the question.")
@click.option(
    "--context-tokens",
    type=click.IntRange(512),
    metavar="N",
    help="The size of the model's window, if it cannot be detected.",
)
@click.option(
    "--agent", metavar="NAME", type=AGENT, help="The agent that `run` talks to; skips the question."
)
@click.option("--preset", metavar="NAME", help="The preset of new agents; skips the question.")
@click.option("--persona", metavar="TEXT", help="Their persona: a text, or a name from personas/.")
@click.option(
    "--human", metavar="TEXT", help="What they know of you: a text, or a name from humans/."
)
@click.option(
    "--confirm-address", is_flag=True, help="Only confirm the address that knapper.toml names."
)
@click.option(
    "--yes", "-y", is_flag=True, help="Ask nothing: use the given and the current values."
)
@workspace_command
def configure(
    context: CliContext, model: str | None, base_url: str | None, **options: Any
) -> int:  # Any: the above
    """Choose the model and a few limits. The choice is tried with one real request and written to knapper.toml.

    Nothing is asked with --context-tokens alone. A key is never asked for and never written: it comes from
    OPENAI_API_KEY, that of an Azure resource from AZURE_OPENAI_API_KEY.
    """

    from knapper.terminal.deciding import is_attended

    given = {"model.base_url": base_url, "model.name": model, _WINDOW: options["context_tokens"]}
    given |= {
        "agent": options["agent"],
        **{f"memory.{name}": options[name] for name in ("preset", "persona", "human")},
    }
    is_size_alone = [name for name, value in given.items() if value is not None] == [_WINDOW]
    yes, confirms = options["yes"] or is_size_alone, options["confirm_address"]
    if not yes and not is_attended():
        next_command = "--confirm-address --yes" if confirms else "--yes --model NAME"
        raise UsageError(
            "There is no terminal for the question.", fix=f"Next: knapper configure {next_command}"
        )
    root = context.folder
    if confirms and any(value is not None for name, value in given.items() if name != "model.name"):
        fix = "Leave it out: an address that is given counts as confirmed."
        raise UsageError("--confirm-address sets nothing.", fix=fix)
    if confirms:
        return _confirm(context, root, {"model.name": model}, yes=yes)
    values = _check(given)
    _check_beginning(root, model_check.in_force(root, values)[0])
    if not yes:
        values |= _ask_settings(root, values)
    return _take(context, root, values, yes=yes)


def _confirm(context: CliContext, root: Path, values: dict[str, Any], *, yes: bool) -> int:
    """Confirm the addresses that only the file names, or that of a server that may belong to another user."""
    from agent_core.access.grants.record import confirm, unconfirmed
    from knapper.prompt.menu import address_lines, ask_to_confirm

    settings, environment = model_check.in_force(root, values)
    own = [settings, *(settings.using(name) for name in settings.models)]
    named = {
        (url, holder.model.key_variable): holder
        for holder in own
        if (url := unconfirmed(holder, environment))
    }
    if not named and (url := model_check.unconfirmed_server(root, settings.model, environment)):
        named = {(url, settings.model.key_variable): settings}
    for (url, key_variable), holder in named.items():
        if yes:
            say(address_lines(holder, url))
            confirm(root, url, key_variable)
        else:
            ask_to_confirm(root, holder, url)
    urls = [*dict.fromkeys(url for url, _ in named)]
    document = {"confirmed": next(iter(urls), None), "addresses": urls}
    messages = [f"{url} is confirmed for this workspace." for url in urls] or [
        "There is no address to confirm here."
    ]
    context.result(document, [line(("ok", "✓ "), message) for message in messages])
    return 0


def _take(context: CliContext, root: Path, values: dict[str, Any], *, yes: bool) -> int:
    """Test the chosen values, write them if they work or the user insists, and show the remaining steps."""
    from agent_core.access.grants.record import UnconfirmedAddress
    from agent_core.workspace.doctor import check_address
    from knapper.prompt.menu import ask_to_confirm, tested_lines

    settings, environment = model_check.in_force(root, values)
    before = model_check.in_force(root, {})[0]
    try:  # nothing is sent to an address that only the file names until it is confirmed
        check_address(settings)
    except UnconfirmedAddress as error:
        if yes:
            raise
        ask_to_confirm(root, settings, error.url)
    if not context.as_json:
        say([line(("dim", "Trying it with one real request …"))])
    trying = model_check.try_address if values.get("model.base_url") else model_check.try_model
    tested = asyncio.run(trying(settings.model, environment, root))
    if tested.ok and "model.base_url" in values:
        values["model.base_url"] = tested.address
    if not context.as_json or not yes:
        say(tested_lines(tested))
    if tested.window_warning and not yes:
        values |= _answer(root, _WINDOW, "The size of its window in tokens", None)
    keep = tested.ok or (not yes and bool(values) and agreed("Write it anyway?"))
    if keep and values:
        model_check.keep_address(root, values)
    commands = model_check.exports(settings)
    document: dict[str, Any] = {
        "file": str(root / "knapper.toml"),
        "written": values if keep else {},
        "in_force": {key: _value(settings if keep else before, key) for key in (*ASKED, _WINDOW)},
        "tested": tested.to_json(),
        "export": commands,
    }
    written = [
        line(("ok", "✓ "), f"{key} = {value} written to {document['file']}")
        for key, value in document["written"].items()
    ]
    lines = [
        *(written or [line(("dim", "Nothing was written."))]),
        line(("strong", "In force")),
        *_in_force(document["in_force"]),
    ]
    if commands:
        lines += [line("The key is not stored in a file. In each shell where you run it, type:")]
        lines += [line("  ", ("strong", command)) for command in commands]
    context.result(document, lines)
    return 0 if tested.ok else 1


def _check(values: dict[str, Any]) -> dict[str, Any]:
    checks: dict[str, Callable[[str], str]] = {
        "model.base_url": model_check.check_new_address,
        "model.name": model_check.check_new_name,
    }
    set_values = {key: value for key, value in values.items() if value is not None}
    return {
        key: checks[key](value) if key in checks else value for key, value in set_values.items()
    }


def _ask_settings(root: Path, values: dict[str, Any]) -> dict[str, Any]:
    settings, _ = model_check.in_force(root, values)
    say(
        [
            line(("strong", "In force now")),
            *_in_force({key: _value(settings, key) for key in ASKED}),
        ]
    )
    say(
        [
            line(),
            line(
                (
                    "dim",
                    "Enter keeps the current value. Nothing is written until it has been tried.",
                )
            ),
        ]
    )
    answers: dict[str, Any] = {}
    for key, question in ASKED.items():
        if key in values:
            continue
        answers |= _answer(root, key, question, _value(settings, key))
        while key == "model.base_url" and key in answers and not _answers(root, answers):
            others = _answer(root, key, "Another address, or Enter to keep this one", answers[key])
            if not others:
                break
            answers |= others
        if key == "model.name" and not (settings.model.base_url or settings.model.name or answers):
            say(_no_model(root, settings))
    return answers


def _answers(root: Path, answers: dict[str, Any]) -> bool:
    """Return whether the address that was just typed answers, and say what it says."""
    from knapper.prompt.menu import tested_lines

    settings, environment = model_check.in_force(root, answers)
    say([line(("dim", "Trying it …"))])
    tested = asyncio.run(model_check.try_address(settings.model, environment, root))
    say(tested_lines(tested))
    return tested.ok


def _no_model(root: Path, settings: Any) -> list[Line]:  # Any: Settings, which only bodies import
    """Return a message if no model is set or found, to show before further questions."""
    from agent_core.base.errors import NoModel
    from agent_core.base.own_environment import environment

    try:
        asyncio.run(model_check.choose_model(settings.model, environment(), root))
    except NoModel as error:
        return fault_lines(
            error.message, "What follows can be set without one; Ctrl-C leaves, and writes nothing."
        )
    return []


def _answer(root: Path, key: str, question: str, now: Any) -> dict[str, Any]:
    """Ask for one setting until the value is valid, and return it. Enter alone returns no value."""
    while typed := ask(f"{question} [{_current(key, now)[0]}]:"):
        try:
            settings, _ = model_check.in_force(root, _check({key: typed}))
            _check_beginning(root, settings)
            return {key: _value(settings, key)}
        except UsageError as error:
            say(fault_lines(error.message, "" if isinstance(error, SettingsError) else error.fix))
    if typed is None:
        raise click.Abort
    return {}


def _check_beginning(root: Path, settings: Any) -> None:  # Any: Settings, which only bodies import
    """Raise if the agent's name is invalid, or if the preset, persona or human for new agents does not exist."""
    from agent_core.workspace.agent_files import AgentFiles, is_group
    from agent_core.workspace.presets import preset, text_of

    if not is_group(root, settings.agent):
        AgentFiles(root, settings.agent).folder.check_name(settings.agent)
    preset(root, settings.memory.preset)
    if settings.memory.persona:
        text_of(root, "persona", settings.memory.persona)
    if settings.memory.human:
        text_of(root, "human", settings.memory.human)


def _in_force(values: dict[str, Any]) -> list[Line]:
    lines = []
    for key, value in values.items():
        shown, variable = _current(key, value)
        by = f"  (by {variable})" if variable else ""
        lines.append(line("  ", ("name", f"{key:<20}"), f" {shown}", ("dim", by)))
    return lines


def _current(key: str, value: Any) -> tuple[str, str]:
    """Return the current value of a setting, and the environment variable that set it, if any."""
    from agent_core.base.own_environment import environment
    from agent_core.base.settings import PREFIX
    from agent_core.model.discover import address_of

    if key == "model.base_url" and value is None and (named := address_of(environment()))[0]:
        return named
    variable = PREFIX + key.replace(".", "_").upper()
    from agent_core.model.dialect import quirks

    unset = "as the preset says" if key.startswith("memory.") else "found automatically"
    if key == _WINDOW:
        unset = f"as the endpoint says, else {quirks().assumed_window:,}"
    told = unset if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return told, variable if variable in os.environ else ""


def _value(settings: Any, key: str) -> Any:
    section, _, name = key.rpartition(".")
    return getattr(getattr(settings, section) if section else settings, name)
