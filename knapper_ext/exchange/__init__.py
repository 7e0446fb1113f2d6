"""What comes from elsewhere and goes there: libraries, packages, agents of other programs, logs for code scanning.

`library` imports a library as its files are (`library_files`), `package_wrappers` wraps a package of the index,
`export` writes a package that works alone. `foreign_agents` reads the agents' files of MemGPT and Letta, and `sarif`
writes findings for code scanning. `commands` are `knapper functions import` and `export`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from agent_core.base.extensions import LogBeside, imported, imported_by_call

if TYPE_CHECKING:
    from agent_core.operations.operation import LoadVerb
    from agent_core.workspace.portable.others import ReadAgents

VERBS: "Final[Mapping[str, LoadVerb]]" = {
    "functions import": imported(f"{__name__}.commands:import_"),
    "functions export": imported(f"{__name__}.commands:export"),
}
LOGS: Final[Mapping[str, LogBeside]] = {
    "sarif": LogBeside(
        "Print a SARIF 2.1.0 log, for editors and code scanning.",
        imported_by_call(f"{__name__}.sarif:SarifLog"),
    )
}
AGENT_FILES: "Final[Mapping[str, ReadAgents]]" = {
    "MemGPT": imported_by_call(f"{__name__}.foreign_agents:agents_of_memgpt"),
    "Letta": imported_by_call(f"{__name__}.foreign_agents:agents_of_letta"),
}
