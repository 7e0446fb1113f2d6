"""The question about an address that this user did not choose, asked at a terminal.

It is named by the workspace's file alone, or a server was found there that may be another user's.
"""

from pathlib import Path

from agent_core.access.grants.addresses import UnconfirmedAddress, confirm, shown
from agent_core.base.settings import FILE_NAME, Settings, load
from agent_core.workspace.doctor import check_address, check_texts

from .options import RunOptions
from .question import agreed, say
from .spans import Line, line


def ask_to_confirm(root: Path, settings: Settings, url: str) -> None:
    """Ask the user to confirm the address.

    Raises:
        UnconfirmedAddress: they did not.
    """
    say(address_lines(settings, url))
    if not agreed("Send it there from now on?"):
        raise UnconfirmedAddress(url)
    confirm(root, url)


def settle_address(options: RunOptions, *, can_ask: bool) -> None:
    """Confirm or reject an address that only the file names, before a conversation sends anything to it.

    Raises:
        UnconfirmedAddress: nobody can be asked, or the human said no.
    """
    settings = load(options.root, options.flags())
    try:
        check_address(settings, around=options.environment())
        if settings.memory.embedding == "endpoint":
            check_texts(settings, options.environment())
    except UnconfirmedAddress as error:
        if not can_ask:
            raise
        ask_to_confirm(options.root, settings, error.url)


def address_lines(settings: Settings, url: str) -> list[Line]:
    """Return what a yes means: which address, and everything that goes there."""
    is_named = settings.model.base_url == url
    head = f"{FILE_NAME} names " if is_named else "A server that may be another user's answers at "
    why = "The file may come from someone else." if is_named else "Its port belongs neither to you nor to root."
    embeds = settings.memory.embedding == "endpoint"
    texts = "; the texts that it remembers, to search them by meaning" if embeds else ""
    return [
        line(("warn", "! "), head, ("strong", shown(url))),
        line(f"  {why} This would be sent there: your messages, the conversation"),
        line(f"  and memory of your assistant, its functions and their results{texts};"),
        line(f"  and the key in {settings.model.key_variable}, if it is set."),
    ]
