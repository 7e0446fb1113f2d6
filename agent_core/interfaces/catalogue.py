"""The commands that begin with a slash, as data: what completion and `/help` know of them."""

import difflib
from dataclasses import dataclass
from typing import Literal

from agent_core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Entry:
    """One command: what to type after its name, what it does, what its argument names, which words follow.

    Where its argument is one of the words, `then` are these, and a block of memory can follow.
    """

    name: str
    usage: str
    says: str
    argument: Literal["", "function", "command", "agent", "word", "path", "call"] = ""
    in_turn: bool = False
    then: tuple[str, ...] = ()

    @property
    def typed(self) -> str:
        """The command with its arguments, as one types it."""
        return f"/{self.name} {self.usage}".rstrip()


ENTRIES = (
    Entry("help", "[COMMAND]", "What can be typed here.", "command", in_turn=True),
    Entry("exit", "", "Leave; Ctrl-D does the same. The conversation is kept.", in_turn=True),
    Entry(
        "functions",
        "[TEXT]",
        "The functions, to be looked through, or those with TEXT; `unused`: nobody calls them.",
        "word",
        in_turn=True,
        then=("unused",),
    ),
    Entry("introspect", "NAME", "A function's source, standing, calls, verdict, callers.", "function", in_turn=True),
    Entry("show", "[N]", "Call number N in full; without N the last one.", "call", in_turn=True),
    Entry("create", "NAME [MODULE]", "Write a function in your editor; it is judged as any other."),
    Entry("edit", "NAME", "Open a function in $VISUAL or $EDITOR, at its line.", "function"),
    Entry("test", "NAME [JSON]", "Run a function's examples, or one call with arguments.", "function"),
    Entry(
        "break",
        "[FUNCTION[:LINE] [if CONDITION] [after N] [every N] [once] | clear [N] | now]",
        "Stop there, in the debugger; `now`: where it runs; without more: the list.",
        "function",
        in_turn=True,
        then=("if", "after", "every", "once"),
    ),
    Entry(
        "debug",
        "NAME [JSON] | last",
        "Stop at a function's first line; `last`: where the last failed call raised.",
        "function",
    ),
    Entry("trace", "NAME [JSON]", "The lines that a call runs, with the locals that they change.", "function"),
    Entry("release", "NAME", "Let a function out of quarantine: the model sees it again.", "function", in_turn=True),
    Entry(
        "grants",
        "[NAME [revoke [WHAT]]]",
        "What functions may reach; `revoke` takes it all, a kind or one item back.",
        "function",
        in_turn=True,
        then=("revoke",),
    ),
    Entry("delete", "NAME", "Delete a function, after asking.", "function"),
    Entry("history", "NAME", "A function's versions: when, who, why; also a deleted one's.", "function", in_turn=True),
    Entry("diff", "NAME [VERSION]", "What changed since a version, or by the last change.", "function", in_turn=True),
    Entry("blame", "NAME [VERSION]", "Who wrote which line, when and why.", "function", in_turn=True),
    Entry("rollback", "NAME [VERSION]", "Put an earlier version back, or a deleted function.", "function"),
    Entry("example", "NAME CALL = RESULT", "Keep one more example with a function, if it holds.", "function"),
    Entry("pending", "[NAME [drop]]", "The candidates that stand refused, and why; `drop` gives one up.", in_turn=True),
    Entry("confirm", "NAME [REASON]", "Admit one of them with the results that came back."),
    Entry("reload", "", "Read the functions folder again."),
    Entry(
        "memory",
        "[LABEL | edit LABEL [TEXT] | history [LABEL] | undo [LABEL] | search TEXT | section …]",
        "What the agent remembers; `/memory section [NAME [POSITION TEXT | drop]]` for the system message.",
        "word",
        then=("edit", "history", "undo", "search", "section"),
    ),
    Entry("attach", "PATH|URL", "Have it read into archival memory. Ctrl-C stops; the same again goes on.", "path"),
    Entry("summarize", "", "Summarise the older part of the conversation now; nothing leaves recall."),
    Entry("memorywarning", "", "Tell the agent now that its context is filling up."),
    Entry("heartbeat", "", "Let the agent think and act without a message."),
    Entry("agents", "", "The agents of this workspace; * is the one that you talk to.", in_turn=True),
    Entry("switch", "NAME", "Talk to another agent, or to a new one of that name.", "agent"),
    Entry("save", "[FILE]", "Write this agent whole into FILE, as one JSON document.", "path"),
    Entry("load", "FILE", "Put the agent of a file in the place of this one, after asking.", "path"),
    Entry("retry", "", "Take the last message back and send it again."),
    Entry("pop", "", "Take the last turn out of the context; it stays on record."),
    Entry("undo", "", "Take back what was done last: a function, a block of memory or a message, after asking."),
    Entry(
        "cost",
        "",
        "What each turn of this session took: tokens, and money where prices are known.",
        in_turn=True,
    ),
    Entry("new", "", "Begin a new conversation; this one leaves the context and stays on record."),
    Entry("clear", "", "Clear the screen; the conversation stays.", in_turn=True),
    Entry("dump", "[FILE]", "What the model has in its context, here or into FILE.", "path"),
    Entry("model", "[NAME]", "The model and why it was chosen; with NAME, another one."),
)
BY_NAME = {entry.name: entry for entry in ENTRIES}


def needed(words: str, name: str) -> str:
    """What was typed after a command that cannot do without.

    Raises:
        UsageError: nothing was.
    """
    if not words:
        raise UsageError(f"/{name} needs to know which.", mend=f"Type {BY_NAME[name].typed}.")
    return words


def nearest(name: str) -> str:
    """The known command that is closest to a mistyped one, or nothing."""
    begun = [known for known in BY_NAME if name and known.startswith(name)]
    if begun:
        return begun[0]
    near = difflib.get_close_matches(name, BY_NAME, n=1, cutoff=0.5)
    return near[0] if near else ""
