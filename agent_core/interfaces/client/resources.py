"""The resources of a client: functions, grants, recorded calls, and an agent's memory."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from ..server.failures import ApiRefusal
from .wire import Wire

Json = dict[str, Any]  # Any: JSON
_API: Final = "/api/v1"


class Resource:
    """A part of the API."""

    def __init__(self, wire: Wire, base: str = "") -> None:
        self._wire = wire
        self._base = f"{_API}{base}"

    async def _ask(self, method: str, path: str, body: object = None, **query: str | int | bool) -> Json:
        asked = {name: value for name, value in query.items() if value not in ("", False)}
        result = await self._wire.ask(method, f"{self._base}{path}", asked, body)
        return dict(result)

    async def _get(self, path: str = "", **query: str | int | bool) -> Json:
        return await self._ask("GET", path, **query)

    async def _post(self, path: str, body: object = None) -> Json:
        return await self._ask("POST", path, body)

    async def _judged(self, method: str, path: str, body: object) -> Json:
        """Return the verdict, also of what was rejected."""
        try:
            return await self._ask(method, path, body)
        except ApiRefusal as refused:
            if refused.code != "rejected":
                raise
            verdict = refused.besides["verdict"]
            assert isinstance(verdict, dict)
            return verdict

    @staticmethod
    def _quoted(name: object) -> str:
        return quote(str(name), safe="")


class FunctionsResource(Resource):
    """The functions of a workspace. Verdicts are returned, whether they admit or reject."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, "/functions")

    async def list(self, pattern: str = "", module: str = "", standing: str = "") -> Json:
        """Return the functions that match, and what was rejected."""
        return await self._get(pattern=pattern, module=module, standing=standing)

    async def search(self, need: str, count: int = 5) -> Json:
        """Return the functions that serve a need, best first."""
        return await self._get("/search", need=need, count=count)

    async def show(self, name: str) -> Json:
        """Return everything that is known of a function."""
        return await self._get(self._of(name))

    async def check(self, source: str, *, name: str = "", module: str = "", policy: str = "agent") -> Json:
        """Return the verdict on a function without admitting it."""
        return await self._post("/check", {"source": source, "name": name, "module": module, "policy": policy})

    async def create(self, name: str, source: str, module: str = "grown", *, reason: str = "") -> Json:
        """Create a function if there is none of that name and the gate admits it. Return its verdict."""
        body = {"source": source, "module": module, "reason": reason, "when": "new"}
        return await self._judged("PUT", self._of(name), body)

    async def replace(self, name: str, source: str, *, reason: str = "") -> Json:
        """Replace a function that is there if the gate admits the new one. Return its verdict."""
        body = {"source": source, "reason": reason, "when": "there"}
        return await self._judged("PUT", self._of(name), body)

    async def edit(self, name: str, old: str, new: str, *, reason: str = "") -> Json:
        """Replace a part of a function's source if the gate admits it, and return its verdict."""
        return await self._judged("PATCH", self._of(name), {"old": old, "new": new, "reason": reason})

    async def delete(self, name: str) -> Json:
        """Delete a function that no other one calls."""
        return await self._ask("DELETE", self._of(name))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Json:  # Any: JSON
        """Call a function, and return how it ended."""
        return await self._post(self._of(name, "/call"), {"arguments": dict(arguments)})

    async def test(self, name: str, arguments: Mapping[str, Any] | None = None) -> Json:  # Any: JSON
        """Run a function's examples, or one call, off the record."""
        return await self._post(self._of(name, "/test"), {} if arguments is None else {"arguments": dict(arguments)})

    async def trace(self, name: str, arguments: Mapping[str, Any]) -> Json:  # Any: JSON
        """Call a function off the record, and return each line that ran with the locals that it changed."""
        return await self._post(self._of(name, "/trace"), {"arguments": dict(arguments)})

    async def history(self, name: str) -> Json:
        """Return the versions of a function."""
        return await self._get(self._of(name, "/history"))

    async def diff(self, name: str, version: str = "") -> Json:
        """Return what changed since a version."""
        return await self._get(self._of(name, "/diff"), version=version)

    async def rollback(self, name: str, version: str = "") -> Json:
        """Go back to an earlier version if the gate admits it, and return its verdict."""
        return await self._judged("POST", self._of(name, "/rollback"), {"version": version})

    async def confirm(self, name: str, expected: tuple[str, ...] = (), *, reason: str = "") -> Json:
        """Admit a rejected candidate with the results that came back, and return its verdict."""
        return await self._judged("POST", self._of(name, "/confirm"), {"expected": [*expected], "reason": reason})

    async def release(self, name: str) -> Json:
        """Release a function from quarantine."""
        return await self._post(self._of(name, "/release"))

    def _of(self, name: str, end: str = "") -> str:
        return f"/{self._quoted(name)}{end}"


class GrantsResource(Resource):
    """What functions may reach."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, "/grants")

    async def list(self, function: str = "") -> Json:
        """Return the grants that the file proposes, and those in force."""
        return await self._get(function=function)

    async def revoke(self, function: str, grants: Json | None = None) -> Json:
        """Revoke grants of a function, or all."""
        return await self._post(f"/{self._quoted(function)}/revoke", {"grants": grants} if grants else {"all": True})


class CallsResource(Resource):
    """The recorded calls."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, "/calls")

    async def list(self, function: str = "", *, failed: bool = False) -> Sequence[Json]:
        """Return the recorded calls, newest first."""
        return [*(await self._get(function=function, failed=failed))["calls"]]

    async def show(self, call: int) -> Json:
        """Return one with what it got, and its outcome."""
        return await self._get(f"/{call}")

    async def replay(self, call: int, version: str = "") -> Json:
        """Make a call again, and compare."""
        return await self._post(f"/{call}/replay", {"version": version})


class MemoryResource(Resource):
    """What one agent remembers."""

    async def show(self) -> Json:
        """Return its blocks and sections."""
        return await self._get("/memory")

    async def block(self, label: str) -> Json:
        """Return one block, with its version and the history of its changes."""
        return await self._get(self._of(label))

    async def edit(self, label: str, version: int, value: str | None = None, **about: str | int) -> Json:
        """Change a block that is still at this version: its value, `limit` or `description`.

        Raises:
            ApiRefusal: it is at another version by now; `problems` has what it is.
        """
        body = {"version": version, **about, **({} if value is None else {"value": value})}
        return await self._ask("PATCH", self._of(label), body)

    async def history(self, label: str) -> list[Json]:
        """Return the changes of a block."""
        return list((await self.block(label))["changes"])

    async def undo(self, label: str) -> Json:
        """Take back the last change of a block."""
        return await self._post(self._of(label, "/undo"))

    async def search(self, query: str, where: str = "both", *, page: int = 0, count: int = 10) -> Json:
        """Search what was said (`recall`), what was stored (`archival`), or both."""
        return await self._get("/search", query=query, where=where, page=page, count=count)

    def _of(self, label: str, end: str = "") -> str:
        return f"/memory/{self._quoted(label)}{end}"
