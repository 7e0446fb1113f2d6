"""Who may use the server, and for what: tokens, the login links of the page, and the cookie and key that they give."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar, get_args

from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.untrusted import one_line
from agent_core.storage import TokenRow, TokenStore

Scope: TypeAlias = Literal["chat", "read", "edit", "approve", "admin"]
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
"""What a token may do: talk to agents, look, change functions and memory, answer questions about grants, manage
agents. None includes another.
"""

LINK_S: Final = 600.0
_SESSION_S: Final = 12 * 3600.0
_MOST_SESSIONS: Final = 100
CONVERSATION: Final = "--"
"""Stands between the name of an agent and that of a conversation with it."""
_PREFIX: Final = "tw"
_COOKIE: Final = "knapper_session"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
V = TypeVar("V")
_UNITS: Final = {"m": 60.0, "h": 3600.0, "d": 86400.0}


class NotAllowed(KnapperError):
    """The request lacks a valid token, or its token lacks a scope."""

    code = "not-allowed"


@dataclass(frozen=True, slots=True)
class Identity:
    """Whoever a request comes from. No `agents` means all of them."""

    name: str
    scopes: frozenset[str]
    agents: frozenset[str] = frozenset()

    def sees(self, agent: str) -> bool:
        """Return whether this agent exists for it."""
        return not self.agents or agent in self.agents

    @property
    def may_log_in(self) -> bool:
        """True if it may let a browser in: its page can do everything, so only who can may do so."""
        return self is LINKER or (not self.agents and self.scopes.issuperset(SCOPES))

    def needs(self, *scopes: Scope) -> None:
        """Do nothing if it has one of the scopes.

        Raises:
            NotAllowed: it has none of them.
        """
        if not self.scopes.intersection(scopes):
            wanted = " or ".join(f"`{scope}`" for scope in scopes)
            fix = f"Make one: knapper tokens add NAME --scope {scopes[0]}"
            raise NotAllowed(f"This needs a token with the scope {wanted}; `{self.name}` has none.", fix=fix)


OWNER: Final = Identity("page", frozenset(SCOPES))
LINKER: Final = Identity("login", frozenset())


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token as it is shown once, when it is made."""

    token: str
    name: str
    scopes: tuple[str, ...]
    agents: tuple[str, ...]
    expires: float | None


class TokenBook:
    """The tokens of a workspace, which every process at it can add and revoke."""

    def __init__(self, store: TokenStore, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now

    async def add(self, name: str, scopes: tuple[Scope, ...], agents: tuple[str, ...], expires: str = "") -> NewToken:
        """Make a token; `expires` is how long it is valid, such as 30d, 12h or 90m; without it, until it is revoked.

        Raises:
            UsageError: the name is taken or not a name, or the time is not one.
        """
        if not _NAME.fullmatch(name) or name in (OWNER.name, LINKER.name):
            fix = "Use up to 64 letters, digits, dots, dashes and underscores, and not the server's own: page, login."
            raise UsageError(f"`{one_line(name, 80)}` cannot be the name of a token.", fix=fix)
        until = self._now() + _seconds(expires) if expires else None
        id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        row = TokenRow(id, name, _digest(secret), scopes, agents, until)
        if not await self._store.add_token(row):
            fix = f"Choose another name, or: knapper tokens revoke {name}"
            raise UsageError(f"There is a token `{name}` already.", fix=fix)
        return NewToken(f"{_PREFIX}_{id}_{secret}", name, scopes, agents, until)

    async def revoke(self, name: str) -> None:
        """Make a token invalid at once.

        Raises:
            UsageError: there is none of that name.
        """
        if not await self._store.revoke_token(name):
            raise UsageError(f"There is no token `{one_line(name, 80)}`.", fix="Type: knapper tokens list")

    async def identify(self, token: str) -> Identity | None:
        """Return whose token it is, or None if it is wrong, expired or revoked."""
        prefix, _, rest = token.partition("_")
        id, _, secret = rest.partition("_")
        row = await self._store.token(id) if prefix == _PREFIX and id and secret else None
        # Where there is no such token the same is compared, so that the time tells nothing.
        is_right = hmac.compare_digest(_digest(secret), row.digest if row else _digest(""))
        if row is None or not is_right or (row.expires is not None and row.expires <= self._now()):
            return None
        return Identity(row.name, frozenset(row.scopes), frozenset(row.agents))


@dataclass(frozen=True, slots=True)
class _Session:
    """One browser that is logged in: the digest of the key that its pages hold, and how long it is good."""

    key: str
    until: float


class Sessions:
    """The browsers that are logged in, and the links that let them in. They are forgotten with the process.

    A browser sends its cookie to every port of the host, so whoever listens at another one knows it: it counts only
    with a key, which the page keeps where no other origin can read it, and sends itself.
    """

    def __init__(self, now: Callable[[], float], port: int) -> None:
        self._now = now
        self._links: dict[str, float] = {}
        self._sessions: dict[str, _Session] = {}
        self.cookie = f"{_COOKIE}_{port}"  # two servers of one host are two logins of one browser
        self.token = secrets.token_urlsafe(32)
        """Asks for links, and for nothing else: who can read the workspace's state has it."""

    def link(self) -> str:
        """Return the secret of a login link, which is good once and for ten minutes."""
        self._links = _lasting(self._links, lambda until: until > self._now())
        secret = secrets.token_urlsafe(32)
        self._links[_digest(secret)] = self._now() + LINK_S
        return secret

    def log_in(self, secret: str) -> tuple[str, str] | None:
        """Return a cookie and its key for the secret of a link, or None if it is no longer good."""
        if self._links.pop(_digest(secret), 0.0) <= self._now():
            return None
        self._sessions = _lasting(self._sessions, lambda session: session.until > self._now())
        cookie, key = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._sessions[_digest(cookie)] = _Session(_digest(key), self._now() + _SESSION_S)
        return cookie, key

    def identify(self, cookie: str, key: str) -> Identity | None:
        """Return the owner of the workspace if cookie and key were given together, and are still good."""
        session = self._sessions.get(_digest(cookie))
        # Where there is no such cookie the same is compared, so that the time tells nothing.
        is_right = hmac.compare_digest(_digest(key), session.key if session else _digest(""))
        return OWNER if session is not None and is_right and session.until > self._now() else None

    def asks_for_links(self, token: str) -> Identity | None:
        """Return who may ask for login links and do nothing else, if this is their token."""
        return LINKER if hmac.compare_digest(_digest(token), _digest(self.token)) else None


def _lasting(kept: dict[str, V], is_good: Callable[[V], bool]) -> dict[str, V]:
    """Return what is still good, at most the newest so many less one."""
    good = [(name, value) for name, value in kept.items() if is_good(value)]
    return dict(good[-(_MOST_SESSIONS - 1) :])


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _seconds(text: str) -> float:
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not number.isdecimal() or not 0 < int(number) <= 100_000:
        raise UsageError(f"`{one_line(text, 40)}` is not a time.", fix="Write it like 30d, 12h or 90m.")
    return int(number) * _UNITS[unit]
