"""The level at which tests run function code: by `KNAPPER_SANDBOX_LEVEL`, as the program has it, or the strongest."""

import os
from pathlib import Path
from typing import Any, Final

from agent_core.base.user_folders import data_folder
from sandbox import Sandbox

FORCED: Final[Any] = os.environ.get("KNAPPER_SANDBOX_LEVEL", "auto")  # one of the setting's values
STORE: Final[Path] = data_folder() / "portable"  # the user's own: to build a component takes half a minute
IS_PORTABLE: Final = FORCED == "portable"


async def start(**options: Any) -> Sandbox:  # what Sandbox.start takes
    """Return a sandbox of that level."""
    return await Sandbox.start(level=FORCED, store=STORE, **options)
