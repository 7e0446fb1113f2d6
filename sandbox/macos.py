"""The profile for sandbox-exec on macOS, as a pure function of a plan. It is written and reviewed, but never run.

Nothing calls it: on macOS `Sandbox.start` refuses, until a zygote of its own stands under this profile and the
self-test passes there. docs/platforms.md has the review: each line against the attempts that it stops or lets
through. A profile cannot be tightened once it is on, so it is one for the zygote and its workers, with one scratch.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from .plan import ZygotePlan

_SYSTEM: Final = ("/usr/lib", "/System/Library", "/System/Volumes/Preboot/Cryptexes/OS")  # what the loader maps
_DEVICES: Final = ("/dev/null", "/dev/random", "/dev/urandom")
_NUMBERS: Final = ("hw.activecpu", "hw.logicalcpu", "hw.ncpu", "hw.pagesize", "hw.pagesize_compat", "kern.argmax")
_NEVER_WRITTEN: Final = (
    "file-link",
    "file-write-flags",
    "file-write-mode",
    "file-write-owner",
    "file-write-setugid",
    "file-write-times",
    "file-write-xattr",
)
_ODD: Final = ("SYMLINK", "SOCKET", "FIFO", "CHARACTER-DEVICE", "BLOCK-DEVICE")


def profile(plan: ZygotePlan, interpreter: str) -> str:
    """Return the text of the profile. Raise ValueError if a path cannot be written in one.

    The last rule that matches decides, so what is taken back stands after what is allowed.
    """
    access = plan.access
    library = (*plan.readable, *access.folders)
    scratch = (plan.scratch_folder,)
    return "\n".join(
        [
            "(version 1)",
            "(deny default)",
            _rule("allow", "process-exec", ("literal", (interpreter,))),  # by sandbox-exec, and never another program
            "(allow process-fork)",
            "(allow signal (target self))",
            _rule("allow", "sysctl-read", ("sysctl-name", _NUMBERS)),
            _rule("allow", "file-read-metadata", ("literal", _ways_to((*library, *access.paths, *scratch)))),
            _rule("allow", "file-read*", ("subpath", (*_SYSTEM, *library)), ("literal", (interpreter,))),
            _rule("allow", "file-map-executable", ("subpath", (*_SYSTEM, *library)), ("literal", (interpreter,))),
            _rule("allow", "file-read*", ("subpath", (*access.readable, *access.writable, *scratch))),
            _rule("allow", "file-write*", ("subpath", (*access.writable, *scratch))),
            _rule("allow", "file-read-data file-write-data", ("literal", _DEVICES[:1])),
            _rule("allow", "file-read-data", ("literal", _DEVICES[1:])),
            *_taken_back(plan),
            "",
        ]
    )


def _taken_back(plan: ZygotePlan) -> Iterator[str]:
    yield f"(deny {' '.join(_NEVER_WRITTEN)})"
    yield f"(deny file-write-create {' '.join(f'(vnode-type {kind})' for kind in _ODD)})"
    if plan.guarded:
        yield _rule("deny", "file-write*", ("subpath", plan.guarded))
    yield _rule("deny", "file-map-executable", ("subpath", (*plan.access.paths, plan.scratch_folder)))


def _rule(verdict: str, operations: str, *filters: tuple[str, Sequence[str]]) -> str:
    listed = [f"({kind} {_quoted(item)})" for kind, items in filters for item in dict.fromkeys(items)]
    return f"({verdict} {operations}\n  " + "\n  ".join(listed) + ")"


def _quoted(text: str) -> str:
    if not text.isprintable() or not text:
        raise ValueError(f"{text!r} cannot be written in a profile")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _ways_to(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the folders on the way to these paths, in which only names may be looked up."""
    return tuple(dict.fromkeys(str(above) for path in paths for above in reversed(Path(path).parents)))
