"""MCP servers as data: what a workspace proposes, what they offer as functions, and the user's sealed approvals.

`mcp.toml` travels with the folder, so it cannot start anything by itself: a server is started if this user approved its
whole entry, and a tool is offered if they approved its exact text and schema. Both are stored sealed next to the state.

A tool becomes a function with a safe name, a fenced text, and the approved schema. A stranger wrote all of it, possibly
for the model to read. Each row of a list stands alone: one that is no tool, is too large or hides characters is left
out, with the reason. An approval covers what was sent, letter by letter; what is made of it follows from that alone.
Text that reads like an instruction is shown to the user for approval.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agent_core.access.grants.permit import AccessResolver
from agent_core.base.errors import UsageError, WorkspaceError
from agent_core.base.matching import did_you_mean
from agent_core.base.plain_files import read_plain, replace_text
from agent_core.base.problem import misfit_sentence
from agent_core.base.programs import variables
from agent_core.base.records import dataclass, field
from agent_core.base.seal import ELSEWHERE, Sealer
from agent_core.base.untrusted import CONTROLS, UNSEEN, fence, one_line, shorten, visible
from agent_core.base.workspace_folder import STATE
from agent_core.registry.function import Function, type_of
from agent_core.registry.module_edits import save_text
from agent_core.registry.source import hash_of
from agent_core.storage import prepare_state_dir
from sandbox.wire.strict_json import LOOSE, OF_A_FILE, Malformed, read_json, read_toml

from .schemas import ForeignSchema, UnusableSchema, read_schema

FILE: Final = "mcp.toml"
_APPROVED: Final = ".knapper/mcp.json"
_FAILED: Final = ".knapper/mcp-failed.json"
_MOST: Final = 1 << 20
_MOST_APPROVED: Final = 8 << 20
_MOST_WHY: Final = 300
_MOST_FOUND: Final = 5
_MOST_FIRST_LINE, _MOST_WORDS = 256, 4  # of a script, as kernels read it
NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LONGEST_NAME: Final = 24
_PURPOSE: Final = "mcp"
NOT_LET: Final = (
    "Name what it needs by its whole path, or add it with --unconfined, if it may "
    "reach all files that you can."
)
_Place = Annotated[str, Field(min_length=1, max_length=4_096, pattern=r"^[^\x00]*$")]
_Places = Annotated[tuple[_Place, ...], Field(max_length=50)]
SYSTEM: Final = (
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/sbin",
    "/etc",
    "/opt",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
)
_Secret = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]


class ServerEntry(BaseModel):
    """One server: a command to start, or an address. `confined`: it reads the system, `read`, and writes `write`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: tuple[str, ...] = ()
    url: str = ""
    secrets: tuple[_Secret, ...] = ()
    bearer: str = ""
    confined: bool = True
    read: _Places = ()
    write: _Places = ()

    @model_validator(mode="after")
    def _is_one_of_both(self) -> "ServerEntry":
        if bool(self.command) == bool(self.url):
            raise ValueError("it has either a command or a url")
        if self.url:
            parts = urlsplit(self.url)
            is_local = parts.hostname in ("127.0.0.1", "localhost", "::1")
            if parts.username or not (
                parts.scheme == "https" or (parts.scheme == "http" and is_local)
            ):
                raise ValueError("its url begins with https://, and holds no login")
        return self

    @property
    def text(self) -> str:
        """The entry as text; the approval covers every character of it."""
        return self.model_dump_json(exclude_defaults=True)


@dataclass(frozen=True, slots=True)
class Reach:
    """Where the paths of a confined server lead, without links: a folder may contain links that someone else made.

    `own` is the installation of its program, if the entry names that by a path.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The places as text, which the approval covers; empty if there is none."""
        rows = {"read": self.read, "write": self.write, "own": self.own}
        return json.dumps(rows, sort_keys=True) if any(rows.values()) else ""


def installation(program: Path) -> tuple[str, ...]:
    """Return what a program may read as its own: its installation environment and that of what interprets it.

    Without an environment, it is the file alone.
    """
    programs = (program, *_interpreters(program))
    return tuple(
        sorted(
            {
                os.path.realpath(around(place))
                for each in programs
                for place in (each, each.resolve())
            }
        )
    )


def _interpreters(program: Path) -> list[Path]:
    """Return the programs that run a script: those that its first line names, and the Python of its environment."""
    python = around(program.resolve()) / "bin" / "python"
    found = [python] if (python.parents[1] / "pyvenv.cfg").is_file() and python.exists() else []
    try:
        with program.open("rb") as file:
            first = (
                file.read(_MOST_FIRST_LINE).partition(b"\n")[0].decode("utf-8", "surrogateescape")
            )
    except OSError:
        return found
    if first.startswith("#!"):
        words = [
            word
            for word in first[2:].split()[:_MOST_WORDS]
            if word.startswith("/") or "/" not in word
        ]
        paths = (shutil.which(word, path=variables()["PATH"]) for word in words)
        found += [Path(path) for path in paths if path]
    return found


def _is_of_system(path: str) -> bool:
    return any(Path(path).is_relative_to(os.path.realpath(place)) for place in SYSTEM)


def around(program: Path) -> Path:
    """Return the environment that a program is installed in, of Python or Node, or the program if there is none."""
    packages = [folder for folder in program.parents if folder.name == "node_modules"]
    if packages:
        return packages[-1]  # the outermost: packages lie in one another
    folder = program.parents[1]
    is_environment = (folder / "pyvenv.cfg").is_file() or (
        program.parent.name == "bin" and (folder / "lib").is_dir()
    )
    is_of_user = Path.home().is_relative_to(folder) or folder == Path.home() / ".local"
    return folder if is_environment and not is_of_user else program


class ServerBook:
    """The entries and their approvals."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def entries(self) -> dict[str, ServerEntry]:
        """Return the servers that the file proposes.

        Raises:
            WorkspaceError: the file is invalid.
        """
        entries: dict[str, ServerEntry] = {}
        for name, table in self._tables().items():
            if not NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
                raise WorkspaceError(
                    f"`{name[:80]}` in {FILE} cannot be the name of a server.", fix="Rename it."
                )
            try:
                entries[name] = ServerEntry.model_validate(table)
            except ValidationError as error:
                problem = error.errors()[0]
                where, why = ".".join(map(str, (name, *problem["loc"]))), misfit_sentence(problem)
                raise WorkspaceError(
                    f"`{where}` in {FILE} is wrong: {why}.", fix="See docs/mcp.md."
                ) from error
        return entries

    def entry(self, name: str) -> ServerEntry:
        """Return one server.

        Raises:
            UsageError: there is no server with this name.
        """
        entries = self.entries()
        if name not in entries:
            fix = did_you_mean(name, entries, "See: knapper mcp list")
            raise UsageError(f"There is no MCP server `{name[:80]}` in {FILE}.", fix=fix)
        return entries[name]

    def put(self, name: str, entry: ServerEntry | None) -> None:
        """Write a server to the file, or remove it.

        Raises:
            UsageError: the name is invalid.
        """
        self.check_name(name)
        tables = self._tables()
        tables.pop(name, None)
        if entry is not None:
            tables[name] = read_json(entry.text)
        text = "# MCP servers, written by `knapper mcp`. Each needs your yes on this machine.\n"
        for server, table in tables.items():
            lines = [
                f"{key} = {json.dumps(value, ensure_ascii=True)}" for key, value in table.items()
            ]
            text += "\n".join(["", f"[{server}]", *lines, ""])
        old = self._text()
        save_text(self.root, FILE, text, None if old is None else hash_of(old))

    def check_name(self, name: str) -> None:
        """Check that a server can have this name.

        Raises:
            UsageError: the name is invalid.
        """
        if not NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
            fix = f"Use at most {_LONGEST_NAME} small letters, digits and single underscores, such as `time`."
            raise UsageError(f"`{name[:80]}` cannot be the name of a server.", fix=fix)

    def reach(self, entry: ServerEntry) -> Reach:
        """Return where the paths of an entry lead now; nothing for a server that is not confined."""
        if not entry.command or not entry.confined:
            return Reach()
        program = (
            shutil.which(entry.command[0], path=variables()["PATH"])
            if "/" in entry.command[0]
            else None
        )
        read, write = (
            [os.path.realpath(self.root / path) for path in paths]
            for paths in (entry.read, entry.write)
        )
        own = installation(Path(program).absolute()) if program else ()
        return Reach(
            tuple(read), tuple(write), tuple(path for path in own if not _is_of_system(path))
        )

    def objection(self, entry: ServerEntry, reach: Reach) -> str:
        """Return why a server may not be let to where its paths lead, as no function may; "" if it may."""
        resolver = AccessResolver(self.root)
        wanted = [("write", path) for paths in (entry.write, reach.write) for path in paths]
        wanted += [
            ("read", path) for paths in (entry.read, reach.read, reach.own) for path in paths
        ]
        for verb, path in wanted:
            if why := resolver.objection(path, writes=verb == "write"):
                return f"it is to {verb} {fence(path, 200)}, which {why}"
        return ""

    def found(self, name: str) -> list[str]:
        """Return the first names in the folder of a server; they may have come with the workspace."""
        folder = self.root / STATE / "mcp" / name
        if folder.parent.is_symlink() or folder.is_symlink():  # the start refuses it
            return []
        try:
            with os.scandir(folder) as entries:
                return sorted(entry.name for entry in islice(entries, _MOST_FOUND))
        except OSError:
            return []

    def is_started(self, name: str, entry: ServerEntry, reach: Reach | None = None) -> bool:
        """Return whether this user approved starting this exact entry, and with it where its paths lead now."""
        row, sealer = self._read(_APPROVED).get(name, {}), Sealer(self.root)
        if not sealer.holds(str(row.get("start", "")), _PURPOSE, name, entry.text):
            return False
        places = (self.reach(entry) if reach is None else reach).text
        return not places or sealer.holds(
            str(row.get("reach", "")), _PURPOSE, name, entry.text, places
        )

    def doubt(self, name: str, entry: ServerEntry) -> str:
        """Return why a stored approval of this exact entry does not count here; empty if there is none, or it does."""
        row = self._read(_APPROVED).get(name, {})
        start = str(row.get("start", ""))
        is_ours = Sealer(self.root).holds(start, _PURPOSE, name, entry.text)
        return "" if is_ours or row.get("entry") != digest(entry.text) else f"{ELSEWHERE}."

    def tools(self, name: str, entry: ServerEntry) -> dict[str, Any]:  # Any: JSON
        """Return the tools of a server that this user approved, by name, as they were at that time."""
        row = self._read(_APPROVED).get(name, {})
        tools = row.get("tools")
        if not isinstance(tools, dict) or not self.is_started(name, entry):
            return {}
        return (
            tools
            if Sealer(self.root).holds(str(row.get("seal", "")), _PURPOSE, name, _text(tools))
            else {}
        )

    def approve(
        self,
        name: str,
        entry: ServerEntry,
        tools: Mapping[str, Any] | None = None,  # Any: JSON
        reach: Reach | None = None,
    ) -> None:
        """Store this user's approval to start a server, and of its tools; it takes the place of all earlier ones.

        `reach` is what the user was shown; None: where the paths lead now.
        """
        approved, sealer = self._read(_APPROVED), Sealer(self.root)
        row: dict[str, Any] = {  # Any: JSON
            "entry": digest(entry.text),
            "start": sealer.seal(_PURPOSE, name, entry.text),
        }
        if places := (self.reach(entry) if reach is None else reach).text:
            row["reach"] = sealer.seal(_PURPOSE, name, entry.text, places)
        if tools is not None:
            row |= {"tools": dict(tools), "seal": sealer.seal(_PURPOSE, name, _text(tools))}
        self._keep(_APPROVED, {**approved, name: row})

    def forget(self, name: str) -> None:
        """Revoke all approvals of a server."""
        self._keep(
            _APPROVED,
            {server: row for server, row in self._read(_APPROVED).items() if server != name},
        )

    def failure(self, name: str, entry: ServerEntry) -> str:
        """Return why the last attempt to connect to this exact entry failed; empty if it succeeded."""
        row = self._read(_FAILED).get(name, {})
        return (
            one_line(str(row.get("why", "")), _MOST_WHY)
            if row.get("entry") == digest(entry.text)
            else ""
        )

    def note(self, name: str, entry: ServerEntry, why: str) -> None:
        """Store why an entry could not be connected to; an empty text means that it could."""
        if why != self.failure(name, entry) and self.is_started(name, entry):
            others = {server: row for server, row in self._read(_FAILED).items() if server != name}
            self._keep(
                _FAILED, others | ({name: {"entry": digest(entry.text), "why": why}} if why else {})
            )

    def _keep(self, file: str, rows: Mapping[str, Any]) -> None:  # Any: JSON
        replace_text(prepare_state_dir(self.root) / Path(file).name, json.dumps(rows), 0o600)

    def _read(self, file: str) -> dict[str, Any]:  # Any: JSON
        try:
            data = read_json(read_plain(self.root / file, _MOST_APPROVED), most=_MOST_APPROVED)
        except (OSError, ValueError):
            return {}
        return (
            {name: row for name, row in data.items() if isinstance(row, dict)}
            if isinstance(data, dict)
            else {}
        )

    def _text(self) -> str | None:
        try:
            return read_plain(self.root / FILE, _MOST).decode("utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise WorkspaceError(
                f"{FILE} cannot be read: {error}.", fix="Put a plain text file in its place."
            ) from error

    def _tables(self) -> dict[str, Any]:  # Any: TOML
        try:
            return read_toml(self._text() or "", values=OF_A_FILE)
        except Malformed as error:
            raise WorkspaceError(
                f"{FILE} is not valid TOML: {error}.", fix="Fix it and try again."
            ) from error


def digest(value: object) -> str:
    """Return a short hash of a text or of JSON, which identifies it in approvals."""
    return hashlib.sha256(_text(value).encode("utf-8", "replace")).hexdigest()[:16]


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True)


MOST_TOOLS: Final = 200
_MOST_SCHEMA: Final = 20_000  # of a schema or a description
MOST_IN_ALL: Final = 400_000  # of the descriptions and schemas of a list
_MAX_NAME: Final = 200
_MAX_PROBLEMS: Final = 50
_DESCRIBED: Final = 600
_SAID: Final = 200  # of a description inside a schema
_MOST_RESULT: Final = 100_000
_MOST_RETURNS: Final = 160  # of a type, which is part of every request
_LONGEST: Final = 64
_HIDDEN: Final = re.compile(f"[{CONTROLS}{UNSEEN}]")


@dataclass(frozen=True, slots=True)
class ForeignTool:
    """A tool as listed by its server: its original text and schema, and what is suspicious about them."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(hash=False)  # Any: JSON, as it was sent
    returns: str = ""  # the declared type of its results, if any

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the parts that an approval covers."""
        returns = {"returns": self.returns} if self.returns else {}
        return {"description": self.description, "parameters": dict(self.parameters), **returns}

    @property
    def schema(self) -> ForeignSchema:
        """The schema that calls are checked by.

        Raises:
            UnusableSchema: no call can be checked by it.
        """
        return _schema_of(json.dumps(self.parameters))

    @property
    def suspicions(self) -> list[str]:
        """The passages that seem to address a model rather than a reader of the description."""
        text = f"{self.name} {self.description} {self.returns} {json.dumps(self.parameters, ensure_ascii=False)}"
        return [why for pattern, why in _patterns() if pattern.search(text)]


@dataclass(frozen=True, slots=True)
class ForeignListing:
    """The tools of a server that can be functions, by name, and the reasons why others cannot, by name."""

    tools: Mapping[str, ForeignTool] = field(hash=False)
    problems: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(hash=False, default_factory=dict)


def read_tools(rows: Iterable[object], dropped: Collection[str] = ()) -> ForeignListing:
    """Return the tools of a server, from the rows of its list as they were sent. Equal rows are one.

    The package `mcp` `dropped` tools whose parameters cannot be sent as the headers that they ask for.
    """
    rows = list(rows)
    tools = dict[str, ForeignTool]()
    left_out = dict.fromkeys(dropped, "its schema asks for a header that is none")
    problems: list[str] = []
    room = MOST_IN_ALL
    for at, row in enumerate(rows, 1):
        if len(tools) >= MOST_TOOLS:
            problems.append(
                f"it lists {len(rows):,} tools or more, of which the first {MOST_TOOLS} are read"
            )
            break
        name = row.get("name") if isinstance(row, dict) else None
        if not isinstance(row, dict) or not isinstance(name, str):
            problems.append(f"row {at:,} of its list is no tool with a name")
            continue
        try:
            tool = _tool_of(name, row)
        except UnusableSchema as error:
            left_out.setdefault(name, str(error))
            continue
        room -= len(tool.description) + len(json.dumps(tool.parameters, ensure_ascii=False))
        if room < 0:
            left_out.setdefault(
                name, f"the tools before it have {MOST_IN_ALL:,} characters, as many as are read"
            )
            break
        if tools.setdefault(name, tool) != tool:
            left_out.setdefault(name, "two tools have this name")
    tools = {name: tool for name, tool in tools.items() if name not in left_out}
    problems += [f"{fence(name, 80)}: {why}" for name, why in left_out.items()]
    return ForeignListing(tools, tuple(dict.fromkeys(problems))[:_MAX_PROBLEMS], left_out)


def _tool_of(name: str, row: Mapping[str, Any]) -> ForeignTool:  # Any: JSON
    """Return the tool of a row.

    Raises:
        UnusableSchema: it cannot be a function.
    """
    description, given, result = (
        row.get("description"),
        row.get("inputSchema"),
        row.get("outputSchema"),
    )
    if not name.strip() or len(name) > _MAX_NAME:
        raise UnusableSchema("its name is empty or too long")
    if not isinstance(description, str):
        description = ""
    if len(description) > _MOST_SCHEMA:
        raise UnusableSchema("its description is too long")
    if given is None or given == [] or given is True:  # as other languages write an empty object
        given = {}
    if not isinstance(given, dict):
        raise UnusableSchema("its schema describes no object")
    text = json.dumps(given, ensure_ascii=False)
    if len(text) > _MOST_SCHEMA:
        raise UnusableSchema("its schema is too large")
    if _HIDDEN.search(name + text):
        raise UnusableSchema("its name or schema holds hidden letters")
    returns = type_of(result, with_keys=True) if isinstance(result, dict) else ""
    tool = ForeignTool(name, description, given, returns if len(returns) <= _MOST_RETURNS else "")
    tool.schema  # noqa: B018 - one that cannot be used raises
    return tool


@lru_cache(maxsize=1024)
def _schema_of(text: str) -> ForeignSchema:
    return read_schema(read_json(text, LOOSE))


def functions_of(server: str, tools: Mapping[str, ForeignTool]) -> dict[str, tuple[Function, str]]:
    """Return the functions for approved tools, by name, each with the tool's name on the server."""
    functions: dict[str, tuple[Function, str]] = {}
    for tool in tools.values():
        try:
            schema = read_schema(tool.parameters, is_known=True).schema
        except UnusableSchema:  # `knapper mcp doctor` reports it
            continue
        name = function_name(server, tool.name)
        if name in functions:
            name = f"{name[:57]}_{_short(tool.name)}"
        version = hashlib.sha256(
            json.dumps(tool.to_json(), sort_keys=True).encode("utf-8", "replace")
        ).hexdigest()
        says = fence(tool.description, _DESCRIBED)
        function = Function(
            name=name,
            module=f"mcp.{server}",
            path="mcp.toml",
            line=1,
            end_line=1,
            description=f"Foreign: a tool of the MCP server `{server}`, not made here. It says: {says}",
            parameters={"properties": {}, **_shorten_schema(schema)},
            is_async=False,
            takes_self=False,
            returns=tool.returns,
            unresolved=(),
            version=version,
            body_hash=version,
            examples=(),
        )
        functions[name] = function, tool.name
    return functions


def function_name(server: str, tool: str) -> str:
    """Return `server__tool`, restricted to the characters of a function's name."""
    name = f"{server}__{re.sub(r'[^A-Za-z0-9_]', '_', tool)}"
    is_whole = len(name) <= _LONGEST and name == f"{server}__{tool}"
    return name if is_whole else f"{name[:57]}_{_short(tool)}"


def _shorten_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with short, visible descriptions; the parts that validate are not changed."""
    told: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("description", "title", "$comment") and isinstance(value, str):
            told[key] = one_line(value, _SAID)
        elif isinstance(value, dict):
            told[key] = _shorten_schema(value)
        elif isinstance(value, list):
            told[key] = [
                _shorten_schema(part) if isinstance(part, dict) else part for part in value
            ]
        else:
            told[key] = value
    return told


def capped(text: str) -> str:
    """Return a result's text, made visible and shortened."""
    return shorten(visible(text), _MOST_RESULT)


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:6]


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    data = read_toml(Path(__file__).with_name("suspicions.toml").read_bytes())
    return [(re.compile(row["pattern"], re.IGNORECASE), row["why"]) for row in data["suspicion"]]
