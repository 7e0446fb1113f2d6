"""Questions about grants at a terminal, a line each."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent_core.access.secrets import Secrets
from agent_core.base.errors import UsageError
from agent_core.views.dialog import YES
from agent_core.views.grant_question import GrantDialog

from .dialog import SecretStore, TerminalAnswers, ask_in_lines, hidden_answer, say, set_secrets
from .progress import clear_status

if TYPE_CHECKING:
    from agent_core.access.grants import Approver, Decision, Question


def is_attended() -> bool:
    """Check whether a user can be asked: input and output must both be a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def decide(question: "Question", secret_store: SecretStore | None = None) -> "Decision":
    """Ask the user about grants, one line each. Ctrl-C ends the command; the end of input means no.

    After a yes, the values of secrets that are not set are asked for, if there is a store for them.
    """
    dialog, answers = GrantDialog(question), TerminalAnswers()
    clear_status()
    reply = await ask_in_lines(dialog, say, answers)
    say([dialog.ending(reply)])
    decision = dialog.decision(reply)
    if decision.answer != "no" and secret_store is not None:
        await set_secrets(
            question.unset, secret_store, lambda asked: hidden_answer(asked, answers), say
        )
    return decision


def decide_in(root: Path) -> "Approver":
    """Return the approver that asks the user about grants in a workspace."""
    return partial(decide, secret_store=Secrets(root))


async def agrees(question: "Question", secret_store: SecretStore | None = None) -> bool:
    """Show what would be granted and installed, page by page, and ask the user to confirm.

    Raises:
        UsageError: there is no terminal.
    """
    if not is_attended():
        raise UsageError(
            "There is no terminal for the question.", fix="Look at what it would get, then give -y."
        )
    answers = TerminalAnswers()
    is_yes = (await ask_in_lines(GrantDialog(question), say, answers)).letter == YES.letter
    if is_yes and secret_store is not None:
        await set_secrets(
            question.unset, secret_store, lambda asked: hidden_answer(asked, answers), say
        )
    return is_yes
