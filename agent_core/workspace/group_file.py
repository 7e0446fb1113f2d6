"""The file of a group, `groups/NAME.toml`: validation, and conversion to a plan."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from agent_core.base.errors import ConfigError
from agent_core.base.limits import SpendingLimits
from agent_core.base.matching import look, nearest
from agent_core.base.untrusted import one_line
from agent_core.runtime.groups.plan import GroupPlan, StopConditions
from agent_core.runtime.groups.speaker import FUNCTION, MODEL, RULES, Policy
from agent_core.storage import AGENT

from .agent_files import RESERVED, AgentFiles, ConfigFolder, read_table

if TYPE_CHECKING:
    from agent_core.base.problem import Problem

FOLDER: Final = "groups"
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
    return is_name and (root / FOLDER / f"{name}.toml").is_file()


def group_names(root: Path) -> list[str]:
    """Return the names of the workspace's groups, including those with an invalid file."""
    return sorted(path.stem for path in (root / FOLDER).glob("*.toml") if is_group(root, path.stem))


def file_problems(root: Path, agents: AgentFiles) -> list["Problem"]:
    """Return the first problems of the files of agents and groups."""
    groups = GroupFolder(root, FOLDER, GroupFile, looks=agents.names)
    return [*agents.folder.first_problems, *groups.first_problems]


def read_group(root: Path, folder: GroupFolder, name: str, surroundings: GroupSurroundings) -> GroupPlan:
    """Return the plan in a group's file; for an invalid file, the last valid plan with the problem.

    Raises:
        ConfigError: the file is invalid and has no valid version; the message says where, and what to write.
    """
    path = f"{FOLDER}/{name}.toml"
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
                self.fail(f"the members `{one_line(member, 64)}` and `{other}` look alike", "Rename one of them.")
            seen[look(member)] = member
        for member in members:
            if member == name:
                self.fail(f"the group `{name}` is a member of itself", "Take it out of `members`.")
            if is_group(self.root, member):
                self.fail(f"the member `{member}` is a group", "Name the agents in it.")
            if member not in self.around.agents:
                hint = nearest(member, self.around.agents)
                fix = f"Did you mean `{hint[0]}`?" if hint else f"Begin one: write agents/{one_line(member, 64)}.toml."
                self.fail(f"the member `{one_line(member, 64)}` is no agent", fix)

    def rule(self, rule: str) -> None:
        function = rule.removeprefix(FUNCTION)
        if rule == MODEL or rule in RULES or function in self.around.functions:
            return
        hint = nearest(function, (*RULES, MODEL, *self.around.functions))
        fix = f"Did you mean `{hint[0]}`?" if hint else f"Rules are {', '.join(RULES)}, or a function by its name."
        self.fail(f"`{one_line(rule, 80)}` is no rule and no function", fix)

    def fail(self, what: str, fix: str) -> NoReturn:
        raise ConfigError(f"{self.path}: {what}.", fix=fix)
