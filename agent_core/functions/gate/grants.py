"""The grants that code needs, as data: modules and names by the grant that the user would have to give."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

_BY_GRANT = {
    "network": "socket ssl socketserver urllib.request http.client http.server ftplib smtplib poplib imaplib"
    " telnetlib nntplib xmlrpc webbrowser asyncio.open_connection asyncio.start_server requests httpx"
    " aiohttp urllib3 websockets functions._requests",
    "files": "shutil glob fileinput dbm shelve sqlite3 tempfile linecache io.open io.FileIO os.open os.remove"
    " os.unlink os.rename os.replace os.mkdir os.makedirs os.rmdir os.removedirs os.listdir os.scandir"
    " os.walk os.stat os.chmod os.chown os.link os.symlink os.truncate os.utime os.path.exists"
    " os.path.getsize os.path.isfile os.path.isdir",
    "processes": "subprocess multiprocessing pty signal os.system os.popen os.fork os.forkpty os.kill os.killpg"
    " os.execv os.execve os.execl os.execlp os.execvp os.spawnl os.spawnv os.posix_spawn"
    " asyncio.create_subprocess_exec asyncio.create_subprocess_shell"
    " concurrent.futures.ProcessPoolExecutor",
    "secrets": "os.environ os.environb os.getenv getpass keyring",
}
# A longer entry wins over a shorter one.
GRANTS: Mapping[str, str] = MappingProxyType(
    {name: grant for grant, names in _BY_GRANT.items() for name in names.split()}
)
WITHOUT_GRANT = frozenset(
    {"tempfile.SpooledTemporaryFile", "shutil.get_terminal_size", "glob.escape", "glob.translate", "signal.Signals"}
)
ADVICE: Mapping[str, str] = MappingProxyType(
    {
        "network": "take the text as a parameter instead of fetching it",
        "files": "take the content as a parameter, or keep files below `self.scratch`",
        "processes": "do the work in Python itself",
        "secrets": "take the value as a parameter",
        "packages": "use the standard library",
    }
)
Way: TypeAlias = Literal["absent", "none", "joining", "calling", "importing", "file"]
"""The way the user is asked: when a function that is not there yet has been made, not at all, before a candidate is
accepted, before a call (of what was saved or is imported), or manually in the file."""

FIXES: Mapping[Way, str] = MappingProxyType(
    {
        "absent": "{}, or leave it: a human is asked once the function is made or called",
        "none": "{}, or let a human grant it: knapper functions grant NAME",
        "joining": "leave it if the task needs it, the user is asked before it joins; else {}",
        "calling": "a human is asked before it is called, or grants it now: knapper functions grant NAME",
        "importing": "leave it, a human is asked when it is first called; else {}",
        "file": "leave it if the task needs it, a human has to grant it; else {}",
    }
)
CONTEXT: Mapping[str, str] = MappingProxyType({"fetch": "network", "secret": "secrets", "memory": "memory"})

# What the broker carries out of the sandbox; every other way to the network stays shut, whatever is granted.
BROKERED = frozenset({"urllib.request", "http.client", "requests", "httpx", "urllib3", "functions._requests"})
# Modules and functions that only look at files.
READING = frozenset(
    {"glob", "linecache", "os.listdir", "os.scandir", "os.walk", "os.stat"}
    | {"os.path.exists", "os.path.getsize", "os.path.isfile", "os.path.isdir"}
)
# What no human can grant, and what to do instead.
INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "network": "use `self.fetch(url)`, the only way out",
        "files": "keep files below `self.scratch`",
        "secrets": "use `self.secret(name)`",
        "processes": "do the work in Python itself",
    }
)


def grant_of(name: str) -> str | None:
    """Return the grant that a dotted name needs: for the name itself, or for the modules that contain it."""
    if name in WITHOUT_GRANT:
        return None
    return next((GRANTS[head] for head in heads(name) if head in GRANTS), None)


def is_in(name: str, names: frozenset[str]) -> bool:
    """Check whether a dotted name, or a module that contains it, is one of these."""
    return any(head in names for head in heads(name))


def heads(name: str) -> list[str]:
    """Return a dotted name and the modules that contain it, the longest first."""
    parts = name.split(".")
    return [".".join(parts[:size]) for size in range(len(parts), 0, -1)]
