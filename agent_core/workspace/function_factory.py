"""Builds the functions of a workspace behind their gate, and the way to the sandbox."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from agent_core.access.broker import Broker, RequestLog
from agent_core.access.grants import AccessResolver, ApprovalQueue, GrantStore
from agent_core.access.packages import Environment
from agent_core.access.secrets import DISCLOSED, Secrets, shade_logs
from agent_core.base.clock import Clock
from agent_core.base.errors import SettingsError
from agent_core.base.settings import Settings
from agent_core.functions.debug import Debugger
from agent_core.functions.foreign.library import ForeignLibrary, JoinedFunctions
from agent_core.functions.gate import FIXES, Gate, Rules
from agent_core.functions.sandbox_client import SandboxClient, guarded_in
from agent_core.functions.search import FunctionSearch
from agent_core.functions.service import FunctionService
from agent_core.functions.service.change_executor import only_writer
from agent_core.functions.service.grant_service import GrantService
from agent_core.functions.service.package_grants import ImportTrials, PackageGrants
from agent_core.registry.registry import Registry
from agent_core.registry.snapshot import Snapshot
from agent_core.runtime import host_functions
from agent_core.storage import Store, prepare_state_dir
from sandbox import Sandbox

from . import scaffold
from .model_opener import ModelOpener


def sandbox_client(
    root: Path,
    settings: Settings,
    environment: Mapping[str, str] | None,
    debugger: Debugger | None,
    shared: Sandbox | None,
    on_status: Callable[[str], None] | None = None,
) -> SandboxClient:
    """Return the way to the sandbox, with what calls may reach; a started one may be shared. Logs hide its secrets."""
    shade_logs()
    state = prepare_state_dir(root)
    secrets = Secrets(root, environment)
    return SandboxClient(
        settings.sandbox,
        settings.turn.parallel,
        guarded=guarded_in(root),
        secrets=secrets,
        foreign=ForeignLibrary(root, secrets),
        broker=Broker(note=RequestLog(state, DISCLOSED.clean, Clock().now)),
        debugger=debugger,
        shared=shared,
        on_status=on_status,
    )


def function_service(
    root: Path,
    settings: Settings,
    store: Store,
    sandbox: SandboxClient,
    queue: ApprovalQueue,
    models: ModelOpener | None = None,
    on_status: Callable[[str], None] | None = None,
) -> FunctionService:
    """Return the functions of a workspace, behind the gate; `models` read and find functions by meaning."""
    reserved = host_functions.reserved()
    registry = Registry(Snapshot.empty(reserved))
    rules = _rules(settings, reserved)
    joined = JoinedFunctions(registry.snapshot, lambda: sandbox.foreign)
    finder = FunctionSearch(models.function_embedder if models else None, store, joined.snapshot)
    return FunctionService(
        root,
        store,
        registry,
        Gate(sandbox, limits=sandbox.limits, rules=rules, reader=models.reader if models else None, search=finder),
        sandbox,
        module_bytes=rules.module_bytes,
        standing=settings.standing,
        grants=_granting(root, settings, store, sandbox, queue, on_status),
        starters=scaffold.functions,
        hosted=host_functions.parameters(),
        search=finder,
        maker=models.maker if models else None,
        mender=models.mender if models else None,
    )


def _granting(
    root: Path,
    settings: Settings,
    store: Store,
    sandbox: SandboxClient,
    queue: ApprovalQueue,
    on_status: Callable[[str], None] | None,
) -> GrantService:
    alone = partial(only_writer, prepare_state_dir(root))
    listed, trials = settings.sandbox.packages, ImportTrials(sandbox, sandbox.limits)
    environment = Environment(root, alone, trials, listed, settings.grants.packages_mib, tell=on_status)
    packing = PackageGrants(environment, GrantStore(root, store, alone))
    reach = AccessResolver(root, environment.folders, sandbox.secrets)
    granting = GrantService(packing, reach, settings.grants, sandbox.limits, listed, queue)
    granting.foreign = partial(_foreign_names, sandbox)
    return granting


def _rules(settings: Settings, reserved: frozenset[str]) -> Rules:
    return Rules(
        candidate_bytes=settings.gate.candidate_kib << 10,
        module_bytes=settings.gate.module_kib << 10,
        strict=settings.gate.strict,
        off=_fixes_off(settings),
        packages=settings.sandbox.packages,
        reserved=reserved,
    )


def _foreign_names(sandbox: SandboxClient) -> frozenset[str]:
    return frozenset(sandbox.foreign.functions()) if sandbox.foreign else frozenset()


def _fixes_off(settings: Settings) -> frozenset[str]:
    unknown = sorted({*settings.gate.fixes_off} - FIXES)
    if unknown:
        fix = f"Known are: {', '.join(sorted(FIXES))}."
        raise SettingsError(f"`gate.fixes_off` names `{unknown[0]}`, which is not a fix.", fix=fix)
    return frozenset(settings.gate.fixes_off if settings.gate.fixes else "*")
