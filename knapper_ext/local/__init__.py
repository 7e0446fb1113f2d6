"""Models that run on this machine: `local` and `local/NAME`; the mode for small ones; larger embeddings.

`weights` has the files: which ones there are, and how one is fetched and verified. `server` starts a process, `engine`,
that runs one. `constrained` is the mode in which a model writes one JSON object a step, `conversation` what it is sent.
`embeddings` finds texts by meaning. `offered` is what the core is given, `models` lists, fetches and removes them,
`commands` is `knapper models`. Nothing is downloaded unasked, and only a file with the pinned hash is loaded.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from agent_core.base.extensions import NounBeside, imported_by_call

if TYPE_CHECKING:
    from agent_core.memory.embedding.models import MakeEmbedder
    from agent_core.model.beside import OpenMode, OpenModels

MODELS: "Final[Mapping[str, OpenModels]]" = {
    "local": imported_by_call(f"{__name__}.offered:LocalModels")
}
MODES: "Final[Mapping[str, OpenMode]]" = {
    "constrained": imported_by_call(f"{__name__}.constrained:ConstrainedMode")
}
EMBEDDERS: "Final[Mapping[str, MakeEmbedder]]" = {
    name: imported_by_call(f"{__name__}.embeddings:{name}") for name in ("e5", "minilm")
}
COMMANDS: Final[Mapping[str, NounBeside]] = {
    "models": NounBeside("Start", "local models: list, fetch", f"{__name__}.commands:models")
}
