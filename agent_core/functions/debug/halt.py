"""One stop, up to the command that ends it: the host answers some commands, the worker the others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.errors import UsageError
from agent_core.base.untrusted import fence, visible
from sandbox import CallEnded, DebugControl, RequestRefused
from sandbox.wire import caps
from sandbox.wire.lines import bare_lines

from .stop import BY_NAME, COMMANDS, RESUMING, At, Claim, Command, CommandHelp, Debugger, DebugStop, Reader
from .typed_line import Order, expression_of, order_of, typed_breakpoint

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.snapshot import Snapshot

    from .breakpoints import Breakpoints, Placed

MOST_DIGITS: Final = 9
_MOST_TYPED: Final = 200
WHY: Final = frozenset(
    {"breakpoint", "breakpoint()", "step", "return", "waits", "yields", "exception", "raised", "break now"}
)
FAILED: Final = ", whose condition failed"
QUIT: Final = "its debugger was told to end it"


@dataclass(slots=True)
class Halt:
    """A stop, the debugger, and the expressions displayed at each stop; `snapshot` is what the call runs on."""

    stop: DebugStop
    debugger: Debugger
    breakpoints: "Breakpoints"
    snapshot: "Snapshot"
    displayed: list[str]
    waiting: Command = field(default_factory=lambda: Command(""))  # of the worker's answer
    is_setting: bool = False  # whether that gives something another value
    reins: DebugControl | None = None  # on the worker that stands still
    is_asked: bool = False  # whether the human is, and no worker
    listed: int = 0  # the last line that was listed here
    done: str = ""  # what the host says to the last order: then the worker's words are not told

    async def order(self) -> Order:
        """Return what the worker must do next.

        Raises:
            CallEnded: the human ends the call.
        """
        while True:
            self.is_asked = True
            command = await self.debugger.stopped(self.stop)
            self.is_asked = False
            self.stop, self.done = replace(self.stop, message=""), ""
            if command.do == "quit":
                raise CallEnded(QUIT)
            try:
                result = self._resumed(command) if command.do in RESUMING else self._done(command)
            except UsageError as error:
                result = str(error)
            if not isinstance(result, str):
                self.waiting, self.is_setting = command, result["do"] in ("set", "act")
                return result
            self.stop = replace(self.stop, message=result)

    def heard(self, claim: Claim, reader: Reader) -> bool:
        """Process the worker's answer to the last order; return whether a local has changed, by whatever was typed."""
        text = reader.text(claim.get("text", ""))
        has_changed = (self.is_setting and not text) or claim.get("changed") is True
        if "locals" in claim:
            names = reader.many(
                claim.get("names"), lambda name: reader.text(name, caps.MOST_SEEN_NAME), caps.MOST_NAMES
            )
            self.stop = replace(
                self.stop,
                locals=reader.pairs(claim["locals"]),
                arguments=reader.number(claim.get("arguments")),
                names=names,
            )
            text = _place(self.stop) if self.waiting.do in ("up", "down") else self._locals(self.waiting.do)
        self.stop = replace(self.stop, message=self.done or text or "done")
        return has_changed

    @property
    def change(self) -> str:
        """The last order as a change: where the call stood still, and what the human typed."""
        typed = self.waiting.argument.strip()
        name, _, expression = typed.partition(" ")
        if self.waiting.do == "set":
            typed = f"{name} = {expression.strip().removeprefix('=').strip()}"
        return f"{_place(self.stop)}: {fence(typed, _MOST_TYPED)}"

    def _resumed(self, command: Command) -> Order:
        line = command.argument.strip()
        if line and (command.do != "until" or not line.isdecimal()):
            raise UsageError(f"`{command.do}` takes {'a line' if command.do == 'until' else 'nothing'}.")
        return {"do": command.do, "line": int(line or 0), "shown": self.displayed}

    def _done(self, command: Command) -> Order | str:
        act = _ACTS.get(command.do)
        return act(self, command.argument) if act else f"There is no command `{visible(command.do[:40])}`."

    def _look(self, step: int) -> Order | str:
        frame = self.stop.current + step
        if not 0 <= frame < len(self.stop.frames):
            return "This is the outermost frame." if step < 0 else "This is the innermost frame."
        path, self.listed = self.stop.frames[frame].path, 0
        self.stop = replace(self.stop, current=frame, **_source(path, self.snapshot, self.breakpoints))
        return {"do": "locals", "frame": frame}

    def _evaluate(self, text: str, *, pretty: bool = False) -> Order:
        return {**order_of(text, self.stop.names), "frame": self.stop.current, "pretty": pretty}

    def _whatis(self, text: str) -> Order:
        return self._evaluate(f"({expression_of(text)}).__class__")

    def _set(self, argument: str) -> Order:
        name, _, expression = argument.partition(" ")
        expression = expression.strip().removeprefix("=").strip()
        if not expression:
            raise UsageError("`set` needs a name and a value.", fix="For example: set total 0")
        return {"do": "set", "name": name, "expression": expression_of(expression), "frame": self.stop.current}

    def _locals(self, do: str) -> str:
        count = self.stop.arguments if do == "args" else len(self.stop.locals)
        return "\n".join(f"{name} = {text}" for name, text in self.stop.locals[:count]) or "none"

    def _where(self, _argument: str) -> str:
        marks = {self.stop.current: "→"}
        rows = [(marks.get(number, " "), frame) for number, frame in enumerate(self.stop.frames)]
        return "\n".join(f"{mark} {_at(frame)}" for mark, frame in rows)

    def _list(self, argument: str) -> str:
        first, last = _range(argument, self.stop.at.line, self.listed)
        lines = self.stop.lines(first, last)
        self.listed = last
        return _numbered(self.stop, lines) if lines else f"{self.stop.at.path} has no line {first}."

    def _longlist(self, _argument: str) -> str:
        owner = self._owner()
        if owner is None:
            return _numbered(self.stop, self.stop.listing(20))
        lines = bare_lines(self.stop.source)[owner.line - 1 : owner.end_line]
        return _numbered(self.stop, enumerate(lines, owner.line))

    def _break(self, argument: str, *, once: bool = False) -> Order | str:
        if not argument:
            return "\n".join(visible(placement.text) for placement in self.breakpoints.placed(self.snapshot)) or "none"
        spec, line = typed_breakpoint(argument, once=once)
        spec = replace(spec, function=spec.function or self._function_at(line))
        return self._armed(self.breakpoints.arm(spec, line, self.snapshot))

    def _armed(self, placed: "Placed", **more: bool) -> Order:
        """Return the order to stop there; the answer then shows the breakpoint as it stands."""
        point = next(
            worker_point
            for worker_point in self.breakpoints.points(self.snapshot)
            if worker_point.id == placed.breakpoint.id
        )
        self.stop = replace(self.stop, **_source(self.stop.at.path, self.snapshot, self.breakpoints))
        self.done = visible("\n".join(filter(None, (placed.text, placed.moved))))
        return {"do": "break", "point": point.to_json(), **more}

    def _condition(self, argument: str) -> Order:
        number, _, condition = argument.partition(" ")
        placement = self.breakpoints.change(_counted(number), self.snapshot, condition=condition.strip())
        return self._armed(placement, goes_on=True)

    def _ignore(self, argument: str) -> Order:
        number, _, times = argument.partition(" ")
        return self._armed(self.breakpoints.change(_counted(number), self.snapshot, after=_counted(times.strip())))

    def _function_at(self, line: int) -> str:
        owner = self._owner(line) or self._owner()
        return owner.name if owner else self.stop.at.function.split(".")[0]

    def _owner(self, line: int = 0) -> "Function | None":
        """Return the function that contains a line of this file; 0 means the current one."""
        path, functions, line = self.stop.at.path, self.snapshot.functions.values(), line or self.stop.at.line
        return next(
            (
                function
                for function in functions
                if function.path == path and function.line <= line <= function.end_line
            ),
            None,
        )

    def _clear(self, argument: str) -> Order | str:
        matches = self.breakpoints.clear(id=int(argument)) if argument.isdecimal() and int(argument) else []
        if not matches:
            return f"There is no breakpoint {visible(argument[:20])}."
        self.done = f"Breakpoint {argument} of {matches[0].breakpoint.function} is cleared."
        self.stop = replace(self.stop, **_source(self.stop.at.path, self.snapshot, self.breakpoints))
        return {"do": "clear", "id": int(argument)}

    def _display(self, expression: str) -> Order:
        order = self._evaluate(expression_of(expression))
        self.displayed = [*dict.fromkeys([*self.displayed, expression])]
        return order

    def _undisplay(self, expression: str) -> str:
        was_displayed = expression in self.displayed
        self.displayed = [entry for entry in self.displayed if entry != expression]
        return f"`{visible(expression[:80])}` is {'no longer shown' if was_displayed else 'not shown at stops'}."


_ACTS: Final[dict[str, Callable[[Halt, str], Order | str]]] = {
    "up": lambda halt, _: halt._look(-1),
    "down": lambda halt, _: halt._look(1),
    "where": Halt._where,
    "list": Halt._list,
    "longlist": Halt._longlist,
    "p": Halt._evaluate,
    "pp": lambda halt, argument: halt._evaluate(argument, pretty=True),
    "args": lambda halt, _: {"do": "locals", "frame": halt.stop.current},
    "locals": lambda halt, _: {"do": "locals", "frame": halt.stop.current},
    "set": Halt._set,
    "break": Halt._break,
    "tbreak": lambda halt, argument: halt._break(argument, once=True),
    "condition": Halt._condition,
    "ignore": Halt._ignore,
    "clear": Halt._clear,
    "display": Halt._display,
    "undisplay": Halt._undisplay,
    "retval": lambda halt, _: halt.stop.value if halt.stop.value is not None else "Nothing is being returned here.",
    "whatis": Halt._whatis,
    "help": lambda _, argument: _help(argument),
}


def _short(command: CommandHelp) -> str:
    """Return the short form of a command, if it has one."""
    return command.short if command.short != command.name else ""


def _help(name: str) -> str:
    if not name:
        return "\n".join(f"{command.name:10} {_short(command):4} {command.description}" for command in COMMANDS)
    command = BY_NAME.get(name)
    if command is None:
        raise UsageError(f"There is no command `{visible(name[:40])}`.", fix="`help` lists them.")
    example = f"\nFor example: {command.example}" if command.example else ""
    return f"{', '.join(dict.fromkeys((command.name, command.short)))}: {command.description}{example}"


def _range(argument: str, line: int, listed: int) -> tuple[int, int]:
    """Return the range of lines to list: the given ones, those around one, or the next after the last listed."""
    first, comma, last = (part.strip() for part in argument.partition(","))
    if not argument and listed:
        return listed + 1, listed + 11
    if argument in ("", "."):
        return line - 5, line + 5
    if not first.isdecimal() or (comma and not last.isdecimal()) or len(argument) > 2 * MOST_DIGITS:
        raise UsageError("`list` takes nothing, a dot, a line, or two.", fix="For example: l 10,14")
    begin, end = int(first), int(last or 0)
    if not comma:
        return begin - 5, begin + 5
    return begin, end if end >= begin else begin + end


def why_of(claim: Claim, id: int) -> str:
    """Return why a call is stopped, in the host's own words; `id` is the breakpoint's, 0 if there is none.

    Raises:
        RequestRefused: a debugger does not stop for that.
    """
    why = claim.get("why")
    if not isinstance(why, str):
        raise RequestRefused("a stop has a reason")
    if id:
        return f"breakpoint {id}{FAILED if why.endswith(FAILED) else ''}"
    if why not in WHY:
        raise RequestRefused("a stop has one of the reasons that a debugger stops for")
    return why


def begun(claim: Claim, reader: Reader, call: str, snapshot: "Snapshot", breakpoints: "Breakpoints") -> DebugStop:
    """Return the stop that a worker claims, without its reason."""
    frames = reader.many(claim.get("frames"), reader.at, caps.MOST_STACK)
    value, error = claim.get("value"), claim.get("error")
    return DebugStop(
        call,
        "",
        frames,
        len(frames) - 1,
        reader.pairs(claim.get("locals")),
        reader.number(claim.get("arguments")),
        reader.many(claim.get("names"), lambda name: reader.text(name, caps.MOST_SEEN_NAME), caps.MOST_NAMES),
        reader.pairs(claim.get("shown")),
        None if value is None else reader.text(value, caps.MOST_SEEN_RESULT),
        None if error is None else reader.text(error, caps.MOST_SEEN_RESULT),
        **_source(frames[-1].path if frames else "", snapshot, breakpoints),
    )


def _source(path: str, snapshot: "Snapshot", breakpoints: "Breakpoints") -> Mapping[str, Any]:  # Any: fields of a Stop
    text = next((visible(module.text) for module in snapshot.modules.values() if module.path == path), "")
    armed = frozenset(placement.line for placement in breakpoints.placed(snapshot) if placement.path == path)
    return {"source": text, "armed": armed}


def _place(stop: DebugStop) -> str:
    return f"{stop.at.path}:{stop.at.line} in {stop.at.function}"


def _at(frame: At) -> str:
    given = f"({frame.arguments})" if frame.arguments else ""
    return f"{frame.path}:{frame.line} in {frame.function}{given}"


def _numbered(stop: DebugStop, lines: Any) -> str:  # Any: pairs of number and text
    marks = dict.fromkeys(stop.armed, "B") | {stop.at.line: "→"}
    return "\n".join(f"{number:4} {marks.get(number, ' ')} {text}".rstrip() for number, text in lines)


def _counted(text: str) -> int:
    if not text.isdecimal() or len(text) > MOST_DIGITS:
        raise UsageError(
            f"`{visible(text[:20])}` is not a number that counts something.", fix="For example: ignore 1 20"
        )
    return int(text)
