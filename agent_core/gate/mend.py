"""Stage 2, mend: what is mechanical is put right, each repair shown as a diff and open to being switched off."""

from .draft import Draft


def mend(draft: Draft) -> Draft:
    """The draft with every repair that follows from its own text."""
    return draft
