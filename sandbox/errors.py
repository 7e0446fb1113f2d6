"""The error classes of the sandbox, independent of those of the host program.

SandboxError
├── SandboxUnavailable   a layer is missing, so agent-written code does not run
│   └── OneWall          a level beside this package would run it, with one wall, to which the user has not agreed
└── ProtocolError        a frame broke the rules; the worker that sent it is killed
"""

from pathlib import Path


class SandboxError(Exception):
    """The base class of the sandbox's errors. A failed call is not an error but an `Outcome`."""


class SandboxUnavailable(SandboxError):
    """The platform cannot enforce the sandbox; `missing` names the layers."""

    def __init__(self, message: str, missing: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.missing = missing


class OneWall(SandboxUnavailable):
    """Only one wall would confine function code. `was_refused` means that the user was asked and said no.

    The answer belongs into the `folder` of the level (`agree_to_one_wall`).
    """

    def __init__(
        self, message: str, missing: tuple[str, ...], *, was_refused: bool, folder: Path
    ) -> None:
        super().__init__(message, missing)
        self.was_refused = was_refused
        self.folder = folder


class ProtocolError(SandboxError):
    """A frame was too long, too deep, malformed or unexpected."""
