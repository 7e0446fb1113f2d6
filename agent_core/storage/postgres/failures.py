"""The errors of the database as sentences: what is wrong, where, and how to fix it."""

from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from agent_core.base.errors import StorageError

UNSAVED: Final = "The change in progress is not saved; everything before it is."
RESTARTING: Final = frozenset({"57P01", "57P02", "57P03", "25P03"})
"""The states in which a connection ends, and another will do: shut down, crashed, starting up, idle too long."""
_TOO_MANY: Final = ("53300", "too many clients", "remaining connection slots", "too many connections")
_REFUSED: Final = ("28P01", "28000", "authentication failed", "no pg_hba.conf entry", "no password supplied", 'role "')
_MISSING: Final = ("3D000", "does not exist")
_NOBODY: Final = ("Connection refused", '" failed: No such file or directory')  # the second: of a socket
_CERTIFICATE: Final = ("certificate file", "private key file")
_UNKNOWN_HOST: Final = ("resolve host", "translate host name")
_UNREADABLE: Final = (
    "invalid connection option",
    "invalid integer value",
    "invalid port number",
    "invalid sslmode value",
    "Servname not supported",
)
_PASSING: Final = ("starting up", "shutting down", "in recovery mode", "not yet accepting")


_CAUSES: Final = (
    (
        _TOO_MANY,
        "has as many connections as it takes.",
        "End a process that uses it, or raise its max_connections: a process of Knapper takes up to six.",
    ),
    (
        _REFUSED,
        "does not let this user in ({short}).",
        "Check the user and the password: in the URL, in ~/.pgpass, or in PGPASSWORD.",
    ),
    (
        _CERTIFICATE,
        "needs a certificate that cannot be read ({short}).",
        "Correct sslcert, sslkey or sslrootcert in the URL.",
    ),
    (_MISSING, "is not there ({short}).", "Make it with `createdb`, or correct `url` in [storage] of knapper.toml."),
    (_UNREADABLE, "has an address that cannot be read ({short}).", "Correct the URL: postgresql://USER@HOST:PORT/NAME"),
    (
        _NOBODY,
        "is not there: no server listens ({short}).",
        "Start the server, or correct the host and the port in the URL.",
    ),
    (
        _UNKNOWN_HOST,
        "cannot be found: nobody knows its host ({short}).",
        "Correct the host in the URL, or see that this machine is in the network.",
    ),
    (("25006",), "is read-only: a replica, or set so.", "Give the address of the primary server."),
    (("42501",), "lacks a right for this user ({short}).", "Its owner types: grant create on database NAME to USER"),
    (("53100", "53200"), "has no room ({short}).", "Free some space on its machine and try again."),
    (("54",), "cannot keep something as large as this ({short}).", "Make it shorter."),
    (("57014",), "took longer than a minute to answer, or was interrupted.", "Type: knapper doctor"),
    (("22", "23"), "has rows that do not let this be saved ({short}).", "Type: knapper storage check"),
)


def place_of(conninfo: str) -> str:
    """Return where a database is, without a password."""
    parts = conninfo_to_dict(conninfo)
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{parts.get('host') or 'localhost'}{port}/{parts.get('dbname') or parts.get('user') or ''}"


def is_passing(error: psycopg.Error, *, is_connected: bool) -> bool:
    """Return whether another attempt may succeed: nothing of this one was written.

    What has no connection yet is refused for good where the database says so: a password, a name.
    """
    if error.sqlstate is not None:
        return error.sqlstate in RESTARTING or error.sqlstate.startswith("08") or _is(error, _TOO_MANY)
    text = str(error)
    return is_connected or "FATAL" not in text or any(part in text for part in (*_PASSING, *_TOO_MANY))


def explain(error: psycopg.Error, place: str, outcome: str = UNSAVED) -> StorageError:
    """Return the error for the caller of the store; `outcome` says what became of the work."""
    short = str(error).strip().partition("\n")[0].strip() or type(error).__name__
    message, fix = next(
        ((message, fix) for signs, message, fix in _CAUSES if _is(error, signs)),
        ("does not answer ({short}).", "Check that it runs, and that this machine reaches it; then try again."),
    )
    return StorageError(f"The database {place} {message.format(short=short)} {outcome}".strip(), fix=fix)


def _is(error: psycopg.Error, signs: tuple[str, ...]) -> bool:
    """Check for a state, or the class of one; an error of a new connection has none, only a text."""
    if error.sqlstate is not None:
        return error.sqlstate.startswith(signs)
    return any(sign in str(error) for sign in signs if not sign.isalnum())
