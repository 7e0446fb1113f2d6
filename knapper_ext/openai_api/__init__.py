"""The doors for clients of OpenAI's API: an agent is the model, its functions run here.

`chat_completions` answers at `/v1/chat/completions` and `/v1/responses`, `chat_threads` knows which conversation a
request continues, `openai_parameters` what each parameter does.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from agent_core.base.extensions import imported_by_call

if TYPE_CHECKING:
    from agent_core.api.http_door import OpenHttpDoor

DOORS: "Final[Mapping[str, OpenHttpDoor]]" = {
    "openai_api": imported_by_call(f"{__name__}.chat_completions:ChatDoor")
}
