"""Authentication, authorization and refusals: tokens, login links for the page, the cookie and key that they give.

Errors reach callers in one format, `{"error": {"code", "message", "fix", "problems"}}`, with an HTTP status.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from itertools import filterfalse
from typing import Any, Final, TypeAlias, get_args

from agent_core.base.errors import (
    AgentBusy,
    KnapperError,
    ModelError,
    StaleFile,
    StorageError,
    UnknownName,
    UsageError,
)
from agent_core.base.policy import Policy
from agent_core.base.problem import Problem
from agent_core.base.records import dataclass, replace, to_json
from agent_core.base.untrusted import one_line
from agent_core.operations.operation import Scope
from agent_core.operations.waiting_messages import MessageTaken, NotYours
from agent_core.runtime.agent import Origin
from agent_core.storage import (
    InboxFull,
    Line,
    TokenRow,
    TokenStore,
    agent_of,
    id_of,
    is_main,
    line_named,
    line_of,
)

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
"""The permissions of a token: talk to agents, read, change functions and memory, answer questions about grants, manage
agents. No scope includes another.
"""

LINK_S: Final = 600.0
_SESSION_S: Final = 12 * 3600.0
_MOST_SESSIONS: Final = 100
_PREFIX: Final = "tw"
_COOKIE: Final = "knapper_session"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_Entries: TypeAlias = dict[str, tuple[float, str]]  # digests, with the time when each expires
_NO_ENTRY: Final = (float("-inf"), 64 * "0")
_UNITS: Final = {"m": 60.0, "h": 3600.0, "d": 86400.0}


class NotAllowed(KnapperError):
    """The request has no valid token, or its token does not have a required scope."""

    code = "not-allowed"


@dataclass(frozen=True, slots=True)
class Identity:
    """The sender of a request, through a `window`, with the `id` of its token. Empty `agents` means all agents.

    One that is limited to conversations has their `lines`, and may do only what reaches nothing but a conversation.
    """

    name: str
    scopes: frozenset[str]
    agents: frozenset[str] = frozenset()
    id: str = ""
    window: str = "door"
    lines: frozenset[Line] = frozenset()

    def sees(self, agent: str) -> bool:
        """Return whether this identity may see an agent."""
        return not self.agents or agent in self.agents

    @property
    def may_log_in(self) -> bool:
        """True if it may create login links. The page can do everything, so this requires all scopes and agents."""
        return self is LINKER or self.is_owner

    @property
    def is_owner(self) -> bool:
        """True if it may do all that the workspace's owner may. No conversation is private to another one for it."""
        return not self.agents and self.scopes.issuperset(SCOPES)

    @property
    def reader(self) -> str | None:
        """The id of its token, which reads no conversation that is private to another; None reads all."""
        return None if self.is_owner else self.id

    def allowed(self, policy: Policy, usual_policy: Policy) -> Policy:
        """Return the policy that it gets for a turn: the owner as they say, a token no more than the workspace's.

        A task is asked about once, which is no less than a question: a token that answers none gets no task.

        Raises:
            NotAllowed: it asks for more.
        """
        if self.is_owner:
            return policy
        most = self._most(usual_policy)
        if policy != usual_policy and most.narrowed(policy) != policy:
            raise NotAllowed(
                f"The token `{self.name}` may not have mode {policy.mode} with growth {policy.growth}.",
                fix="Send the message without them, or with less.",
            )
        return most.narrowed(policy)

    def allowed_again(self, policy: Policy, usual_policy: Policy) -> Policy:
        """Return the policy that it gets for a turn that is run again, which had one."""
        return policy if self.is_owner else self._most(usual_policy).narrowed(policy)

    def _most(self, usual_policy: Policy) -> Policy:
        """Return the widest policy that it may have as a token."""
        if "approve" in self.scopes:
            return usual_policy
        return usual_policy.narrowed(replace(usual_policy, mode="ask"))

    @property
    def origin(self) -> Origin:
        """The origin of what it sends."""
        return Origin(self.window, self.id)

    @property
    def sender(self) -> Origin:
        """The origin of its messages, which has the name of its token, too."""
        return replace(self.origin, name=self.name if self.id else "")

    def may_reach(self, line: Line) -> bool:
        """Return whether it may reach a conversation of an agent that it sees."""
        return not self.lines or line in self.lines

    def needs(self, *scopes: Scope, in_a_conversation: bool = False) -> None:
        """Check that it has one of the scopes.

        Raises:
            NotAllowed: it has none of the scopes, or is limited to conversations, and this is not `in_a_conversation`.
        """
        if self.lines and not in_a_conversation:
            raise NotAllowed(
                f"`{self.name}` is limited to conversations, and this reaches beyond one.",
                fix=f"Use a token that is limited to agents: knapper tokens add NAME --scope {scopes[0]} --agent AGENT",
            )
        if not self.scopes.intersection(scopes):
            wanted = " or ".join(f"`{scope}`" for scope in scopes)
            fix = f"Make one: knapper tokens add NAME --scope {scopes[0]}"
            raise NotAllowed(
                f"This needs a token with the scope {wanted}; `{self.name}` has none.", fix=fix
            )


OWNER: Final[Identity] = Identity("page", frozenset(SCOPES), window="page")
LINKER: Final[Identity] = Identity("login", frozenset())


@dataclass(frozen=True, slots=True)
class NewToken:
    """A new token, which is shown only once."""

    token: str
    name: str
    scopes: tuple[str, ...]
    agents: tuple[str, ...]
    expires: float | None


class TokenBook:
    """The tokens of a workspace; every process in the workspace can add and revoke them."""

    def __init__(self, store: TokenStore, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now

    async def add(
        self,
        name: str,
        scopes: tuple[Scope, ...],
        agents: tuple[str, ...],
        expires: str = "",
        *,
        lines: tuple[Line, ...] = (),
    ) -> NewToken:
        """Create a token. `expires` is its lifetime, such as 30d, 12h or 90m; by default, it is valid until revoked.

        It is limited to the conversations of these `lines`, if there are any, or else to these `agents`.

        Raises:
            UsageError: the name is taken or invalid, or the lifetime is invalid.
        """
        if not _NAME.fullmatch(name) or name in (OWNER.name, LINKER.name):
            fix = "Use up to 64 letters, digits, dots, dashes and underscores, and not the server's own: page, login."
            raise UsageError(f"`{one_line(name, 80)}` cannot be the name of a token.", fix=fix)
        number, unit = expires[:-1], expires[-1:]
        if expires and (
            unit not in _UNITS or not number.isdecimal() or not 0 < int(number) <= 100_000
        ):
            raise UsageError(
                f"`{one_line(expires, 40)}` is not a time.", fix="Write it like 30d, 12h or 90m."
            )
        until = self._now() + int(number) * _UNITS[unit] if expires else None
        id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        limits = tuple(map(_limit_to, lines)) or agents
        row = TokenRow(id, name, _digest(secret), scopes, limits, until)
        if not await self._store.add_token(row):
            fix = f"Choose another name, or: knapper tokens revoke {name}"
            raise UsageError(f"There is a token `{name}` already.", fix=fix)
        return NewToken(f"{_PREFIX}_{id}_{secret}", name, scopes, limits, until)

    async def revoke(self, name: str) -> None:
        """Revoke a token immediately.

        Raises:
            UsageError: there is no token with this name.
        """
        if not await self._store.revoke_token(name):
            raise UsageError(
                f"There is no token `{one_line(name, 80)}`.", fix="Type: knapper tokens list"
            )

    async def identify(self, token: str) -> Identity | None:
        """Return the identity of a token, or None if the token is wrong, expired or revoked."""
        prefix, _, rest = token.partition("_")
        id, _, secret = rest.partition("_")
        row = await self._store.token(id) if prefix == _PREFIX and id and secret else None
        # Compare even if there is no such token, so that the timing reveals nothing.
        is_right = hmac.compare_digest(_digest(secret), row.digest if row else _digest(""))
        if row is None or not is_right or (row.expires is not None and row.expires <= self._now()):
            return None
        lines = frozenset(map(_line_in, filterfalse(is_main, row.agents)))
        agents = frozenset(map(agent_of, row.agents))
        return Identity(row.name, frozenset(row.scopes), agents, row.id, lines=lines)


class Sessions:
    """The logged-in browsers and the login links, kept in memory only.

    A browser sends its cookie to every port of the host, so programs on other ports can learn it. It is therefore valid
    only together with a key, which the page stores where no other origin can read it and sends itself.
    """

    def __init__(self, now: Callable[[], float], port: int) -> None:
        self._now = now
        self._links: _Entries = {}
        self._sessions: _Entries = {}  # with the digest of the key of each page
        self.cookie = f"{_COOKIE}_{port}"  # a browser may log in to two servers on one host
        self.token = secrets.token_urlsafe(32)
        """A token that can only request login links; every process that can read the workspace's state has it."""

    def link(self) -> str:
        """Return the secret of a new login link, which is valid once and for ten minutes."""
        secret = secrets.token_urlsafe(32)
        self._links = {**self._lasting(self._links), _digest(secret): (self._now() + LINK_S, "")}
        return secret

    def log_in(self, secret: str) -> tuple[str, str] | None:
        """Return a cookie and its key for the secret of a login link, or None if the link is not valid."""
        if self._links.pop(_digest(secret), _NO_ENTRY)[0] <= self._now():
            return None
        cookie, key = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        session = self._now() + _SESSION_S, _digest(key)
        self._sessions = {**self._lasting(self._sessions), _digest(cookie): session}
        return cookie, key

    def identify(self, cookie: str, key: str) -> Identity | None:
        """Return the owner of the workspace if the cookie and the key belong together and are still valid."""
        # Compare even if there is no such cookie, so that the timing reveals nothing.
        until, digest = self._sessions.get(_digest(cookie), _NO_ENTRY)
        is_right = hmac.compare_digest(_digest(key), digest)
        return OWNER if is_right and until > self._now() else None

    def asks_for_links(self, token: str) -> Identity | None:
        """Return the identity that can only request login links, if this is its token."""
        return LINKER if hmac.compare_digest(_digest(token), _digest(self.token)) else None

    def _lasting(self, kept: _Entries) -> _Entries:
        """Return the valid entries, limited to the newest so that one more can be added."""
        good = [(name, entry) for name, entry in kept.items() if entry[0] > self._now()]
        return dict(good[-(_MOST_SESSIONS - 1) :])


def _limit_to(line: Line) -> str:
    """Return AGENT/ID: the line of a main conversation is its agent's name, which would allow all conversations."""
    return f"{agent_of(line)}/{id_of(line)}"


def _line_in(limit: str) -> Line:
    """Return the line of a conversation to which a token is limited, from AGENT/ID."""
    return line_named(line_of(agent_of(limit), id_of(limit)))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


# API errors in their common format, and their HTTP status.

Json = dict[str, Any]  # Any: JSON
_STATUS: Final = (
    (NotAllowed, 403),
    (NotYours, 403),
    (AgentBusy, 409),
    (MessageTaken, 409),
    (StaleFile, 409),
    (InboxFull, 429),
    (UnknownName, 404),
    (UsageError, 400),
    (ModelError, 502),
    (StorageError, 503),
)
_OTHER: Final = 422


class NotThere(KnapperError):
    """Nothing that the token may see has this name."""

    code = "not-found"


class ApiRefusal(KnapperError):
    """A refused request, with the HTTP `status`, a `code`, and `problems` with individual parts of the request.

    `besides` is data in the response next to the error, such as the gate's verdict.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        fix: str = "",
        problems: Sequence[Json] = (),
        **besides: object,
    ) -> None:
        super().__init__(message, fix=fix)
        self.status = status
        self.code = code
        self.problems = list(problems)
        self.besides = besides

    @classmethod
    def of(cls, error: KnapperError) -> "ApiRefusal":
        """Convert an error to the form that remote callers get."""
        if isinstance(error, cls):
            return error
        is_missing = isinstance(error, NotThere) or error.code == "no-agent"
        status = (
            404
            if is_missing
            else next((status for kind, status in _STATUS if isinstance(error, kind)), _OTHER)
        )
        return cls(status, error.code, error.message, error.fix)

    @classmethod
    def read(cls, status: int, document: object) -> "ApiRefusal":
        """Return the refusal in a response, even if its content is invalid."""
        besides = dict(document) if isinstance(document, dict) else {}
        error = besides.pop("error", None)
        given = error if isinstance(error, dict) else {}
        usual = {"code": "error", "message": f"The server answered {status}.", "fix": ""}
        code, message, fix = (str(given.get(name) or text) for name, text in usual.items())
        problems = given.get("problems")
        return cls(
            status, code, message, fix, problems if isinstance(problems, list) else (), **besides
        )

    @property
    def document(self) -> Json:
        """The response body."""
        error = {
            "code": self.code,
            "message": self.message,
            "fix": self.fix or None,
            "problems": self.problems,
        }
        return {"error": error, **self.besides}


def status_of(error: KnapperError) -> int:
    """Return the HTTP status for an error."""
    return ApiRefusal.of(error).status


def rejected(verdict: object, problems: Iterable[Problem], message: str) -> ApiRefusal:
    """Return the refusal of what a gate does not admit; without a `message`, it says the first of the problems."""
    rows = [to_json(problem) for problem in problems]
    first = rows[0] if rows else {"message": "The gate does not admit it.", "fix": ""}
    return ApiRefusal(
        422, "rejected", message or first["message"], first["fix"], rows, verdict=to_json(verdict)
    )
