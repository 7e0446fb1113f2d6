"""The setup menu at a terminal: creates a workspace, then chooses a key, an address, a model here, or the tour.

A key typed here is never shown or written to disk; it lasts for this run only.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from agent_core.access.grants.record import UnconfirmedAddress, confirm, shown
from agent_core.base.clock import Clock
from agent_core.base.errors import (
    ForeignState,
    KnapperError,
    ModelError,
    NoModel,
    NoWorkspace,
    UsageError,
)
from agent_core.base.network_variables import has_form_of_key, whole_address
from agent_core.base.settings import FILE_NAME, Settings, load
from agent_core.base.untrusted import one_line
from agent_core.base.workspace_folder import FUNCTIONS
from agent_core.model.beside import ModelsBeside, models_beside
from agent_core.model.dialect import quirks
from agent_core.model.discover import AZURE_VARIABLE, address_of
from agent_core.storage import STATE_FILE, prepare_state_dir, set_aside
from agent_core.views.faults import fault_lines
from agent_core.views.styled_lines import Line, counted, line, warned
from agent_core.workspace import model_check
from agent_core.workspace.doctor import check_address, check_texts
from agent_core.workspace.scaffold import create, existing
from knapper.terminal.dialog import agreed, ask, ask_hidden, say

from .run_options import TOUR, RunOptions

_LEAVE = ("q", "quit", "exit", "/exit")
_SHORTEST_KEY: Final = 12
_MOST_FILES: Final = 100  # files counted in an existing folder
_SHOWN_FILES: Final = 3


def choose(options: RunOptions, error: NoModel) -> RunOptions | None:
    """Return the options with a model that works, or None if the user quits."""
    azure = _azure(options)
    own = f"a deployment at {azure} (Azure)" if azure else "a key, or the address of an endpoint"
    beside = models_beside()
    offers = [models.offer() for models in beside]
    choices: list[tuple[Callable[[RunOptions], RunOptions], str, Sequence[str]]] = [
        (_key_or_address, own, ()),
        *(
            (partial(_beside, models), offer.title, offer.notes)
            for models, offer in zip(beside, offers, strict=True)
        ),
        (_tour, "the tour: five minutes, scripted, nothing to fetch", ()),
    ]
    rows = []
    for number, (_, title, notes) in enumerate(choices, start=1):
        rows.append(line(("name", f"  {number} "), title))
        rows += [line("    ", ("dim", note)) for note in notes]
    question = line(("strong", "Which model should answer you?"))
    say([*fault_lines(error.message), line(), question, *rows])
    ways = {str(number): way for number, (way, _, _) in enumerate(choices, start=1)}
    *others, last = ways
    asked = (
        f"Type {', '.join(others)} or {last} and Enter (Enter alone: {last}, the tour; q: leave):"
    )
    while True:
        typed = ask(asked)
        if typed is None or typed.lower() in _LEAVE:
            say([line("Nothing was changed. Next: knapper configure, or knapper run --model tour")])
            return None
        way = ways.get(typed or last)
        if way is None and not whole_address(typed):
            is_short = len(typed) < _SHORTEST_KEY  # a key is not shown once more
            what = f"`{one_line(typed)}`" if is_short else "That"
            say(
                fault_lines(
                    f"{what} is not {', '.join(ways)} or an address.",
                    "" if is_short else "A key: type 1 first.",
                )
            )
            continue
        try:
            return (
                way(options)
                if way is not None
                else _address(options, model_check.check_new_address(typed))
            )
        except KnapperError as failure:
            say(fault_lines(failure.message, failure.fix))
        except KeyboardInterrupt:
            say([line(), line(("warn", "Interrupted. What was fetched is kept."))])


def make_workspace(options: RunOptions, error: NoWorkspace) -> RunOptions | None:
    """Make the folder a workspace and return the options, or return None if the user does not want one here."""
    say([line(error.message), *_taken_over(options.root / FUNCTIONS)])
    if not agreed("Make one here (functions/ with six files of starters, and knapper.toml)?"):
        say([line("Nothing was changed. ", error.fix)])
        return None
    say([*(line(("ok", "+ "), name) for name in create(options.root)), line()])
    return options


def set_state_aside(options: RunOptions, error: ForeignState) -> RunOptions | None:
    """Set the state file aside and return the options, or return None if the user does not want that."""
    say(fault_lines(error.message))
    if not agreed("Set it aside, and begin a new one without conversations, memory or grants?"):
        say([line("Nothing was changed. ", error.fix)])
        return None
    name = set_aside(prepare_state_dir(existing(options.root)) / STATE_FILE, Clock())
    say(
        [
            line(("ok", "✓ "), f"set aside as {name}; if it is yours: knapper state adopt {name}"),
            line(),
        ]
    )
    return options


def _taken_over(functions: Path) -> list[Line]:
    """Return lines that explain what an existing folder of functions would become, if there is one."""
    try:
        names = sorted(
            islice((path.name for path in functions.iterdir() if path.suffix == ".py"), _MOST_FILES)
        )
    except OSError:
        return []
    few = ", ".join(one_line(name, 40) for name in names[:_SHOWN_FILES]) + (
        " …" if len(names) > _SHOWN_FILES else ""
    )
    count = counted(len(names), "Python file") if len(names) < _MOST_FILES else "many Python files"
    files = f"with {count} ({few})" if names else "without a Python file"
    starters = (
        "Its functions would become the assistant's, and the starters would be put beside them."
    )
    return [line(("warn", f"functions/ already exists, {files}. {starters}"))]


def tested_lines(tested: model_check.Tested) -> list[Line]:
    """Return the result of a real request as lines."""
    if not tested.ok:
        return fault_lines(tested.problem, tested.fix)
    at = f" at {tested.address}" if tested.address else ""
    answers = line(("ok", "✓ "), f"{tested.model}{at} answers ({tested.seconds:.1f} s).")
    return [answers, *warned(tested.window_warning)]


def _azure(options: RunOptions) -> str:
    """Return the address of the Azure resource if the environment names that and no other address; otherwise ""."""
    url, variable = address_of(options.environment())
    return url if variable == AZURE_VARIABLE else ""


def _key_or_address(options: RunOptions) -> RunOptions:
    if _azure(options):
        chosen = replace(
            options,
            model=model_check.check_new_name(ask("The name of the deployment:") or "") or None,
        )
        say([line(("dim", "Trying it …"))])
        _try(chosen)
        return chosen
    typed = ask_hidden(
        "A key, or an address (HOST:PORT or http://…/v1); it is not shown as you type:"
    )
    if not typed:
        raise UsageError("Nothing was typed.")
    if whole_address(typed):
        return _address(options, model_check.check_new_address(typed))
    key = _key(typed)
    openai = quirks().openai_url
    say([line(f"A key of {len(key)} characters. It is sent only where you say.")])
    where = ask(
        f"Whose is it? (Enter: OpenAI's, at {openai}; or type the address of its endpoint):"
    )
    if where is None:
        raise UsageError("The key was sent nowhere.")
    if where and where.rstrip("/") != openai:
        return _address(options, model_check.check_new_address(where), key)
    chosen = replace(options, key=key)
    say([line(("dim", "Trying it …"))])
    _try(chosen)
    _tell_about_key()
    return chosen


def _address(options: RunOptions, url: str, key: str | None = None) -> RunOptions:
    say([line("The address is ", ("strong", url))])
    if key is None:
        key = ask_hidden("Its key (not shown; Enter: it needs none):") or ""
    name = model_check.check_new_name(
        ask("The model's name (Enter: the first that it lists):") or ""
    )
    request = replace(options, base_url=url, model=name or None, key=_key(key) if key else "")
    say([line(("dim", "Trying it …"))])
    tested = _try(request)
    url = tested.address
    chosen = replace(request, model=tested.model, base_url=url)
    if agreed("Keep the address and the model's name in knapper.toml?"):
        model_check.keep_address(
            options.root, {"model.base_url": url, "model.name": chosen.model or ""}
        )
        say([line(("ok", "✓ "), "They are in knapper.toml.")])
    if key:
        _tell_about_key(model_check.exports(model_check.in_force(options.root, chosen.flags())[0]))
    return chosen


def _try(options: RunOptions) -> model_check.Tested:
    settings, _ = model_check.in_force(options.root, options.flags())
    check_address(settings, around=options.environment())
    around = {
        name: value for name, value in options.environment().items() if name != model_check.KEY
    }
    around |= {model_check.KEY: options.key} if options.key else {}
    trying = model_check.try_address if options.base_url else model_check.try_model
    tested = asyncio.run(trying(settings.model, around, options.root))
    if not tested.ok:
        raise ModelError(tested.problem, fix=tested.fix)
    say(tested_lines(tested))
    return tested


def _tell_about_key(commands: Sequence[str] = ()) -> None:
    say(
        [
            line(
                "The key is kept in memory for this run, and nowhere else. For the next one, type in your shell:"
            ),
            *(
                line("  ", ("strong", command))
                for command in commands or [f"export {model_check.KEY}=…"]
            ),
        ]
    )


def _key(typed: str) -> str:
    if not has_form_of_key(typed):
        what = "an address" if whole_address(typed) else "neither a key nor an address"
        fix = "A key has only letters, digits and a few marks, and no blank, `/` or `:`. Copy the whole key again."
        raise UsageError(f"That is {what}, so it was not sent as a key.", fix=fix)
    return typed


def _beside(models: ModelsBeside, options: RunOptions) -> RunOptions:
    name = models.best()
    obstacle = models.obstacle(name)
    if isinstance(obstacle, NoModel):
        models.fetch(name, asks=True)
    elif obstacle is not None:
        raise obstacle
    told = f"{name} is here. It is loading in the background; you can start typing."
    say([line(("ok", "✓ "), told)])
    return replace(options, model=name, base_url=None)


def _tour(options: RunOptions) -> RunOptions:
    return replace(options, model=TOUR, base_url=None)


# The question about an address that this user did not choose: only the workspace's file names it, or the server found
# there may belong to another user.


def ask_to_confirm(root: Path, settings: Settings, url: str) -> None:
    """Ask the user to confirm the address.

    Raises:
        UnconfirmedAddress: the user did not confirm it.
    """
    say(address_lines(settings, url))
    if not agreed("Send it there from now on?"):
        raise UnconfirmedAddress(url)
    confirm(root, url, settings.model.key_variable)


def settle_address(options: RunOptions, *, can_ask: bool) -> None:
    """Have the user confirm or reject an address that only the file names, before anything is sent to it.

    Raises:
        UnconfirmedAddress: the user cannot be asked or said no.
    """
    settings = load(options.root, options.flags())
    try:
        check_address(settings, around=options.environment())
        if settings.memory.embedding == "endpoint":
            check_texts(settings, options.environment())
    except UnconfirmedAddress as error:
        if not can_ask:
            raise
        ask_to_confirm(options.root, settings, error.url)


def address_lines(settings: Settings, url: str) -> list[Line]:
    """Return lines that explain what a yes means: the address and everything that is sent to it."""
    is_named = settings.model.base_url == url
    head = (
        f"{FILE_NAME} names "
        if is_named
        else "A server that may belong to another user answers at "
    )
    why = (
        "The file may come from someone else."
        if is_named
        else "Its port belongs neither to you nor to root."
    )
    embeds = settings.memory.embedding == "endpoint"
    texts = "; the texts that it remembers, to search them by meaning" if embeds else ""
    return [
        line(("warn", "! "), head, ("strong", shown(url))),
        line(f"  {why} This would be sent there: your messages, the conversation"),
        line(f"  and memory of your assistant, its functions and their results{texts};"),
        line(f"  and the key in {settings.model.key_variable}, if it is set."),
    ]
