"""Files that describe agents, helpers and groups: GROUPS/NAME.toml, reloaded on change into a dataclass.

If a file is invalid, its last valid version stays in force, and its problems are reported.
"""

import errno
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Generic, NoReturn, TypeAlias, TypeVar, get_type_hints

from agent_core.base.caps import AMOUNT_LIMIT
from agent_core.base.errors import ConfigError
from agent_core.base.limits import SpendingLimits
from agent_core.base.matching import Wildcard, look, names_by_look, nearest
from agent_core.base.plain_files import read_plain
from agent_core.base.problem import Place, Problem
from agent_core.base.records import MISSING, dataclass, field, fields
from agent_core.base.untrusted import one_line
from agent_core.registry.module_edits import save_text
from agent_core.runtime.groups.plan import FUNCTION, MODEL, RULES, GroupPlan, Policy, StopConditions
from agent_core.runtime.source import NO_FILE, AgentProfile
from agent_core.storage import AGENT, CONVERSATION
from agent_core.storage.agent_store import HELPER_RUN, PASSING
from sandbox.wire.strict_json import OF_A_FILE, Malformed, count_of_toml, lines_of_keys, read_toml

T = TypeVar("T")
Stamp: TypeAlias = tuple[int, int, int]
"""The modification time, size and inode of a file, by which a change is noticed."""

MOST_BYTES: Final = 64 << 10
MOST_FILES: Final = 2_000
MOST_PROBLEMS: Final = 20
"""The problems reported per file and per folder; after these are fixed, the next ones are reported."""
_MOST_IN_ALL: Final = 1 << 20  # bytes of the files of a folder
_MOST_VALUES: Final = 30 * OF_A_FILE  # their keys and values
_SUFFIX: Final = ".toml"
RESERVED: Final = frozenset(
    {
        "user",
        "human",
        "me",
        "you",
        "system",
        "developer",
        "program",
        "assistant",
        "tool",
        "function",
        "knapper",
        "all",
    }
)
"""Reserved names, which a model's text could confuse with others: no agent, helper or group can have them."""
_AT_LINE: Final = re.compile(r"\(at line (\d+), column \d+\)")
_IN_QUOTES: Final = re.compile(
    r"""["'](?:function )?([\w.*?]+)["']"""
)  # `slug`, `text.slug`, `text.*`, `function slug`
_ALL: Final = ""  # in place of a name: a problem of the folder


def first_problems(folder: str, problems: Mapping[str, Sequence[Problem]]) -> tuple[Problem, ...]:
    """Return the first problems of the files of a folder, sorted by name, and the number of files with more."""
    rows = [problem for name in sorted(problems) for problem in problems[name]]
    shown = tuple(rows[:MOST_PROBLEMS])
    if not (
        left := len(
            {problem.where.path for problem in rows} - {problem.where.path for problem in shown}
        )
    ):
        return shown
    message = f"{left:,} more {'file has' if left == 1 else 'files have'} problems"
    return (*shown, Problem("more", message, Place(f"{folder}/"), "fix those above first"))


class ValueCount:
    """A count of the keys and values in the files of a folder, made before a file is parsed.

    A file that exceeds the limit per file is rejected later and does not count here.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._of: dict[str, int] = {}
        self._total = 0

    def keep(self, names: Iterable[str]) -> None:
        """Forget all files but these."""
        self._of = {name: self._of[name] for name in names if name in self._of}
        self._total = sum(self._of.values())

    def add(self, name: str, text: str) -> None:
        """Count those of a file, replacing its earlier count.

        Raises:
            ConfigError: the folder would exceed the limit.
        """
        self._total -= self._of.pop(name, 0)
        if (count := count_of_toml(text)) > OF_A_FILE:
            return
        if self._total + count > _MOST_VALUES:
            message = f"The files of {self._folder}/ have more than {_MOST_VALUES:,} keys and values in all."
            raise ConfigError(message, fix="Take out those that are not needed.")
        self._of[name] = count
        self._total += count


class ConfigFolder(Generic[T]):
    """The files of one kind in a workspace; changed files are read again."""

    def __init__(
        self,
        root: Path,
        folder: str,
        kind: type[T],
        *,
        taken: Callable[[], Iterable[str]] = tuple,
        looks: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """Create the view of a folder; the fields of the dataclass `kind` are the keys of a file.

        A file cannot have a name that groups have `taken`, nor one that looks like a taken name or one in `looks`.
        """
        self.folder = root / folder
        self._name = folder
        self._kind = kind
        self._taken = taken
        self._looks = looks
        self._stamps: Mapping[str, Stamp] = {}
        self._values = ValueCount(folder)
        self._good: dict[str, T] = {}
        self._problems: dict[str, Problem] = {}

    def read(self) -> Mapping[str, T]:
        """Return the current content of the files by name; for an invalid file or folder, the last valid content."""
        try:
            stamps = stamps_of(self.folder)
        except ConfigError as error:
            self._problems[_ALL] = Problem(
                error.code, error.message, Place(f"{self._name}/"), error.fix
            )
            return self._good
        self._problems.pop(_ALL, None)
        if stamps == self._stamps:
            return self._good
        before, self._stamps = self._stamps, stamps
        self._values.keep(stamps)
        self._good = {name: held for name, held in self._good.items() if name in stamps}
        self._problems = {
            name: problem for name, problem in self._problems.items() if name in stamps
        }
        known = self._known_names()
        for name in sorted(stamps, key=lambda name: (name not in self._good, name)):
            if stamps[name] == before.get(name) and name not in self._problems:
                continue
            text = b""
            try:
                known.check(name)
                text = read_of_folder(self.folder, f"{name}.toml")
                self._values.add(name, text.decode("utf-8", "replace"))
                self._good[name] = self.parse(text, name)
                known.add(name)
                self._problems.pop(name, None)
            except ConfigError as error:
                self._note(name, error.message, error.fix, _line_of(text, error.message))
            except OSError as error:
                fix = "Make it an ordinary, readable file."
                self._note(name, f"It cannot be read: {error.strerror or error}.", fix, 0)
        return self._good

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems of the files, sorted by name."""
        self.read()
        return tuple(self._problems[name] for name in sorted(self._problems))

    @property
    def first_problems(self) -> tuple[Problem, ...]:
        """The first of these problems, and the number of further files with problems."""
        self.read()
        return first_problems(
            self._name, {name: (problem,) for name, problem in self._problems.items()}
        )

    def must_hold(self, name: str) -> None:
        """Check that no file with this name is without a valid version, because then its permissions are unknown.

        Raises:
            ConfigError: there is such a file, or the folder cannot be read; the message has the problem.
        """
        if name not in self.read() and (
            problem := self._problems.get(name) or self._problems.get(_ALL)
        ):
            message = problem.message.removeprefix(f"{problem.where.path}: ")
            message = message if problem.where.path in message else f"{problem.where}: {message}"
            raise ConfigError(message, fix=problem.fix or "")

    def parse(self, text: str | bytes, name: str) -> T:
        """Parse the text of a file.

        Raises:
            ConfigError: it is not valid TOML, a key is unknown or missing, or a value has a wrong type.
        """
        where = f"{self._name}/{name}.toml"
        try:
            table = read_toml(text, values=OF_A_FILE)
        except Malformed as error:
            raise ConfigError(
                f"{where} is not valid TOML: {error}.", fix="Fix it and save it again."
            ) from error
        return read_table(self._kind, table, where)

    def _note(self, name: str, message: str, fix: str, line: int) -> None:
        stays = " What it held before stays in force." if name in self._good else ""
        place = Place(f"{self._name}/{name}.toml", line)
        self._problems[name] = Problem("config", f"{message}{stays}", place, fix or None)

    def check_name(self, name: str, others: Iterable[str] = ()) -> None:
        """Check that a file may have this name.

        Raises:
            ConfigError: the name is invalid, reserved, taken, or looks like another one, also one of `others`.
        """
        self._known_names(others).check(name)

    def _known_names(self, others: Iterable[str] = ()) -> "_KnownNames":
        taken = frozenset(self._taken())
        return _KnownNames(taken, names_by_look({*self._good, *taken, *self._looks(), *others}))


@dataclass(frozen=True, slots=True)
class _KnownNames:
    """The names next to which a file needs its own: those of groups are taken, and none may look like another."""

    taken: frozenset[str]
    by_look: dict[str, list[str]]

    def check(self, name: str) -> None:
        if not AGENT.fullmatch(name):
            shown = one_line(name, 80)
            raise ConfigError(
                f"`{shown}` cannot be a name.", fix="Use up to 64 letters, digits, `_` and `-`."
            )
        if name.casefold() in RESERVED or name.startswith((HELPER_RUN, PASSING)):
            raise ConfigError(f"The name `{name}` is reserved.", fix="Give it another name.")
        if name in self.taken:
            raise ConfigError(f"There is a group `{name}` already.", fix="Give it another name.")
        alike = (other for other in self.by_look.get(look(name), ()) if other != name)
        if like := next(alike, None):
            raise ConfigError(
                f"The name `{name}` looks like `{like}`.", fix="Give it another name."
            )

    def add(self, name: str) -> None:
        """Add the name of a file that was read."""
        alike = self.by_look.setdefault(look(name), [])
        if name not in alike:
            alike.append(name)


class AgentFiles:
    """The agents of a workspace as described by `agents/NAME.toml`; `main` is the one that needs no file."""

    def __init__(self, root: Path, main: str, groups: Callable[[], Iterable[str]] = tuple) -> None:
        """Create the directory; no agent can have the name of one of the `groups`, or a similar one."""
        self._root = root
        self.folder = ConfigFolder(
            root, "agents", AgentProfile, taken=groups, looks=lambda: (main,)
        )
        self._main = main
        self._told: list[str] = []

    @property
    def place(self) -> Path:
        """The folder of the files."""
        return self.folder.folder

    def profile(self, agent: str) -> AgentProfile:
        """Return the profile in an agent's file; without a file, everything is allowed."""
        return self.folder.read().get(agent) or NO_FILE

    def check_name(self, agent: str, others: Iterable[str] = ()) -> None:
        """Check that a new agent may have this name, next to those with a file and `others`.

        Raises:
            ConfigError: the name is not allowed.
        """
        self.folder.read()
        self.folder.check_name(agent, others)
        if CONVERSATION in agent:
            fix = "Give it another name; `agents import` takes it with --as NAME."
            raise ConfigError(
                f"`{agent}` is the name of a conversation: AGENT{CONVERSATION}NAME.", fix=fix
            )

    def make(self, agent: str) -> str:
        """Write the file of a new agent, which allows everything, and return its path.

        Raises:
            ConfigError: the name is not allowed.
            WorkspaceError: the file cannot be written.
        """
        self.check_name(agent)
        path = f"agents/{agent}.toml"
        save_text(self._root, path, _NEW, None)
        return path

    def names(self) -> Mapping[str, str]:
        """Return all agents that have a file, and the main agent, with their purposes; {} if there are no files."""
        return self._purposes(self.folder.read())

    def _purposes(self, files: Mapping[str, AgentProfile]) -> Mapping[str, str]:
        named = {name: profile.purpose for name, profile in files.items()}
        return named | {self._main: named.get(self._main, "Talks to the user.")} if named else {}

    def news(self) -> Sequence[str]:
        """Return the problems of the files that were not reported yet."""
        problems = [str(problem) for problem in self.folder.first_problems]
        fresh, self._told = [text for text in problems if text not in self._told], problems
        return fresh

    def peers(self, agent: str) -> Mapping[str, str]:
        """Return the agents that this one may talk to, with their purposes."""
        if agent.startswith(PASSING):
            return {}
        files = self.folder.read()
        fitting = {
            name: purpose for name, purpose in self._purposes(files).items() if name != agent
        }
        patterns = (
            [Wildcard(pattern) for pattern in files.get(agent, NO_FILE).talks_to] if fitting else []
        )
        return {
            name: purpose
            for name, purpose in fitting.items()
            if any(each.fits(name) for each in patterns)
        }


_NEW: Final = """\
purpose = ""              # what other agents read about it
# functions = ["text.*"]  # by name or module; without this line, all
# helpers = ["*"]
# talks_to = ["main"]     # the agents that it may write to
# limits = { steps = 20, tokens = 50000 }
"""


def stamps_of(folder: Path) -> Mapping[str, Stamp]:
    """Return the files of a folder by name, with their stamps; {} if the folder does not exist.

    Raises:
        ConfigError: the folder cannot be read, or exceeds the limits.
    """
    stamps, size = {}, 0
    _refuse_link(folder)
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(_SUFFIX) and not entry.name.startswith("."):
                    status = entry.stat(follow_symlinks=False)
                    stamps[entry.name.removesuffix(_SUFFIX)] = (
                        status.st_mtime_ns,
                        status.st_size,
                        status.st_ino,
                    )
                    size += min(status.st_size, MOST_BYTES + 1)  # larger files are not read
                    if len(stamps) > MOST_FILES or size > _MOST_IN_ALL:
                        most = f"{MOST_FILES:,} files of {_MOST_IN_ALL >> 20} MiB in all"
                        message = f"The folder {folder.name}/ has more than {most}."
                        raise ConfigError(message, fix="Take out those that are not needed.")
    except FileNotFoundError:
        return {}
    except OSError as error:
        fix = "Make it readable again, or remove it if nothing in it is to count."
        if error.errno in (errno.EMFILE, errno.ENFILE):
            fix = "Start the program again with a higher limit: ulimit -n 4096"
        message = f"The folder {folder.name}/ cannot be read: {error.strerror or error}."
        raise ConfigError(message, fix=fix) from error
    return stamps


def read_of_folder(folder: Path, name: str) -> bytes:
    """Return the content of a file in a folder of the workspace.

    Raises:
        ConfigError: the folder is a link.
        OSError: the file cannot be read, is a link, or is too large.
    """
    _refuse_link(folder)
    return read_plain(folder / name, MOST_BYTES)


def _refuse_link(folder: Path) -> None:
    """Raise ConfigError if a folder is a link: one that came with a workspace may lead to any files of this user."""
    if folder.is_symlink():
        raise ConfigError(
            f"`{folder.name}` is a link, which is not followed, so nothing in it is read.",
            fix="If you made the link, put the folder itself or a copy of it there; a mounted folder is read, too.",
        )


def patterns_in_files(root: Path) -> Mapping[str, str]:
    """Return each name or pattern that a file of an agent, group or helper has in quotes, with the path of such a file.

    A file that is not valid counts, because its last valid version is in force.

    Raises:
        ConfigError: a folder or a file cannot be read.
    """
    named = dict[str, str]()
    places = [
        (root / folder, f"{name}.toml")
        for folder in ("agents", "groups", "helpers")
        for name in stamps_of(root / folder)
    ]
    for folder, file in places:
        path = f"{folder.name}/{file}"
        try:
            text = read_of_folder(folder, file).decode("utf-8", "replace")
        except OSError as error:
            raise ConfigError(
                f"{path} cannot be read: {error.strerror or error}.", fix="Make it readable."
            ) from error
        named |= dict.fromkeys(_IN_QUOTES.findall(text), path)
    return named


def read_table(kind: type[T], table: Mapping[str, Any], where: str) -> T:  # Any: TOML
    """Return a dataclass from a table with its fields as keys; `where` names the file and the table in it.

    Raises:
        ConfigError: a key is unknown or missing, or a value has a wrong type.
    """
    known, types = {one.name: one for one in fields(kind)}, get_type_hints(kind)  # type: ignore[arg-type]  # a dataclass
    for key in table:
        if key not in known:
            meant = nearest(key, known)
            hint = f"Did you mean `{meant[0]}`?" if meant else f"Known are: {', '.join(known)}."
            raise ConfigError(f"{where}: `{one_line(key, 80)}` is not a key.", fix=hint)
    for name, one in known.items():
        if name not in table and one.default is MISSING and one.default_factory is MISSING:
            raise ConfigError(f"{where}: `{name}` is missing.", fix=f"Add a line: {name} = …")
    values: dict[str, Any] = {}  # Any: as the fields are typed
    for key, value in table.items():
        if types[key] is SpendingLimits:
            values[key] = SpendingLimits.read(value, f"{where}: {key}")
            continue
        wanted, is_right = _KINDS.get(
            str(types[key]), ("a table", lambda value: isinstance(value, dict))
        )
        if not is_right(value):
            shown = one_line(repr(value), 80)
            raise ConfigError(f"{where}: `{key}` cannot be {shown}.", fix=f"It is {wanted}.")
        values[key] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def _are_texts(values: object) -> bool:
    return isinstance(values, list | dict) and all(
        isinstance(value, str)
        for value in (values.values() if isinstance(values, dict) else values)
    )


_KINDS: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "<class 'str'>": ("a text", lambda value: isinstance(value, str)),
    "<class 'bool'>": ("true or false", lambda value: isinstance(value, bool)),
    "<class 'int'>": (
        "a whole number from 0",
        lambda value: (
            isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= AMOUNT_LIMIT
        ),
    ),
    "tuple[str, ...]": (
        "a list of texts",
        lambda value: isinstance(value, list) and _are_texts(value),
    ),
    "dict[str, str]": (
        "a table of texts",
        lambda value: isinstance(value, dict) and _are_texts(value),
    ),
}


def _line_of(text: bytes, message: str) -> int:
    """Return the line that a message names directly or by a key; 0 for the whole file."""
    if match := _AT_LINE.search(message):
        return int(match[1])
    named = re.findall(r"`([A-Za-z_]\w*)`", message)
    lines = lines_of_keys(text.decode("utf-8", "replace")) if named else {}
    return min((lines[key] for key in named if key in lines), default=0)


GROUPS: Final = "groups"
"""The folder of the files of groups."""
_MOST_MEMBERS: Final = 20
_MOST_TAIL: Final = 50_000
_USUAL: Final = -1


@dataclass(frozen=True, slots=True)
class GroupFile:
    """The content of a group's file."""

    members: tuple[str, ...]
    purpose: str = ""
    rules: tuple[str, ...] = ("addressed", "asked", "handoff")
    choose: str = "least_recent"
    no_repeat: bool = True
    tail_chars: int = 2000
    patience: int = _USUAL
    stop: Mapping[str, Any] = field(default_factory=dict)  # Any: TOML for `StopConditions`
    limits: SpendingLimits = field(default_factory=SpendingLimits)
    model: str = ""


GroupFolder = ConfigFolder[GroupFile]


@dataclass(frozen=True, slots=True)
class GroupSurroundings:
    """The names that a group's file may use: agents, with their purposes, and functions of the workspace."""

    agents: Mapping[str, str]
    functions: Collection[str]


def is_group(root: Path, name: str) -> bool:
    """Check whether the workspace has a group with this name."""
    is_name = bool(AGENT.fullmatch(name)) and name.casefold() not in RESERVED
    return is_name and (root / GROUPS / f"{name}.toml").is_file()


def group_names(root: Path) -> list[str]:
    """Return the names of the workspace's groups, including those with an invalid file."""
    return sorted(path.stem for path in (root / GROUPS).glob("*.toml") if is_group(root, path.stem))


def file_problems(root: Path, agents: AgentFiles) -> list["Problem"]:
    """Return the first problems of the files of agents and groups."""
    groups = GroupFolder(root, GROUPS, GroupFile, looks=agents.names)
    return [*agents.folder.first_problems, *groups.first_problems]


def read_group(
    root: Path, folder: GroupFolder, name: str, surroundings: GroupSurroundings
) -> GroupPlan:
    """Return the plan in a group's file; for an invalid file, the last valid plan with the problem.

    Raises:
        ConfigError: the file is invalid and has no valid version; the message says where, and what to write.
    """
    path = f"{GROUPS}/{name}.toml"
    file = folder.read().get(name)
    problem = next((problem for problem in folder.problems if problem.where.path == path), None)
    if file is None:
        message = problem.message if problem else f"There is no {path}."
        raise ConfigError(message, fix=(problem.fix if problem else "") or "")
    check = _GroupCheck(path, root, surroundings)
    check.members(name, file.members)
    for rule in (*file.rules, file.choose):
        check.rule(rule)
    stop = read_table(StopConditions, file.stop, f"{path}: stop")
    if stop.function.startswith(FUNCTION):
        check.rule(stop.function)
    if file.tail_chars > _MOST_TAIL:
        check.fail(f"`tail_chars` cannot be {file.tail_chars}", f"It is at most {_MOST_TAIL:,}.")
    return GroupPlan(
        name,
        {member: one_line(surroundings.agents[member], 300) for member in file.members},
        file.purpose,
        Policy(file.rules, file.choose, file.tail_chars),
        no_repeat=file.no_repeat,
        patience=None if file.patience == _USUAL else file.patience,
        stop=stop,
        model=file.model or None,
        limits=file.limits,
        path=path,
        problem=str(problem) if problem else "",
    )


@dataclass(frozen=True, slots=True)
class _GroupCheck:
    """The validation of one group's file."""

    path: str
    root: Path
    around: GroupSurroundings

    def members(self, name: str, members: Collection[str]) -> None:
        if not 2 <= len(members) <= _MOST_MEMBERS:
            fix = f'Name 2 to {_MOST_MEMBERS} agents: members = ["editor", "critic"].'
            self.fail(f"`members` names {len(members)}", fix)
        seen = {look(own): own for own in RESERVED}
        for member in members:
            if (other := seen.get(look(member))) is not None:
                self.fail(
                    f"the members `{one_line(member, 64)}` and `{other}` look alike",
                    "Rename one of them.",
                )
            seen[look(member)] = member
        for member in members:
            if member == name:
                self.fail(f"the group `{name}` is a member of itself", "Take it out of `members`.")
            if is_group(self.root, member):
                self.fail(f"the member `{member}` is a group", "Name the agents in it.")
            if member not in self.around.agents:
                hint = nearest(member, self.around.agents)
                fix = (
                    f"Did you mean `{hint[0]}`?"
                    if hint
                    else f"Begin one: write agents/{one_line(member, 64)}.toml."
                )
                self.fail(f"the member `{one_line(member, 64)}` is no agent", fix)

    def rule(self, rule: str) -> None:
        function = rule.removeprefix(FUNCTION)
        if rule == MODEL or rule in RULES or function in self.around.functions:
            return
        hint = nearest(function, (*RULES, MODEL, *self.around.functions))
        fix = (
            f"Did you mean `{hint[0]}`?"
            if hint
            else f"Rules are {', '.join(RULES)}, or a function by its name."
        )
        self.fail(f"`{one_line(rule, 80)}` is no rule and no function", fix)

    def fail(self, what: str, fix: str) -> NoReturn:
        raise ConfigError(f"{self.path}: {what}.", fix=fix)
