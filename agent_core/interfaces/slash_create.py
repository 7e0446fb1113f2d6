"""`/create`: write a function manually in the user's editor; it is judged like any other."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from agent_core.base.errors import UsageError

from .by_hand import text_from_editor
from .catalogue import needed
from .conversation import Conversation
from .spans import line
from .verdicts import verdict_lines

_BEGUN: Final = '''\
def {name}(text: str) -> str:
    """Say here what it does.

    Args:
        text: What it is given.

    >>> {name}("")
    ''
    """
    return text
'''


async def _create(talk: Conversation, words: str) -> None:
    name, _, module = needed(words, "create").partition(" ")
    if not name.isidentifier():
        raise UsageError(f"{name} can be no function's name.", fix="Take letters, digits and _.")
    if name in talk.names():
        raise UsageError(f"There is a function {name} already.", fix=f"Type /edit {name}.")
    shop = talk.workspace.workshop
    pending = await shop.pending(name) or {}
    begun = str(pending.get("code") or _BEGUN.format(name=name))
    async with talk.aside():
        code = await text_from_editor(name, begun, suffix=".py")
    if code is None:
        talk.voice.lines([line(("dim", "Nothing was made: the text is as it was."))])
        return
    into = [module.strip() or str(pending.get("module") or "")]
    verdict = await shop.create(name, code, *filter(None, into), reason="written at the prompt")
    hint = line(("dim", f"  /create {name} opens it again; /pending lists rejected candidates."))
    talk.voice.lines([*verdict_lines(verdict), *([] if verdict["admitted"] else [hint])])


RUNS: Final[Mapping[str, Callable[[Conversation, str], Awaitable[None]]]] = {"create": _create}
