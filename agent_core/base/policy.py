"""The policy of a turn: one value, made when the turn begins, which alone decides what is asked and what grows.

It travels with the message that begins the turn and stands in the turn's journal. What narrows may come from anywhere;
what widens comes from this user alone.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

from .records import asdict, dataclass, replace

Growth: TypeAlias = Literal["off", "ask", "on"]
"""Whether agents make and change functions, from the narrowest on."""
GROWTHS: Final[tuple[Growth, ...]] = get_args(Growth)


@dataclass(frozen=True, slots=True)
class Policy:
    """What is asked and grown in a turn.

    `growth`: nothing grows and nothing is offered for it (`off`), a person joins each change (`ask`), or what passes
    the gate joins (`on`). If it does not `ask`, whatever needs an approval is refused.
    """

    growth: Growth = "on"
    asks: bool = True

    def narrowed(self, other: "Policy") -> "Policy":
        """Return this policy without what the other does not allow."""
        return replace(
            self,
            growth=min(self.growth, other.growth, key=GROWTHS.index),
            asks=self.asks and other.asks,
        )

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return its stored form."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Policy":  # Any: JSON
        """Return the policy of a stored form; what this version does not know is left out, or the narrowest."""
        growth = data.get("growth", "on")
        return cls(growth if growth in GROWTHS else GROWTHS[0], bool(data.get("asks", True)))


DEFAULT: Final = Policy()
