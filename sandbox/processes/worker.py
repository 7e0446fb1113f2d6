"""One worker: it is confined before it gets the first byte of a job.

It is forked from the zygote. The layers are applied in order; if one fails, the process exits with the status
`NOT_CONFINED`, before it has sent `ready`.
"""

import _thread
import gc
import os
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from ..confine import landlock, limits, namespaces
from ..confine.plan import Rlimits
from ..confine.seccomp import Filter
from ..inside import attempts
from ..inside.channel import Channel
from ..inside.debugger import stand_by
from ..inside.edge import attempt
from ..inside.jobs import perform, serve_calls
from ..inside.rehearsal import rehearse

NOT_CONFINED: Final = 97
_CHANNEL, _RULES = 3, 4
_LINGER_S: Final = 0.2  # time for the host to measure the usage of this process before it exits
_LINGER: Final = time.sleep  # function code could replace `time.sleep`


@dataclass(frozen=True, slots=True)
class Ends:
    """The descriptors that a worker starts with."""

    channel: int
    output: int
    null: int
    rules: int | None


@dataclass(frozen=True, slots=True)
class Confinement:
    """The confinement layers, prepared by the zygote."""

    scratch: Path
    limits: Rlimits
    filter: Filter | None
    layers: tuple[str, ...]
    own_user: bool
    home: str = ""  # current folder, if not scratch
    covers: bool = False  # whether it hides the other scratch folders, for want of Landlock

    @property
    def seen_scratch(self) -> Path:
        """The path of the scratch folder inside the worker."""
        return Path(namespaces.SCRATCH) if self.covers else self.scratch


def main(ends: Ends, confinement: Confinement, *, ahead: bool) -> NoReturn:
    """Confine this process, do its job, and exit. Never return into the zygote's code."""
    failure = attempt(lambda: _confine(ends, confinement))
    if isinstance(failure, BaseException):
        os.write(ends.output, f"{type(failure).__name__}: {failure}".encode())
        os._exit(NOT_CONFINED)
    attempt(lambda: _serve(confinement.seen_scratch, ahead=ahead))
    os._exit(0)


def _confine(ends: Ends, confinement: Confinement) -> None:
    zygote = os.getppid()
    if confinement.covers:
        namespaces.cover_scratch(confinement.scratch)
        limits.drop_privileges(None)
    limits.end_with_parent()  # after the change of user, which would reset it
    if os.getppid() != zygote or zygote == 0:
        raise OSError("the zygote has ended")
    _keep_only(ends)
    os.chdir(confinement.home or confinement.seen_scratch)
    os.environ["HOME"] = os.environ["TMPDIR"] = str(confinement.seen_scratch)
    stand_by()
    if "limits" in confinement.layers:
        limits.restrict(confinement.limits, own_user=confinement.own_user)
    if ends.rules is not None:
        landlock.restrict(_RULES)
        os.close(_RULES)
    if confinement.filter is not None:
        confinement.filter.restrict()


def _keep_only(ends: Ends) -> None:
    os.dup2(ends.null, 0)
    os.dup2(ends.output, 1)
    os.dup2(ends.output, 2)
    os.dup2(ends.channel, _CHANNEL)
    if ends.rules is not None:
        os.dup2(ends.rules, _RULES)
    os.closerange(_RULES + (ends.rules is not None), resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _serve(scratch: Path, *, ahead: bool) -> None:
    gc.enable()
    channel = Channel(_CHANNEL, _thread.allocate_lock())
    if ahead:
        rehearse(channel)
    channel.say({"kind": "ready"})
    job = channel.hear()
    if job is None:
        return
    if job["kind"] == "attempts":
        attempts.serve(job, channel, scratch)
        return
    if job["kind"] == "kept":
        serve_calls(job, channel, scratch)
        return
    reply = perform(job, channel, scratch)
    attempt(sys.stdout.flush)
    attempt(sys.stderr.flush)
    os.close(1)
    os.close(2)
    channel.reply(reply, job.get("result"))
    channel.close()
    _LINGER(_LINGER_S)
