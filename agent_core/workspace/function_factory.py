"""Builds the function service of a workspace and the client of the sandbox.

Each part is imported and built on first use, so that commands that only read need just the store and the registry.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent_core.base.clock import Clock
from agent_core.base.errors import SettingsError
from agent_core.base.late import LateModule
from agent_core.functions.service.change_executor import only_writer
from agent_core.functions.service.function_service import FunctionService, ServiceParts
from agent_core.registry.registry import Registry, Snapshot
from agent_core.registry.source import OF_THE_PROGRAM
from agent_core.storage import Store, prepare_state_dir

from . import scaffold

if TYPE_CHECKING:
    from agent_core.access import broker
    from agent_core.access import grants as access_grants
    from agent_core.access import packages as environments
    from agent_core.access.grants import GrantStore
    from agent_core.access.grants.approval import ApprovalQueue
    from agent_core.access.secrets import session, source
    from agent_core.base.settings import Settings
    from agent_core.functions import gate as gates
    from agent_core.functions import sandbox_client as clients
    from agent_core.functions import search as function_search
    from agent_core.functions.debug import Debugger
    from agent_core.functions.gate import Gate
    from agent_core.functions.mcp import library as foreign_library
    from agent_core.functions.mcp.library import ForeignFunction
    from agent_core.functions.sandbox_client import SandboxClient
    from agent_core.functions.search import FunctionSearch
    from agent_core.functions.service import grant_service
    from agent_core.functions.service.grant_service import GrantService
    from agent_core.runtime import host_functions, programs
    from sandbox import Sandbox

    from . import agent_files
    from .model_opener import ModelOpener
else:
    broker = LateModule("agent_core.access.broker")
    access_grants = LateModule("agent_core.access.grants")
    environments = LateModule("agent_core.access.packages")
    session = LateModule("agent_core.access.secrets.session")
    source = LateModule("agent_core.access.secrets.source")
    gates = LateModule("agent_core.functions.gate")
    clients = LateModule("agent_core.functions.sandbox_client")
    function_search = LateModule("agent_core.functions.search")
    foreign_library = LateModule("agent_core.functions.mcp.library")
    grant_service = LateModule("agent_core.functions.service.grant_service")
    host_functions = LateModule("agent_core.runtime.host_functions")
    programs = LateModule("agent_core.runtime.programs")
    agent_files = LateModule("agent_core.workspace.agent_files")

_SERVERS = "mcp.toml"


def sandbox_client(
    root: Path,
    settings: "Settings",
    environment: Mapping[str, str] | None,
    debugger: "Debugger | None",
    shared: "Sandbox | None",
    on_status: Callable[[str], None] | None = None,
) -> "SandboxClient":
    """Return the client of the sandbox, with the grants of calls; `shared` is a started sandbox. Logs hide secrets."""
    session.mask_logs()
    state = prepare_state_dir(root)
    secrets = source.Secrets(root, environment)
    return clients.SandboxClient(
        settings.sandbox,
        settings.turn.parallel,
        guarded=clients.guarded_in(root),
        secrets=secrets,
        foreign=foreign_library.ForeignLibrary(root, secrets),
        broker=broker.Broker(note=broker.RequestLog(state, session.REVEALED.clean, Clock().now)),
        debugger=debugger,
        shared=shared,
        on_status=on_status,
    )


def function_service(
    root: Path,
    settings: "Settings",
    store: Store,
    sandbox: "Callable[[], SandboxClient]",
    queue: "ApprovalQueue",
    models: "Callable[[], ModelOpener] | None" = None,
    on_status: Callable[[str], None] | None = None,
) -> FunctionService:
    """Return the function service of a workspace with its gate; `models` read functions and search them by meaning."""
    registry, module_bytes = Registry(Snapshot.empty(OF_THE_PROGRAM)), settings.gate.module_kib << 10
    alone = partial(only_writer, prepare_state_dir(root))
    if settings.gate.fixes_off and (unknown := sorted({*settings.gate.fixes_off} - gates.FIXES)):
        fix = f"Known are: {', '.join(sorted(gates.FIXES))}."
        raise SettingsError(f"`gate.fixes_off` names `{unknown[0]}`, which is not a fix.", fix=fix)

    @cache
    def book() -> "GrantStore":
        return access_grants.GrantStore(root, store, alone)

    @cache
    def grants() -> "GrantService":
        client, listed = sandbox(), settings.sandbox.packages
        trials = grant_service.ImportTrials(client, client.limits)
        environment = environments.Environment(
            root, alone, trials, listed, settings.grants.packages_mib, tell=on_status
        )
        packages = grant_service.PackageGrants(environment, book())
        reach = access_grants.AccessResolver(root, environment.folders, client.secrets)
        granting = grant_service.GrantService(packages, reach, settings.grants, client.limits, listed, queue)
        granting.foreign = lambda: frozenset(foreign())
        return granting

    def foreign() -> "Mapping[str, ForeignFunction]":
        if not (root / _SERVERS).exists():
            return {}
        library = sandbox().foreign
        return library.functions() if library else {}

    @cache
    def search() -> "FunctionSearch":
        joined = foreign_library.JoinedFunctions(registry.snapshot, lambda: sandbox().foreign)
        return function_search.FunctionSearch(models().function_embedder if models else None, store, joined.snapshot)

    @cache
    def gate() -> "Gate":
        client, reader = sandbox(), models().reader if models else None
        rules = gates.Rules(
            candidate_bytes=settings.gate.candidate_kib << 10,
            module_bytes=settings.gate.module_kib << 10,
            strict=settings.gate.strict,
            off=frozenset(settings.gate.fixes_off if settings.gate.fixes else "*"),
            packages=settings.sandbox.packages,
            reserved=OF_THE_PROGRAM,
        )
        return gates.Gate(client, limits=client.limits, rules=rules, reader=reader, search=search())

    def hosted() -> Mapping[str, tuple[str, ...]]:
        return host_functions.parameters()

    parts = ServiceParts(
        book=book,
        foreign=foreign,
        gate=gate,
        grants=grants,
        hosted=hosted,
        maker=lambda: models().maker if models else None,
        mender=lambda: models().mender if models else None,
        file_patterns=lambda: agent_files.patterns_in_files(root),
        repeated=lambda: programs.repeated_programs(store),
        sandbox=sandbox,
        search=search,
        starters=scaffold.functions,
    )
    return FunctionService(root, store, registry, parts, module_bytes=module_bytes, standing=settings.standing)
