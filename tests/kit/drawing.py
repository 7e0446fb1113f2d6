"""How many examples a property is tried with: all of them where one searches (`make soak`), a third in the suite."""

from hypothesis import settings

STEADY, SEARCHING = "steady", "searching"


def drawn(examples: int) -> int:
    """The number for the profile that runs."""
    return examples if settings.get_current_profile_name() == SEARCHING else max(examples // 3, 5)
