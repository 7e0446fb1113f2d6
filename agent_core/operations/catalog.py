"""All slash commands: those that exist only at the prompt, and the verbs that are also slash commands."""

import re
from collections.abc import Mapping
from typing import Final

import click

from agent_core.base import matching
from agent_core.base.errors import UsageError
from agent_core.base.extensions import COMMANDS, NounBeside, offers
from agent_core.base.untrusted import one_line

from .attachments import first_named
from .commands.agents import agents, helpers
from .commands.conversations import conversations
from .commands.functions import calls, functions
from .commands.memory import log, memory, sources
from .commands.spending import cap, cost, pause, resume
from .commands.waiting import waiting
from .verb import ALONE, ALWAYS, CommandEntry, Verb

_OWN: Final = (
    functions,
    calls,
    memory,
    agents,
    conversations,
    sources,
    helpers,
    log,
    cost,
    cap,
    pause,
    resume,
    waiting,
)


def _nouns() -> Mapping[str, click.Command]:
    """Return the commands whose verbs work at the prompt and over a server, too; none replaces one of the program."""
    nouns = {command.name or "": command for command in _OWN}
    beside: Mapping[str, NounBeside] = offers(COMMANDS)
    for name, noun in beside.items():
        if noun.is_everywhere and name not in nouns:
            nouns[name] = noun.command()
    return nouns


NOUNS: Final[Mapping[str, click.Command]] = _nouns()


def verb_of(noun: str, name: str) -> Verb | None:
    """Return the verb of a noun, if it can run outside the shell."""
    above = NOUNS.get(noun)
    found = above.commands.get(name) if isinstance(above, click.Group) else above
    return found if isinstance(found, Verb) else None


def _place(entry: CommandEntry) -> float:
    """Return where a command is listed; one that says nothing of it is the last."""
    other = _PLACES.get(entry.before, len(_PLACES))
    return _PLACES.get(entry.name, other - 0.5)


VERBS: Final[Mapping[str, tuple[str, Verb]]] = {
    verb.slash: (noun, verb)
    for noun, above in NOUNS.items()
    for verb in (above.commands.values() if isinstance(above, click.Group) else [above])
    if isinstance(verb, Verb) and verb.slash
}
"""The verbs by their prompt names, with their nouns; a two-word name is a form of the command with the first word."""
_OF_PROMPT: Final = (
    CommandEntry(
        "/help [COMMAND | all]",
        "List the commands, or show one of them.",
        takes="all <command>",
        shows=ALWAYS,
    ),
    CommandEntry("/exit", "Leave; so does Ctrl-D. The conversation is kept.", shows=ALWAYS),
    CommandEntry(
        "/functions [TEXT]",
        "Browse the functions, or find those for TEXT; `unused`: those not called for a long time.",
        takes="unused",
        shows=ALWAYS,
        page="the room Functions",
    ),
    CommandEntry(
        "/about NAME",
        "Show a function's signature, words and standing; ?NAME is the same.",
        takes="<function>",
        shows=ALWAYS,
        page="the function in the room Functions",
    ),
    CommandEntry(
        "/call NAME(…)",
        "Call a function as in Python, or with one JSON object. =NAME(…) does the same; write _ for the last result.",
        takes="<function>",
        page="the function's form in the room Functions",
    ),
    CommandEntry(
        "/show [N]",
        "Open call N, by default the last one: verdict, arguments, answer, source.",
        takes="<call>",
        shows=ALWAYS,
        page="the line of the call in the chat, which opens",
    ),
    CommandEntry(
        "/create NAME [MODULE]",
        "Write a function in your editor; it goes through the gate.",
        takes=", <module>",
        needs_user=ALWAYS,
    ),
    CommandEntry(
        "/break [FUNCTION[:LINE] [if CONDITION] [after N] [every N] [once] | clear [N] | now | here]",
        "Set a breakpoint; `now`: stop the running function; `here`: step one here that another window steps; alone:"
        " list the breakpoints.",
        takes="now here clear <place>, if after every once",
        after={"now": "", "here": "", "clear": "<breakpoint>"},
        shows=ALONE,
        needs_user="now|here",
        in_turn=True,
    ),
    CommandEntry(
        "/debug NAME [JSON] | last",
        "Call a function and stop at its first line; `last`: where the last failed call raised.",
        takes="last <function>",
    ),
    CommandEntry(
        "/summarize", "Summarize the older part of the conversation now; nothing leaves recall."
    ),
    CommandEntry("/memorywarning", "Tell the agent now that its context is filling up."),
    CommandEntry("/heartbeat [WHY]", "Let the agent think and act without a message."),
    CommandEntry(
        "/switch NAME",
        "Talk to another agent, or to a new one with that name.",
        takes="<agent>",
        page="the choice of the agent, at the top",
    ),
    CommandEntry(
        "/load FILE", "Replace this agent with the one in a file, after asking.", takes="<path>"
    ),
    CommandEntry(
        "/mode [plan | ask | task] [on | ask | off]",
        "Choose what your next messages may reach: `plan` only reads, `ask` asks for each new reach, `task` once for"
        " all that the model expects; Shift-Tab goes from one to the next. The second word is for growth.",
        takes="plan ask task, on ask off",
        shows=ALONE,
        in_turn=True,
    ),
    CommandEntry(
        "/go",
        "Do what the last plan proposed: a turn in mode task, which asks once. So does Ctrl-G.",
    ),
    CommandEntry(
        "/retry",
        "Take the last message back and send it again.",
        page="the button Try again, after a turn that failed",
    ),
    CommandEntry("/pop", "Remove the last turn from the context; it stays on record."),
    CommandEntry(
        "/changes [NAME]",
        "List what this session made and changed; with NAME, take its last change back, after asking.",
        takes="<function>",
        shows=ALONE,
    ),
    CommandEntry(
        "/undo",
        "Take back what the last turn changed in functions, helpers, memory and states, after asking.",
    ),
    CommandEntry(
        "/new [NAME]",
        "Begin a new conversation; this one stays as it is. /conversations lists them, /open goes back.",
        page="the button New conversation",
    ),
    CommandEntry(
        "/open NAME|ID", "Go on with another conversation of this agent.", takes="<conversation>"
    ),
    CommandEntry(
        "/branch [N | N.M]",
        "Begin a conversation with what was said in this one, up to turn N of /log or message N.M of a search.",
    ),
    CommandEntry(
        "/name NAME",
        "Give this conversation a name; until then, its first words are its name.",
    ),
    CommandEntry(
        "/shell COMMAND",
        "Run a command in your shell; its output goes along with your next message. !COMMAND is the same.",
        needs_user=ALWAYS,
        in_turn=True,
    ),
    CommandEntry("/clear", "Clear the screen; the conversation stays.", shows=ALWAYS),
    CommandEntry(
        "/dump [FILE]",
        "Show or write to FILE all that the model sees: system message, functions, messages.",
        takes="<path>",
        shows=ALONE,
        page="the room Steps",
    ),
    CommandEntry(
        "/model [NAME]",
        "Show the model and those of the settings with their prices; with NAME, switch.",
        takes="<model>",
        shows=ALONE,
    ),
)
_ORDER: Final = (
    "help exit functions introspect about call show create edit test break debug trace release good bad grants"
    " approvals answer pin unpin delete history diff rollback example pending join confirm reload memory attach"
    " forget summarize memorywarning heartbeat agents switch conversations new open branch name mode go save load log"
    " retry pop waiting changes undo cost cap pause resume shell clear dump model"
)
_PLACES: Final = {
    name: place for place, name in enumerate(_ORDER.split())
}  # a command that has none comes last
BY_NAME: Final = {
    entry.name: entry
    for entry in sorted(
        (*_OF_PROMPT, *(verb.entry for _, verb in VERBS.values() if verb.entry)),
        key=_place,
    )
}
ENTRIES: Final = tuple(BY_NAME.values())
_MEANT = {
    "quit": "exit",
    "q": "exit",
    "bye": "exit",
    "ls": "functions",
    "rm": "delete",
    "pm": "debug last",
}
GROUPS: Final[Mapping[str, str]] = {
    "daily": "functions introspect edit call break memory attach undo changes retry mode go new conversations open"
    " model help exit",
    "functions": "create history rollback test trace debug show example pending join confirm diff delete good bad"
    " pin unpin grants approvals answer release reload",
    "agents": "agents switch save load summarize memorywarning heartbeat",
    "session": "log pop waiting branch name cost cap pause resume clear dump forget",
}
"""The commands as `/help` groups them: daily ones first; another is in the group of its noun, or else in the last."""


def group(name: str) -> list[CommandEntry]:
    """Return the commands in a group."""
    names = GROUPS[name].split()
    entries = [BY_NAME[command] for command in names]
    grouped = " ".join(GROUPS.values()).split()
    for entry in ENTRIES:
        if entry.name not in grouped and name == _group_of(entry.name):
            place = names.index(entry.before) if entry.before in names else len(names)
            entries.insert(place, entry)
            names.insert(place, entry.name)
    return entries


def _group_of(name: str) -> str:
    """Return the group of a command that none names."""
    noun = VERBS[name][0] if name in VERBS else ""
    return noun if noun in GROUPS else [*GROUPS][-1]


def needed(words: str, name: str) -> str:
    """Return the argument of a command that requires one.

    Raises:
        UsageError: the argument is missing.
    """
    if not words:
        raise UsageError(f"/{name} needs an argument.", fix=f"Type {BY_NAME[name].typed}.")
    return words


def check_source(name: str, words: str, *, is_trusted: bool) -> None:
    """Check that a command is allowed from its source.

    Raises:
        UsageError: the command comes from an untrusted pipe and would do more than show something.
    """
    words = words.strip()
    if is_trusted or name not in BY_NAME or BY_NAME[name].only_shows(words):
        return
    typed = one_line(f"/{name} {words}".strip(), 60)
    if re.fullmatch(BY_NAME[name].needs_user, words):
        raise UsageError(
            f"`{typed}` needs a user at a terminal, and came from a pipe.",
            fix="Type it at a prompt.",
        )
    raise UsageError(
        f"`{typed}` does more than show something, and came from a pipe.", fix="Add -y to run it."
    )


def nearest(name: str) -> str:
    """Return the known command closest to a mistyped one, or "" if none is close."""
    begun = [command_name for command_name in BY_NAME if name and command_name.startswith(name)]
    if begun:
        return begun[0]
    if name in _MEANT:
        return _MEANT[name]
    matches = matching.nearest(name, BY_NAME)
    return matches[0] if matches else ""


def suggestion(name: str) -> str:
    """Return what to do about a command that does not exist: the one that was probably meant, or how to list them."""
    meant = nearest(name)
    return f"Did you mean /{meant}?" if meant else "Type /help for the list."


# The short forms of commands: `=NAME(…)`, `?NAME` and `!COMMAND`.
CALL = re.compile(r"=\s*(?:[A-Za-z_]\w*\s*=\s*)?[A-Za-z_]\w*\s*\(")
NEAR = re.compile(r"(=|\?\??)(?:\s*$|(?=[A-Za-z_]))(.*)", re.DOTALL)
SHELL = re.compile(r"!(?![\s!=])")
TO_MODEL: Final = "To send it to the model, put a space before it."
_SIGNS: Final = {"=": "call", "?": "about", "!": "shell"}
_COMMAND = re.compile(r"/([\w-]{1,60})(?!\S)")


def check_message(text: str, elsewhere: str = "") -> None:
    """Check that text typed outside a prompt is a message. Text that begins with a space always is.

    Errors say where a page has what was typed, or else `elsewhere`.

    Raises:
        UsageError: it begins like a command or a short form, or names an existing file.
    """
    if text[:1].isspace():
        return
    command, file = _COMMAND.match(text), first_named(text)
    typed, name = text.split()[0], command[1] if command else ""
    if CALL.match(text) or NEAR.fullmatch(text) or SHELL.match(text):
        name = _SIGNS[text[0]]
    elif command and name not in BY_NAME:
        if meant := nearest(name):
            raise UsageError(
                f"There is no command /{name}.", fix=f"Did you mean /{meant}? {TO_MODEL}"
            )
        if text.strip() == typed:
            raise UsageError(f"There is no command /{name}.", fix=TO_MODEL)
        name = ""
    if name or file:
        page = BY_NAME[name].page if name else "the sources in the room Memory, or paste its text"
        where = elsewhere or (f"Here it is: {page}." if page else "This page does not have it.")
        what = f"`{one_line(typed if name else f'@{file}', 60)}` is for the prompt in a terminal (knapper run)"
        raise UsageError(f"{what}, so nothing was sent.", fix=f"{where} {TO_MODEL}")
