"""The slash commands as data: for completion, for `/help`, and for the commands of the shell that they are."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent_core.base import matching
from agent_core.base.errors import UsageError
from agent_core.base.untrusted import one_line

ALWAYS, ALONE, NEVER = ".*", "", "(?!)"


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """One command: its arguments, what it does, and what can stand at each position after it.

    `takes` has words and kinds of names, such as `<function>`, for each place; `after` those of the second place after
    one word at the first.

    `shows` is the form of the words with which it only shows something. From a pipe no more is done without an option.
    `needs_user` is the form of those with which it works only for a user at a terminal, whatever option is given.

    `runs` is the command of the shell that it is, if it is one, with places for the words that are typed; `below` has
    those that it is with a word of its own at the first place. They run with the shell's handlers.
    `page` says where the server's page has the same, if it has.
    """

    name: str
    usage: str
    says: str
    takes: tuple[tuple[str, ...], ...] = ()
    shows: str = field(kw_only=True)
    needs_user: str = NEVER
    in_turn: bool = False
    after: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    runs: str = ""
    below: Mapping[str, str] = field(default_factory=dict)
    page: str = ""

    @property
    def typed(self) -> str:
        """The command with its arguments, as the user types it."""
        return f"/{self.name} {self.usage}".rstrip()

    def only_shows(self, words: str) -> bool:
        """Return whether it only shows something with these words."""
        return re.fullmatch(self.shows, words) is not None

    def offers(self, before: Sequence[str]) -> tuple[str, ...]:
        """Return what can stand at the position after these words."""
        if len(before) == 1 and before[0] in self.after:
            return self.after[before[0]]
        return self.takes[len(before)] if len(before) < len(self.takes) else ()


_FUNCTION = (("<function>",),)
_VERSION = (("<function>",), ("<version>",))
_AGENT, _PATH = (("<agent>",),), (("<path>",),)
_CALL, _LABEL = (("<call>",),), (("<label>",),)

ENTRIES = (
    CommandEntry(
        "help",
        "[COMMAND | all]",
        "List the commands, or show one of them.",
        (("all", "<command>"),),
        in_turn=True,
        shows=ALWAYS,
    ),
    CommandEntry("exit", "", "Leave; so does Ctrl-D. The conversation is kept.", in_turn=True, shows=ALWAYS),
    CommandEntry(
        "functions",
        "[TEXT]",
        "Browse the functions, or find those for TEXT; `unused`: those that nobody calls.",
        (("unused",),),
        in_turn=True,
        shows=ALWAYS,
        page="the room Functions",
    ),
    CommandEntry(
        "introspect",
        "NAME",
        "Show a function's source, standing, calls, verdict and callers.",
        _FUNCTION,
        in_turn=True,
        runs="functions show NAME",
        shows=ALWAYS,
        page="the room Functions",
    ),
    CommandEntry(
        "about",
        "NAME",
        "Show a function's signature, words and standing; ?NAME is the same.",
        _FUNCTION,
        in_turn=True,
        shows=ALWAYS,
    ),
    CommandEntry(
        "call",
        "NAME(…)",
        "Call a function as in Python, or with one JSON object. =NAME(…) does the same; write _ for the last result.",
        _FUNCTION,
        shows=NEVER,
        page="the function's form in the room Functions",
    ),
    CommandEntry(
        "show",
        "[N]",
        "Open call N, by default the last one: verdict, arguments, answer, source.",
        _CALL,
        in_turn=True,
        shows=ALWAYS,
        page="the line of the call in the chat, which opens",
    ),
    CommandEntry(
        "create",
        "NAME [MODULE]",
        "Write a function in your editor; it goes through the gate.",
        ((), ("<module>",)),
        shows=NEVER,
        needs_user=ALWAYS,
    ),
    CommandEntry(
        "edit",
        "NAME",
        "Open a function in $VISUAL or $EDITOR, at its line.",
        _FUNCTION,
        runs="functions edit NAME",
        shows=NEVER,
        needs_user=ALWAYS,
    ),
    CommandEntry(
        "test",
        "NAME [JSON]",
        "Run a function's examples, or one call with arguments.",
        _FUNCTION,
        runs="functions test NAME [--args=JSON]",
        shows=NEVER,
        page="the function in the room Functions",
    ),
    CommandEntry(
        "break",
        "[FUNCTION[:LINE] [if CONDITION] [after N] [every N] [once] | clear [N] | now]",
        "Set a breakpoint; `now`: stop the running function; alone: list the breakpoints.",
        (("now", "clear", "<place>"), ("if", "after", "every", "once")),
        in_turn=True,
        after={"now": (), "clear": ("<breakpoint>",)},
        shows=ALONE,
        needs_user="now",
    ),
    CommandEntry(
        "debug",
        "NAME [JSON] | last",
        "Call a function and stop at its first line; `last`: where the last failed call raised.",
        (("last", "<function>"),),
        shows=NEVER,
    ),
    CommandEntry(
        "trace",
        "NAME [JSON]",
        "Show the lines that a call runs, and the locals that they change.",
        _FUNCTION,
        runs="functions trace NAME [--args=JSON]",
        shows=NEVER,
        page="the function's form in the room Functions",
    ),
    CommandEntry(
        "release",
        "NAME",
        "Release a function from quarantine: the model sees it again.",
        _FUNCTION,
        in_turn=True,
        runs="functions release NAME",
        shows=NEVER,
        page="the function in the room Functions",
    ),
    CommandEntry(
        "good",
        "[NAME]",
        "Say that a function's results are right; by default, those of the last call.",
        _FUNCTION,
        shows=NEVER,
    ),
    CommandEntry(
        "bad",
        "[NAME [NOTE]]",
        "Say that its result was wrong: it becomes a draft, and the agent is told.",
        _FUNCTION,
        shows=NEVER,
    ),
    CommandEntry(
        "grants",
        "[NAME [revoke [WHAT]]]",
        "Show the grants of functions; `revoke` removes all, a kind or one item.",
        (("<function>",), ("revoke",)),
        in_turn=True,
        shows=r"\S*",
    ),
    CommandEntry(
        "delete", "NAME", "Delete a function, after asking.", _FUNCTION, runs="functions delete NAME", shows=NEVER
    ),
    CommandEntry(
        "history",
        "NAME",
        "Show a function's versions: when, who, why; works for a deleted one, too.",
        _FUNCTION,
        in_turn=True,
        runs="functions history NAME",
        shows=ALWAYS,
        page="the function in the room Functions",
    ),
    CommandEntry(
        "diff",
        "NAME [VERSION]",
        "Show what changed since a version, or in the last change.",
        _VERSION,
        in_turn=True,
        runs="functions diff NAME [VERSION]",
        shows=ALWAYS,
        page="the function in the room Functions",
    ),
    CommandEntry(
        "blame",
        "NAME [VERSION]",
        "Show who wrote which line, when and why.",
        _VERSION,
        in_turn=True,
        runs="functions blame NAME [VERSION]",
        shows=ALWAYS,
    ),
    CommandEntry(
        "rollback",
        "NAME [VERSION]",
        "Restore an earlier version, or a deleted function.",
        _VERSION,
        runs="functions rollback NAME [VERSION]",
        shows=NEVER,
        page="the function in the room Functions",
    ),
    CommandEntry(
        "example", "NAME CALL = RESULT", "Add an example to a function, if it passes.", _FUNCTION, shows=NEVER
    ),
    CommandEntry(
        "pending",
        "[NAME [drop]]",
        "Show the rejected candidates, and why; `drop` discards one.",
        (("<candidate>",), ("drop",)),
        in_turn=True,
        shows=r"\S*",
    ),
    CommandEntry(
        "confirm",
        "NAME [REASON | = RESULT, …]",
        "Admit a rejected candidate with the results that came back, or say which ones must.",
        (("<candidate>",),),
        shows=NEVER,
    ),
    CommandEntry(
        "audit",
        "",
        "Show the state of the library: a score, and what to improve, each with a proposal.",
        in_turn=True,
        runs="functions audit",
        shows=ALWAYS,
    ),
    CommandEntry("reload", "", "Read the functions folder again.", runs="functions reload", shows=NEVER),
    CommandEntry(
        "memory",
        "[LABEL | edit LABEL [TEXT] | history [LABEL] | undo [LABEL] | tidy [LABEL] | search TEXT | section …]",
        "Show what the agent remembers; `/memory section [NAME [POSITION TEXT | drop]]` edits the system message.",
        (("<label>", "edit", "history", "undo", "tidy", "search", "section"),),
        after={
            "edit": _LABEL[0],
            "history": _LABEL[0],
            "undo": _LABEL[0],
            "tidy": _LABEL[0],
            "section": ("<section>",),
        },
        runs="memory show [LABEL]",
        below={
            "edit": "memory edit LABEL [--value=TEXT]",
            "history": "memory history [LABEL]",
            "undo": "memory undo [LABEL]",
            "tidy": "memory tidy [LABEL]",
            "search": "memory search TEXT",
        },
        shows=r"(?!(?:edit|undo|tidy)(?: |$))\S*|history(?: .*)?|search .*|section(?: \S+)?",
        needs_user=r"edit \S+",
        page="the room Memory",
    ),
    CommandEntry(
        "attach",
        "PATH|URL",
        "Read it into archival memory. Ctrl-C stops; the same command continues.",
        _PATH,
        runs="sources add PLACE",
        shows=NEVER,
        page="the room Memory",
    ),
    CommandEntry(
        "forget",
        "TEXT | message N.M | turn N | before DATE",
        "Take it out of the record for good, after a preview, such as: /forget green tea. `last` is the last message or"
        " turn; --word TEXT: only the whole word; text TEXT: a text that begins with one of these words.",
        (("message", "turn", "before", "text"),),
        shows=NEVER,
    ),
    CommandEntry(
        "summarize", "", "Summarize the older part of the conversation now; nothing leaves recall.", shows=NEVER
    ),
    CommandEntry("memorywarning", "", "Tell the agent now that its context is filling up.", shows=NEVER),
    CommandEntry("heartbeat", "[WHY]", "Let the agent think and act without a message.", shows=NEVER),
    CommandEntry(
        "agents",
        "[tree | watch | pause NAME | resume NAME | stop NAME | answer NAME TEXT | route NAME TO]",
        "List the agents of this workspace, * marks the current one; `tree` (or `watch`, live) shows what they do; or"
        " steer one. /switch NAME makes one.",
        (("tree", "watch", "pause", "resume", "stop", "answer", "route"), ("<agent>",)),
        in_turn=True,
        runs="agents list",
        below={
            "tree": "agents tree",
            "watch": "agents watch",
            "pause": "agents pause NAME [--why=TEXT]",
            "resume": "agents resume NAME",
            "stop": "agents stop NAME [--why=TEXT]",
            "answer": "agents answer NAME TEXT",
            "route": "agents route NAME TO",
        },
        shows="(?:tree|watch)?",
        page="the room Agents",
    ),
    CommandEntry(
        "switch",
        "NAME",
        "Talk to another agent, or to a new one with that name.",
        _AGENT,
        shows=NEVER,
        page="the choice of the agent, at the top",
    ),
    CommandEntry("save", "[FILE]", "Write this agent to FILE, as one JSON document.", _PATH, shows=NEVER),
    CommandEntry("load", "FILE", "Replace this agent with the one in a file, after asking.", _PATH, shows=NEVER),
    CommandEntry(
        "log",
        "[--last N] [--since DATE] [--all] [-o FILE]",
        "Show this conversation as Markdown, or write it to FILE; `--all`: with what /new and /pop removed.",
        (("--last", "--since", "--all", "-o"),),
        in_turn=True,
        shows=r"(?:--all|--last \d+|--since [\w:.+-]+| )*",
    ),
    CommandEntry(
        "retry",
        "",
        "Take the last message back and send it again.",
        shows=NEVER,
        page="the button Try again, after a turn that failed",
    ),
    CommandEntry("pop", "", "Remove the last turn from the context; it stays on record.", shows=NEVER),
    CommandEntry(
        "changes", "", "List what this session made and changed, numbered for /undo.", in_turn=True, shows=ALWAYS
    ),
    CommandEntry(
        "undo",
        "[N | all]",
        "Undo the last step (a function, a block of memory, a message), or number N of /changes, after asking.",
        (("all",),),
        shows=NEVER,
    ),
    CommandEntry(
        "cost",
        "",
        "Show what each turn of this session cost, and all turns of the agent: tokens, and money if prices are known.",
        in_turn=True,
        shows=ALWAYS,
        page="the room Steps",
    ),
    CommandEntry(
        "new",
        "",
        "Begin a new conversation; this one leaves the context and stays on record.",
        shows=NEVER,
        page="the button New conversation",
    ),
    CommandEntry(
        "shell",
        "COMMAND",
        "Run a command in your shell; its output goes along with your next message. !COMMAND is the same.",
        in_turn=True,
        shows=NEVER,
        needs_user=ALWAYS,
    ),
    CommandEntry("clear", "", "Clear the screen; the conversation stays.", in_turn=True, shows=ALWAYS),
    CommandEntry(
        "dump",
        "[FILE]",
        "Show or write to FILE all that the model sees: system message, functions, messages.",
        _PATH,
        shows=ALONE,
        page="the room Steps",
    ),
    CommandEntry(
        "model",
        "[NAME]",
        "Show the model and those of the settings with their prices; with NAME, switch.",
        (("<model>",),),
        shows=ALONE,
    ),
)
_MEANT = {"quit": "exit", "q": "exit", "bye": "exit", "ls": "functions", "rm": "delete", "pm": "debug last"}
BY_NAME = {entry.name: entry for entry in ENTRIES}
GROUPS: Mapping[str, tuple[str, ...]] = {
    "daily": (
        "functions", "introspect", "edit", "call", "break", "memory", "attach", "undo", "changes", "retry", "new",
        "model", "help", "exit",
    ),
    "functions": (
        "create", "history", "rollback", "test", "trace", "debug",
        "show", "example", "pending", "confirm", "diff", "blame", "delete", "good", "bad",
        "grants", "release", "audit", "reload",
    ),
    "agents": ("agents", "switch", "save", "load", "summarize", "memorywarning", "heartbeat"),
    "session": ("log", "pop", "cost", "clear", "dump", "forget"),
}  # fmt: skip
"""The commands as `/help` groups them; the daily ones come first, and one that is in no group with the last."""


def group(name: str) -> list[CommandEntry]:
    """Return the commands of a group."""
    grouped = {command for commands in GROUPS.values() for command in commands}
    loose = [entry for entry in ENTRIES if entry.name not in grouped] if name == [*GROUPS][-1] else []
    return [*(BY_NAME[command] for command in GROUPS[name]), *loose]


def needed(words: str, name: str) -> str:
    """Return the argument of a command that requires one. Raise a usage error if it is missing.

    Raises:
        UsageError: nothing was.
    """
    if not words:
        raise UsageError(f"/{name} needs an argument.", fix=f"Type {BY_NAME[name].typed}.")
    return words


def check_source(name: str, words: str, *, is_trusted: bool) -> None:
    """Check that a command may be done from where it comes.

    Raises:
        UsageError: it comes from a pipe that nobody vouched for, and would do more than show something.
    """
    words = words.strip()
    if is_trusted or name not in BY_NAME or BY_NAME[name].only_shows(words):
        return
    typed = one_line(f"/{name} {words}".strip(), 60)
    if re.fullmatch(BY_NAME[name].needs_user, words):
        raise UsageError(f"`{typed}` needs a user at a terminal, and came from a pipe.", fix="Type it at a prompt.")
    raise UsageError(f"`{typed}` does more than show something, and came from a pipe.", fix="Give -y to have it done.")


def nearest(name: str) -> str:
    """Return the known command that is closest to a mistyped one, or "" if none is."""
    begun = [command_name for command_name in BY_NAME if name and command_name.startswith(name)]
    if begun:
        return begun[0]
    if name in _MEANT:
        return _MEANT[name]
    matches = matching.nearest(name, BY_NAME)
    return matches[0] if matches else ""
