"""The slash commands for the session itself: its cost, its conversation, model and agent."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

from agent_core.access.grants.addresses import UnconfirmedAddress, confirm
from agent_core.base.errors import ModelError, UsageError
from agent_core.base.matching import MARK
from agent_core.base.messages import Answer, Assistant, Message, Notice, System, User
from agent_core.base.untrusted import one_line
from agent_core.model.request import FunctionShown
from agent_core.runtime.model_session import SUMMARIZING
from agent_core.workspace.portable import read_file, write_file
from sandbox.wire.lines import bare_lines

from . import slash_undo
from .address_confirmation import address_lines
from .catalogue import BY_NAME, needed
from .columns import columns
from .conversation import Conversation, made_line
from .render.agent_view import report_lines, waiting_lines
from .slash_undo import popped, removed_line
from .spans import Line, line, plain, warned
from .spending import Spending, ever_line, priced, spending_lines, spent_since_ever
from .state import opened_state

_SAME = "The model is the same as before."
_MOST_MODELS = 30
_SHOWN = 20  # lines of a message that is sent again: the text of files goes along with it


async def _cost(conversation: Conversation, words: str) -> None:
    workspace, name = conversation.workspace, conversation.agent.name
    ever = Spending(workspace.root, workspace.settings.models)
    await spent_since_ever(workspace.store, name, ever)
    conversation.voice.lines([*spending_lines(conversation.spending), ever_line(name, ever)])


async def _pop(conversation: Conversation, words: str) -> None:
    removed = await popped(conversation)
    conversation.voice.lines([removed_line(removed) if removed else line(("dim", "There is no turn to remove."))])


async def _new(conversation: Conversation, words: str) -> None:
    await conversation.keep_unsaved()
    turns = await conversation.agent.begin_anew()
    conversation.deeds.unsay_all(conversation.agent.name)
    many = f"{turns} turn{'' if turns == 1 else 's'}"
    message = f"A new conversation. {many} left the context and stay{'s' if turns == 1 else ''} on record."
    conversation.voice.lines(
        [line(("ok", "✓ "), message) if turns else line(("dim", "The conversation is already new."))]
    )


async def _retry(conversation: Conversation, words: str) -> None:
    if await conversation.agent.ends_with_a_file():
        raise UsageError("The last message came with an agent's file.", fix="Type it yourself to send it.")
    if MARK in (await conversation.agent.user_texts() or [""])[-1]:
        what = "Something of the last message was forgotten, so it is not sent again."
        raise UsageError(what, fix="Type anew what you want to say.")
    removed = await popped(conversation)
    while removed is not None and not removed.is_message:  # a heartbeat's turn after it goes with it
        conversation.voice.lines([removed_line(removed)])
        removed = await popped(conversation)
    if removed is None:
        raise UsageError("There is no message to send again.")
    first, *others = removed.text.split("\n")
    conversation.voice.lines(
        [line(("name", "› "), ("strong", first)), *(line("  ", ("strong", text)) for text in others[:_SHOWN])]
    )
    await conversation.say(removed.text)


async def _dump(conversation: Conversation, words: str) -> None:
    prompt = await conversation.agent.prompt()
    system = [message for message in prompt.messages if isinstance(message, System)]
    said = [row for message in prompt.messages if not isinstance(message, System) for row in _message_lines(message)]
    shown = [row for function in prompt.functions for row in _function_lines(function)]
    before = [*(row for message in system for row in _message_lines(message)), *shown]
    lines = [*before, *(said or [line(("dim", "Nothing was said yet."))])]
    if not words:
        conversation.voice.lines(lines)
        return
    await asyncio.to_thread(write_file, words, plain(lines))
    conversation.voice.lines([line(("ok", "✓ "), f"{len(lines)} lines in {words}")])


async def _model(conversation: Conversation, words: str) -> None:
    if " " in words:
        raise UsageError("A model's name has no space.", fix=f"Type {BY_NAME['model'].typed}.")
    if not words:
        await _show_models(conversation)
        return
    try:
        message = await _switched(conversation, words)
    except UnconfirmedAddress as error:
        settings = conversation.workspace.settings.using(words)
        conversation.voice.lines(address_lines(settings, error.url))
        if not await conversation.voice.confirm("Send it there?"):
            conversation.voice.lines([line(("dim", _SAME))])
            return
        confirm(conversation.workspace.root, error.url)
        message = await _switched(conversation, words)
    conversation.voice.lines([line(message), *warned(conversation.agent.window_warning())])


async def _show_models(conversation: Conversation) -> None:
    """Show the model that answers, those of the settings, and those that its endpoint has."""
    line_of_model, models = await conversation.agent.model_line(), conversation.workspace.settings.models
    now = conversation.agent.status().model
    named = {name: priced(model) for name, model in models.items()}
    listed = await conversation.agent.endpoint_models()
    endpoint_names = [name for name in listed or () if name not in named]
    shown = sorted(endpoint_names, key=lambda name: (name != now, name))[:_MOST_MODELS]
    prices = [*named.items(), *((name, "") for name in shown)]
    current = {now, *(name for name, model in models.items() if model.name == now)}
    rows = [["*" if name in current else "", one_line(name, 100), price] for name, price in prices]
    left_out = len(endpoint_names) - len(shown)
    more = f"and {left_out:,} more that the endpoint has. " if left_out else ""
    none = "Its endpoint does not say which models it has. " if listed == [] else ""
    hint = f"{more}{none}/model NAME switches to another."
    model = [line(line_of_model), *warned(conversation.agent.window_warning())]
    conversation.voice.lines([*model, *columns(rows, ("ok", "name", "dim")), line(("dim", hint))])


async def _switched(conversation: Conversation, name: str) -> str:
    try:
        return await conversation.agent.set_model(name)
    except UnconfirmedAddress:
        raise
    except (ModelError, UsageError) as error:
        error.fix = f"{error.fix} {_SAME}".strip()
        raise


def _function_lines(function: FunctionShown) -> list[Line]:
    parameters = json.dumps(function.parameters, ensure_ascii=False)
    return _speech_lines(f"function {function.name}", f"{function.description.strip()}\n{parameters}")


def _message_lines(message: Message) -> list[Line]:
    match message:
        case Assistant():
            call_lines = [line("  ▸ ", call.name, " ", call.arguments) for call in message.calls]
            return [*_speech_lines("assistant", message.text), *call_lines]
        case Answer():
            return _speech_lines(f"answer of {message.name}", message.text)
        case System() | User() | Notice():
            return _speech_lines(type(message).__name__.lower(), message.text)


def _speech_lines(who: str, text: str) -> list[Line]:
    return [line(("strong", who)), *(line("  ", row) for row in bare_lines(text))]


async def _summarize(conversation: Conversation, words: str) -> None:
    async with conversation.command():
        await conversation.keep_unsaved()
        with conversation.waiting(SUMMARIZING):
            summary = await conversation.agent.summarize()
        conversation.voice.lines([line(row) for row in bare_lines(summary)])


async def _memorywarning(conversation: Conversation, words: str) -> None:
    await conversation.agent.warn_memory()
    await conversation.wake()


async def _heartbeat(conversation: Conversation, words: str) -> None:
    await conversation.agent.session.post("heartbeat", words or "the user asked for it.")
    await conversation.wake()


async def _switch(conversation: Conversation, words: str) -> None:
    name = needed(words, "switch")
    if name == conversation.agent.name:
        raise UsageError(f"You are already talking to {name}.")
    is_new = not await conversation.workspace.has_agent(name)
    if is_new and not await conversation.voice.confirm(f"There is no agent {name}. Create it?"):
        conversation.voice.lines([line(("dim", "It was not created."))])
        return
    made = await asyncio.to_thread(conversation.workspace.directory.make, name) if is_new else ""
    await conversation.switch(name)
    if made:
        conversation.voice.lines([made_line(made)])
    await conversation.greet()


async def _load(conversation: Conversation, words: str) -> None:
    """Load an agent from a file. Check the whole file before asking, and replace this agent only once the other is
    ready.
    """
    name, path = conversation.agent.name, Path(needed(words, "load"))
    text = await asyncio.to_thread(read_file, path)
    async with opened_state(conversation.workspace.root) as state:
        whole, report = await state.moves.check(text, name, path.stem)
        conversation.voice.lines(waiting_lines(report.inbox, report.waiting))
        question = f"Replace {name}, conversation and memory, with the agent in {words}?"
        if not await conversation.voice.confirm(question, is_final=True):
            conversation.voice.lines([line(("dim", "Nothing was changed."))])
            return
        await conversation.agent.aclose()
        try:
            async with state.alone(name):
                await state.moves.replace(whole, report)
        finally:
            await conversation.switch(name)
    conversation.voice.lines(report_lines(report))
    await conversation.greet()


RUNS: dict[str, Callable[[Conversation, str], Awaitable[None]]] = {
    "cost": _cost,
    **slash_undo.RUNS,
    "pop": _pop,
    "new": _new,
    "retry": _retry,
    "dump": _dump,
    "model": _model,
    "summarize": _summarize,
    "memorywarning": _memorywarning,
    "heartbeat": _heartbeat,
    "switch": _switch,
    "load": _load,
}
