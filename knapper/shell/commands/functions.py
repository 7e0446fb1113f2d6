"""`knapper functions`: what its group has, and what needs this terminal: a check of files, a grant."""

from typing import TYPE_CHECKING, Any

import click

from agent_core.base.errors import UsageError
from agent_core.base.late import LateModule
from agent_core.operations.commands.functions import add_kinds, functions
from agent_core.operations.functions import FunctionName
from agent_core.operations.verb import CHANGED, Door, verb
from agent_core.views.result import Result
from agent_core.views.styled_lines import line

from .checking import check

if TYPE_CHECKING:
    from agent_core.operations import views
    from agent_core.views import grant_question
else:
    grant_question = LateModule("agent_core.views.grant_question")
    views = LateModule("agent_core.operations.views")


@verb(functions)
@add_kinds
@click.option("-y", "--yes", "is_sure", is_flag=True, help="Do not ask.")
async def grant(door: Door, name: FunctionName, *, is_sure: bool, **options: Any) -> Result:
    """Grant a function more access. Without options: all that it, or its rejected candidate, still needs."""
    from agent_core.access.grants.approval import QuestionChanged
    from agent_core.access.secrets import Secrets
    from agent_core.functions.service.plan import Given
    from knapper.terminal.deciding import agrees

    grants, result = door.functions.grants, None
    typed = grants.wanted(options)
    while result is None:
        question = await grants.question(name, typed)
        if not question.missing and (lifted := await grants.lift(name)):
            return Result(lifted, grant_question.lifted_lines(name, lifted))
        if not question.missing:
            raise UsageError(
                f"`{name}` has all of it already.", fix="See: knapper functions grants"
            )
        if not is_sure and not await agrees(question, Secrets(door.workspace.root)):
            return Result(None, aside=[line(("dim", "Nothing was granted."))], code=1)
        try:
            result = await grants.agree(question, typed)
        except QuestionChanged:
            door.show([CHANGED])
    if isinstance(result, Given):
        return Result(result, grant_question.given_lines(result))
    return views.judged(result, door)


functions.add_command(check)
