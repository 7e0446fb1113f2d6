"""What was read from the place of a source."""

from agent_core.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Material:
    """The bytes of a source; `guess` helps to detect their kind."""

    data: bytes
    content_type: str = ""
    guess: str = ""
    notes: tuple[str, ...] = ()
