"""The connection to an MCP server: opened when it is needed, and reopened after it ends, with growing pauses.

The package `mcp` is imported with the first connection. A separate task holds the connection. Callers wait for it for a
limited time, and get the reason if there is none.
"""

import asyncio
import json
import logging
import re
import shlex
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from agent_core.base import machine, programs
from agent_core.base.errors import KnapperError
from agent_core.base.network_variables import UnusableVariable, checked_address, checked_key
from agent_core.base.problem import misfit_sentence
from agent_core.base.records import dataclass, field, replace
from agent_core.base.untrusted import block, fence, one_line, shorten
from agent_core.base.user_folders import home
from agent_core.storage import own_folder, prepare_state_dir
from sandbox.wire.lines import bare_lines

from .replies import ROWS
from .servers import MOST_TOOLS, SYSTEM, ForeignListing, Reach, around, installation, read_tools

if TYPE_CHECKING:
    from mcp import Client

    from .servers import ServerEntry
    from .wire import Intake

_WAIT_S: Final = 60.0  # for a program, which may have to be downloaded first
_WAIT_FOR_ADDRESS_S: Final = 20.0
_LISTING_S: Final = 15.0
_CALL_S: Final = 120.0
_CLOSING_S: Final = 2.0
_ENDING_S: Final = 1.0  # for the last output of a program that ends
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_CLOSED: Final = "Connection closed"  # in the words of the SDK
_REPLACED: Final = "its entry, its approval or a secret of it has changed. Try again."
_REFUSED: Final = (
    "Server returned an error response",
    "Not Found",
    "Session terminated",
)  # also from the SDK
_MOST_PAGES: Final = 50
_MOST_LISTED: Final = 8 << 20  # characters of all pages together
_MOST_ERRORS: Final = 16 << 10  # bytes kept of the end of standard error
_HEARING_S: Final = 0.01
_LOOKING_S: Final = 0.2  # between two looks at whether a program has exited
_WANTED_S: Final = 1.0  # between two looks at whether it is still wanted
_NOWHERE: Final = logging.NullHandler()
_MOST_WHY: Final = 600
_MOST_VALUES: Final = 100  # of the arguments of a call that failed
_LAST_LINES, _MOST_IN_LINE, _MOST_SHOWN = 8, 200, 1_600
_COLORS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class ServerUnavailable(KnapperError):
    """There is no connection to the server."""

    code = "mcp-server"


@dataclass(slots=True)
class _Ending:
    """How a started server ended by itself, and the last part of its standard error."""

    code: int | None = None
    errors: bytearray = field(default_factory=bytearray)

    @property
    def why(self) -> str:
        """A phrase that says how it ended; empty if it did not end by itself."""
        if self.code is None:
            return ""
        if self.code >= 0:
            return f"it ended with exit code {self.code}"
        number = -self.code
        return f"it was ended by the signal {signal.Signals(number).name if number in {*signal.Signals} else number}"


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """The surroundings of a server: its workspace and the folder that it may write to. `mask` hides secrets in a text.

    `note` is called after each attempt with one line on why there is no connection, or with an empty text. `is_wanted`
    is called now and then; the server ends once it is false, for example because its approval was taken back. `reach`
    returns where the paths of the entry lead, anew for each start, or raises a KnapperError.
    """

    root: Path
    home: Path
    mask: Callable[[str], str]
    note: Callable[[str], None]
    is_wanted: Callable[[], bool]
    reach: Callable[[], Reach] = Reach


class ServerConnection:
    """The connection to one server; it is reopened until it is closed, or not wanted any more."""

    def __init__(
        self, name: str, entry: "ServerEntry", place: ServerPlace, secrets: Mapping[str, str]
    ) -> None:
        self.name = name
        self.entry = entry
        self.listing = ForeignListing({})
        self._place = place
        self._secrets = secrets
        self._ending = _Ending()
        self._intake: Intake | None = None
        self._client: Client | None = None
        self._is_up = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self._trouble = ""
        self._relist = asyncio.Event()
        self._lost = asyncio.Event()
        self._over = asyncio.Event()
        self._is_over = False

    def serves(self, entry: "ServerEntry", secrets: Mapping[str, str]) -> bool:
        """Return whether this is a connection of this entry with these secrets, and not closed."""
        return not self._is_over and (self.entry, self._secrets) == (entry, secrets)

    async def aclose(self) -> None:
        """Close the connection for good, and end the server if it was started here."""
        self._is_over = True
        if self._work is not None:
            await _end(self._work)

    async def client(self) -> "Client":
        """Return the connected client.

        Raises:
            ServerUnavailable: there is no connection; the message says why.
        """
        if self._work is None and not self._is_over:
            self._work = asyncio.create_task(self._stay_connected())
        with suppress(TimeoutError):
            async with asyncio.timeout(self._wait_s + _CLOSING_S + _ENDING_S):
                while self._client is None and not self._trouble and not self._is_over:
                    await self._is_up.wait()
                    self._is_up.clear()
        if self._client is None:
            why = (
                _REPLACED
                if self._is_over
                else self._trouble or f"it did not answer in {self._wait_s:g} s"
            )
            raise ServerUnavailable(
                f"The MCP server `{self.name}` cannot be used: {why}", fix=self._advice()
            )
        return self._client

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        on_progress: Callable[[float, float | None, str], None],
    ) -> Any:  # Any: the SDK's result
        """Call a tool.

        Raises:
            ServerUnavailable: there is no connection, it ended, or no answer came in time.
        """
        client = await self.client()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            on_progress(progress, total, one_line(self._place.mask(message or ""), 400))

        over = self._over
        try:
            async with asyncio.timeout(_CALL_S):
                return await client.call_tool(tool, arguments, progress_callback=hear)
        except TimeoutError:
            why = f"it did not answer in {_CALL_S:g} s."
        except _errors() as error:
            why, _ = self._reason(error)
            if _CLOSED in str(error) or (self._intake and self._intake.trouble):
                self._lost.set()  # its process may still run, but no one reads its output
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CLOSING_S + 2 * _ENDING_S):
                        await over.wait()
                        why = _REPLACED if self._is_over else self._trouble or why
        message = f"The MCP server `{self.name}` did not answer `{tool[:80]}`: {why}"
        raise ServerUnavailable(message, fix=f"Type: knapper mcp doctor {self.name}")

    async def _stay_connected(self) -> None:
        try:
            await self._reconnect()
        finally:
            self._is_over = True
            self._is_up.set()
            self._over.set()

    async def _reconnect(self) -> None:
        pause = _FIRST_PAUSE_S
        await asyncio.to_thread(_load)
        failures: tuple[type[Exception], ...] = (OSError, ExceptionGroup, KnapperError, *_errors())
        while self._place.is_wanted():
            self._ending, self._intake = _Ending(), None
            failure: BaseException | None = None
            try:
                async with AsyncExitStack() as stack:
                    ended = await self._connect(stack)
                    pause = _FIRST_PAUSE_S
                    done, _ = await ended
                    failure = next((error for task in done if (error := task.exception())), None)
            except failures as error:
                task = asyncio.current_task()
                if (
                    task is not None and task.cancelling()
                ):  # an error while closing replaced the cancellation
                    raise
                failure = error
            finally:
                self._client = None
            if not self._place.is_wanted():
                return
            self._trouble, short = self._reason(failure)
            self._place.note(short)
            self._is_up.set()
            self._over.set()
            self._over = asyncio.Event()
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)
            self._trouble = ""

    def _reason(self, failure: BaseException | None) -> tuple[str, str]:
        """Return why there is no connection, in full with the last lines of standard error, and in a short form."""
        why = (
            (self._intake.trouble if self._intake else "")
            or self._ending.why
            or self._cause(failure)
        )
        said = self._place.mask(self._ending.errors.decode("utf-8", "replace"))
        lines = [
            shorten(text, _MOST_IN_LINE)
            for text in bare_lines(_COLORS.sub("", said))
            if text.strip()
        ]
        why = f"{one_line(self._place.mask(why), _MOST_WHY).rstrip('.')}."
        if not lines:
            return why, why
        last = block("\n".join(lines[-_LAST_LINES:]), _MOST_SHOWN)
        return f"{why} Its last lines on standard error:\n{last}", f"{why} {fence(lines[-1], 200)}"

    def _cause(self, failure: BaseException | None) -> str:
        while isinstance(failure, BaseExceptionGroup):
            failure = failure.exceptions[0]
        if failure is None:
            return "it ended"
        if isinstance(failure, TimeoutError):
            return f"it did not answer in {self._wait_s:g} s"
        why = _words_of(failure)
        if why == _CLOSED and self.entry.command:
            return "it closed its output"
        if why in _REFUSED and self._intake and self._intake.refusal:
            hint = ""
            if self._intake.refusal in (401, 403):
                token = f"sent was the secret {self.entry.bearer}" if self.entry.bearer else ""
                hint = f"; {token or 'no token was sent: --bearer NAME'}"
            return f"it answered with the status {self._intake.refusal}{hint}"
        import httpx2  # noqa: PLC0415 - loaded with the first connection

        if not isinstance(failure, httpx2.ConnectError | httpx2.ConnectTimeout):
            return why
        parts = urlsplit(self.entry.url)  # without what may be secret
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]} cannot be reached: {why}"

    @property
    def _wait_s(self) -> float:
        return _WAIT_FOR_ADDRESS_S if self.entry.url else _WAIT_S

    async def _connect(
        self, stack: AsyncExitStack
    ) -> Awaitable[tuple[set[asyncio.Task[Any]], object]]:
        """Connect, and return an awaitable that completes when the connection ends."""
        import mcp_types as wire  # noqa: PLC0415 - loaded with the first connection
        from mcp import Client  # noqa: PLC0415 - the same

        async def hear(message: object) -> None:
            if isinstance(message, wire.ToolListChangedNotification):
                self._relist.set()

        async with asyncio.timeout(self._wait_s):
            transport, ended = await self._transport(stack)
            client = await stack.enter_async_context(
                Client(transport, message_handler=hear, read_timeout_seconds=_CALL_S)
            )
            self.listing = await _listing(client, self._place.mask)
        self._client = client
        self._place.note("")
        self._is_up.set()
        self._lost.clear()
        others = map(
            asyncio.create_task, (self._follow(client), self._lost.wait(), self._until_unwanted())
        )
        tasks = (*others, ended)
        for task in tasks:
            stack.push_async_callback(_end, task)
        return asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)

    async def _until_unwanted(self) -> None:
        while self._place.is_wanted():  # noqa: ASYNC110 - others change files
            await asyncio.sleep(_WANTED_S)

    async def _follow(self, client: "Client") -> None:
        """Read the list of tools again whenever the server reports a change."""
        listening = asyncio.create_task(self._listen(client))
        try:
            while True:
                await self._relist.wait()
                self._relist.clear()
                self.listing = await _listing(client, self._place.mask)
                await asyncio.sleep(_FIRST_PAUSE_S)  # a server may report changes without end
        finally:
            await _end(listening)

    async def _listen(self, client: "Client") -> None:
        if client.protocol_version >= "2026-07-28":
            with suppress(*_errors()):  # servers need not support this
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._relist.set()

    async def _transport(
        self, stack: AsyncExitStack
    ) -> tuple[Any, asyncio.Task[Any]]:  # Any: the SDK's
        from .wire import Intake, connect_pipes  # noqa: PLC0415 - it imports the package

        self._intake = intake = Intake()
        if self.entry.url:
            from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - loaded when it is needed

            from .wire import http_client  # noqa: PLC0415 - the same

            try:
                address = checked_address(self.entry.url)
                secret = checked_key(self._secrets.get(self.entry.bearer, ""))
            except UnusableVariable as error:
                raise ServerUnavailable(f"{error.message} {error.fix}") from error
            http = http_client(
                intake, _CALL_S, {"Authorization": f"Bearer {secret}"} if secret else {}
            )
            stack.push_async_callback(http.aclose)
            transport = streamable_http_client(address, http_client=http, max_sse_event_size=None)
            return transport, asyncio.create_task(asyncio.Event().wait())
        process = await stack.enter_async_context(self._server())
        assert process.stdout is not None
        assert process.stdin is not None
        ended = asyncio.create_task(_exit_of(process))
        stack.push_async_callback(_end, ended)
        return connect_pipes(process.stdout, process.stdin, intake), ended

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[Process]:
        """Start the server. At the end of the block its input is closed, and if it does not end, it is killed."""
        from .wire import MOST_LINE  # noqa: PLC0415 - it imports the package

        ending, home = self._ending, self._place.home
        await asyncio.to_thread(self._make_home)
        reach = await asyncio.to_thread(self._place.reach)
        command, variables = self.command(reach), self._variables()
        streams = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE, "limit": MOST_LINE}
        process = await programs.start(command, env=variables, cwd=home, **streams)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        hearing = asyncio.create_task(_hear(process.stderr, ending.errors))
        try:
            yield process
        finally:
            if (
                process.stdout.at_eof() or process.returncode is not None
            ):  # it ends by itself: wait for its last output
                with suppress(TimeoutError):
                    async with asyncio.timeout(_ENDING_S):
                        await process.wait()
                        await asyncio.shield(hearing)
                ending.code = process.returncode
            process.stdin.close()
            try:
                async with asyncio.timeout(_CLOSING_S):
                    await process.wait()
            except TimeoutError:
                pass
            finally:
                # Kill all that remains of the server's session, which it was started in.
                with suppress(ProcessLookupError, PermissionError):
                    machine.kill_group(process.pid)
                await asyncio.shield(process.wait())
            process._transport.close()  # type: ignore[attr-defined]  # asyncio keeps the pipes of a killed one open
            await _end(hearing)

    def _make_home(self) -> None:
        try:
            own_folder(prepare_state_dir(self._place.root), "mcp", self.name)
        except OSError as error:
            fix = f"Remove `{error.filename}` if you did not put it there."
            raise ServerUnavailable(
                f"its folder cannot be used: {error.strerror}: `{error.filename}`. {fix}"
            ) from error

    def command(self, reach: Reach) -> list[str]:
        """Return the command that is actually started.

        Raises:
            ServerUnavailable: there is no such program.
        """
        program = shutil.which(self.entry.command[0], path=self._variables()["PATH"])
        if program is None:
            fix = "Install it, or write its whole path."
            raise ServerUnavailable(
                f"There is no program {one_line(self.entry.command[0], 100)}.", fix=fix
            )
        own = [program, *self.entry.command[1:]]
        if not self.entry.confined:
            return own
        named = [*reach.own, *reach.read]
        places = [
            *self._always_readable(program),
            "",
            *named,
            "",
            str(self._place.home),
            *reach.write,
            "",
        ]
        return programs.python("-m", f"{__package__}.confined", *places, *own)

    def _always_readable(self, program: str) -> list[str]:
        python = (str(Path(sys.executable).resolve().parents[1]), sys.prefix, sys.base_prefix)
        is_named = "/" in self.entry.command[0]  # then it is part of the reach, or of the system
        return [*SYSTEM, *(() if is_named else installation(Path(program))), *python]

    def advice_on(self, arguments: Mapping[str, Any]) -> str:  # Any: JSON
        """Return what a confined server may not do where a call's arguments lead, with the command that lets it."""
        confinement = self._confinement()
        if confinement is None:
            return ""
        _, readable, writable = confinement
        values = [
            value
            for given in arguments.values()
            for value in (given if isinstance(given, list) else [given])
        ]
        paths = [
            Path(value.removeprefix("file://"))
            for value in values[:_MOST_VALUES]
            if isinstance(value, str)
        ]
        for path in (
            path
            for path in paths
            if path.is_absolute() and (_is_there(path) or _is_there(path.parent))
        ):
            place = path.resolve()
            if any(place.is_relative_to(folder) for folder in writable):
                continue
            around = self._folder_of(place)
            can_read = any(place.is_relative_to(folder) for folder in readable)
            verb, more = (
                ("write", "")
                if can_read
                else ("read", " (--write in place of --read: change it, too)")
            )
            return (
                f"The server is confined and may not {verb} {fence(str(place), 200)}. "
                f"This lets it{more}: {self._adding({f'--{verb}': [str(around)]}, self.entry.command)}"
            )
        return ""

    def _confinement(self) -> tuple[Path, list[Path], list[Path]] | None:
        """Return the program of a confined server, and where it may read and write; None without one to start."""
        program = (
            shutil.which(self.entry.command[0])
            if self.entry.confined and self.entry.command
            else None
        )
        if program is None:
            return None
        try:
            reach = self._place.reach()
        except KnapperError:  # the reason that is given says so
            return None
        writable = [Path(place).resolve() for place in (*reach.write, str(self._place.home))]
        readable = (*self._always_readable(program), *reach.own, *reach.read)
        return Path(program), [*(Path(place).resolve() for place in readable), *writable], writable

    def _advice(self) -> str:
        """Return the command that lets a confined server read what its command names, if it cannot yet."""
        confinement = self._confinement()
        if confinement is None:
            return ""
        program, allowed, _ = confinement
        command, folders = [*self.entry.command], list[str]()
        for at, word in enumerate(command[1:], 1):
            path = self._path_in(word)
            if path is None:
                continue
            command[at] = str(path)
            if not any(path.is_relative_to(place) for place in allowed):
                folders.append(str(self._folder_of(path)))
        folder = _folder_of_script(program, is_installed="/" not in self.entry.command[0])
        if (
            folder
            and self._is_narrow(folder)
            and not any(folder.is_relative_to(place) for place in allowed)
        ):
            folders.append(str(folder))
        if command == [*self.entry.command] and not folders:
            return ""
        outside = " and ".join(fence(folder, 200) for folder in dict.fromkeys(folders))
        why = "It starts in a folder of its own, so its command needs whole paths. Type:"
        if folders:
            why = f"It may not read {outside}, which its command names or lies in. Type:"
        return f"{why}\n{self._adding({'--read': folders}, command)}"

    def _adding(self, more: Mapping[str, Sequence[str]], command: Sequence[str]) -> str:
        """Return the command that adds this server with more options."""
        options = {
            "--secret": self.entry.secrets,
            "--read": self.entry.read,
            "--write": self.entry.write,
        }
        given = [
            word
            for option, values in options.items()
            for value in dict.fromkeys((*values, *more.get(option, ())))
            for word in (option, value)
        ]
        return f"knapper mcp add {self.name} {shlex.join([*given, '--', *command])}"

    def _folder_of(self, path: Path) -> Path:
        """Return the folder of a file, or the file alone where the folder holds more than is meant."""
        return path if path.is_dir() or not self._is_narrow(path.parent) else path.parent

    def _is_narrow(self, folder: Path) -> bool:
        """Check that a folder is specific: neither the user's home folder nor the workspace is inside of it."""
        return not any(
            own and own.resolve().is_relative_to(folder) for own in (home(), self._place.root)
        )

    def _path_in(self, word: str) -> Path | None:
        """Return the file or folder that a word of the command names, if it is outside the server's folder."""
        if Path(word).is_absolute():
            return Path(word).resolve() if _is_there(Path(word)) else None
        if _is_there(self._place.home / word):
            return None
        paths = (place / word for place in (self._place.root, Path.cwd()))
        return next(
            (
                path.resolve()
                for path in paths
                if _is_there(path) and (path.is_file() or "/" in word)
            ),
            None,
        )

    def _variables(self) -> dict[str, str]:
        own = {name: self._secrets[name] for name in self.entry.secrets if name in self._secrets}
        places = {"HOME": str(self._place.home), "TMPDIR": str(self._place.home)}
        around = programs.variables_for_python() if self.entry.confined else programs.variables()
        return {**around, **own, **places}


def _folder_of_script(program: Path, *, is_installed: bool) -> Path | None:
    """Return the folder in which a script finds the programs that it starts, as scripts of version managers do."""
    try:
        with program.open("rb") as file:
            is_script = file.read(2) == b"#!"
    except OSError:
        return None
    if not is_script or around(program) != program:
        return None
    return program.parents[1] if is_installed else program.parent


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # not a path, for example code
        return False


def _load() -> None:
    import mcp  # noqa: F401, PLC0415 - it takes a second

    # Its log contains untrusted text, which would go to the terminal. Relevant errors are reported here.
    for name in ("mcp", "client"):  # the package's loggers
        logging.getLogger(name).addHandler(_NOWHERE)


def _words_of(failure: BaseException) -> str:
    from pydantic import ValidationError  # noqa: PLC0415 - loaded with the first connection

    if not isinstance(failure, ValidationError):
        return str(failure) or type(failure).__name__
    problem = failure.errors()[0]
    place = fence(".".join(map(str, problem["loc"])), 80)
    return (
        f"its answer has another form than the protocol's, at {place}: {misfit_sentence(problem)}"
    )


def _errors() -> tuple[type[Exception], ...]:
    import anyio  # noqa: PLC0415 - loaded with the first connection
    import httpx2  # noqa: PLC0415 - the same
    from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - the same
    from pydantic import ValidationError  # noqa: PLC0415 - the same

    gone = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)
    return (MCPError, httpx2.HTTPError, ValidationError, RuntimeError, TimeoutError, *gone)


async def _listing(client: "Client", mask: Callable[[str], str]) -> ForeignListing:
    """Return the tools of all pages; what is said about them is masked.

    A page that adds nothing to what was read, or cannot be read, is the last one.
    """
    rows: dict[str, object] = {}
    dropped = set[str]()
    problems: list[str] = []
    cursor: str | None = None
    cursors = set[str | None]()
    size = 0
    async with asyncio.timeout(_LISTING_S):
        while cursor not in cursors and len(rows) <= MOST_TOOLS:
            if len(cursors) == _MOST_PAGES:
                problems.append(
                    f"its list has more than {_MOST_PAGES} pages, of which the first {_MOST_PAGES} are read"
                )
                break
            cursors.add(cursor)
            try:
                page = await client.list_tools(cursor=cursor, cache_mode="bypass")
            except _errors() as error:
                if cursor is None or _CLOSED in str(error):
                    raise
                problems.append(
                    f"page {len(cursors)} of its list cannot be read: {one_line(str(error), 200)}"
                )
                break
            sent = (page.meta or {}).get(ROWS, [])
            new = {json.dumps(row, sort_keys=True): row for row in sent}
            if sent and new.keys() <= rows.keys():
                break
            rows |= new
            names = {
                row["name"]
                for row in sent
                if isinstance(row, dict) and isinstance(row.get("name"), str)
            }
            dropped |= names - {tool.name for tool in page.tools}
            cursor = page.next_cursor
            size += sum(map(len, new)) + len(cursor or "")
            if size > _MOST_LISTED:
                raise ServerUnavailable(f"its list of tools has more than {_MOST_LISTED >> 20} MiB")
            if cursor is None:
                break
    listing = await asyncio.to_thread(read_tools, rows.values(), dropped)
    return replace(listing, problems=tuple(map(mask, (*listing.problems, *problems))))


async def _end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _exit_of(process: Process) -> None:
    """Wait until the program has exited, and close its output. `process.wait` waits for a child that holds it, too."""
    while process.returncode is None:  # noqa: ASYNC110 - asyncio has no event for it
        await asyncio.sleep(_LOOKING_S)
    with suppress(TimeoutError):
        async with asyncio.timeout(_ENDING_S):
            await process.wait()
    process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]


async def _hear(reader: asyncio.StreamReader, errors: bytearray) -> None:
    """Keep the last part of a server's standard error, starting at the beginning of a line."""
    while part := await reader.read(_MOST_ERRORS):
        errors += part
        if len(errors) > _MOST_ERRORS:
            del errors[: len(errors) - _MOST_ERRORS]
            errors[: errors.find(b"\n") + 1 or len(errors)] = (
                "…".encode()
            )  # a cut line may contain part of a secret
        await asyncio.sleep(_HEARING_S)  # a server may write without end
