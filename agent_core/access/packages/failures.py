"""Package failures: from pip's output to a sentence."""

import re
import sys
from collections.abc import Iterable

from agent_core.base.errors import WorkspaceError
from agent_core.base.untrusted import fence, one_line

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
NO_PIP = f"Next: {one_line(sys.executable)} -m ensurepip"
# A part of pip's message that has been stable for years, and its meaning; the first match is reported.
_MEANINGS = (
    (
        r"No module named pip",
        "pip is not there for the Python that runs Knapper.",
        NO_PIP,
    ),
    (
        r"DO NOT MATCH THE HASHES",
        "A package is not the file with the approved hash, so nothing was installed.",
        "Find out why it changed. To accept the new file, remove its section from the lock.",
    ),
    (
        r"ResolutionImpossible|conflicting dependencies",
        "These packages cannot be installed together: {told}.",
        "Grant other versions.",
    ),
    (
        r"NewConnectionError|NameResolutionError|ConnectTimeout|Retrying \(|SSLError|ProxyError",
        "The package index that pip is configured for cannot be reached.",
        "Check the network or the configuration: pip config list",
    ),
    (
        r"No matching distribution found for (?P<what>\S+)",
        "There is no wheel of {what} for this Python and this machine: the name or the version is wrong, or it is"
        " published as source alone.",
        "Packages that would have to run a build of their own are never installed.",
    ),
    (
        r"No space left on device",
        "The disk is full.",
        "",
    ),
)


class PackagesError(WorkspaceError):
    """Error raised when packages cannot be resolved or installed; nothing of them was put in place."""

    code = "packages"


def meaning(output: Iterable[str]) -> PackagesError:
    """Return the error for pip's output before it failed."""
    lines = [line for line in output if line]
    text = "\n".join(lines)
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")] or lines[-1:]
    shown = fence(_CREDENTIALS.sub("", errors[0]), 300) if errors else "nothing"
    for pattern, template, fix in _MEANINGS:
        if match := re.search(pattern, text):
            subject = fence(match.groupdict().get("what") or "", 80)
            return PackagesError(template.format(told=shown, what=subject), fix=fix)
    return PackagesError(f"pip failed. It says {shown}.", fix="See: pip config list")
