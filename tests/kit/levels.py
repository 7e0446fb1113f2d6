"""The sandbox level for tests, from `KNAPPER_SANDBOX_LEVEL` or the strongest one available here.

Tests that need another level are skipped and counted at the end.
"""

import os
import shutil
import subprocess
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import pytest

from agent_core.base.extensions import LEVELS, offers
from agent_core.base.user_folders import data_folder
from sandbox import Sandbox
from sandbox.beside import LevelsBeside

STORE: Final[Path] = (
    data_folder() / "portable"
)  # the user's own folder: building a component takes half a minute
BESIDE: Final = LevelsBeside(partial(offers, LEVELS), STORE.parent)
_SETTING = "KNAPPER_SANDBOX_LEVEL"


def _chosen() -> Any:  # one of the setting's values
    """Return the level for all tests: the forced one, or `portable` if there is no other."""
    if _SETTING not in os.environ and not _has_landlock() and level_here() in ("portable", "none"):
        # Also for subprocesses and the xdist workers, and a yes to one wall: the suite's functions are from here.
        os.environ[_SETTING] = "portable"
        level_here.cache_clear()
        if level_here() == "none":
            del os.environ[_SETTING]
    if os.environ.get(_SETTING) == "portable" and "PYTEST_XDIST_WORKER" not in os.environ:
        level_here()  # once, before the xdist workers start, so that a build does not count toward a test's time
    return os.environ.get(_SETTING, "auto")


def _has_landlock() -> bool:
    if sys.platform != "linux":
        return False
    from sandbox.confine import landlock  # other platforms do not have this library

    try:
        return landlock.version() > 0
    except OSError:
        return False


@cache
def level_here() -> str:
    """Return the level of this machine, found once by starting a sandbox in a subprocess; `none` if no level works."""
    environment = {_SETTING: "auto", **os.environ, "PYTEST_XDIST_WORKER": "none"}
    done = subprocess.run(
        [sys.executable, "-c", _START], env=environment, capture_output=True, text=True, cwd=_REPOSITORY,
        timeout=1300, check=True,
    )  # fmt: skip
    return done.stdout.strip()


_REPOSITORY: Final = Path(__file__).parents[2]
_START: Final = """
import asyncio
from sandbox import SandboxUnavailable
from tests.kit.levels import start

async def level():
    try:
        async with await start(packages=()) as sandbox:
            return sandbox.level
    except SandboxUnavailable:
        return "none"

print(asyncio.run(level()))
"""
FORCED: Final = _chosen()
IS_PORTABLE: Final = FORCED == "portable"


async def start(**options: Any) -> Sandbox:  # what Sandbox.start takes
    """Return a sandbox of the chosen level."""
    return await Sandbox.start(level=FORCED, beside=BESIDE, **options)


def lend(folder: Path, *, always: bool = False) -> None:
    """Link the built components into a user data folder that a test has to itself, where the level needs them."""
    if (
        (always or IS_PORTABLE) and STORE.is_dir() and folder.is_absolute()
    ):  # a program takes no other for a home
        place = folder / "knapper" / "portable"
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file in (*STORE.glob("*.compiled"), *STORE.glob("*.note")):
            if not (place / file.name).exists():
                try:
                    os.link(file, place / file.name)
                except OSError:  # the folders are on two file systems
                    shutil.copy2(file, place / file.name)


NOT_THERE: Final = {  # why a test does not apply to level `portable` → its files and functions
    "no process of its own is the worker": (
        "test_levels_and_refusals.py", "test_control_groups.py", "test_how_a_worker_is_seen.py",
        "test_in_a_container.py", "of_every_other_bench_become_rows_of_the_table[sandbox",
        "test_what_is_imported_ahead_was_not_imported_by_the_worker", "test_statistics_have_all_by_version_and_by_kind",
        "test_a_package_that_cannot_be_imported_ahead_is_imported_by_each_call",
        "test_a_package_that_keeps_open_from_its_import_still_asks_for_what_it_opens",
        "test_what_a_package_that_is_imported_ahead_keeps_is_never_anothers",
        "test_what_a_worker_uses.py", "test_what_a_package_leaves_running.py", "test_the_filter_by_branch.py",
        "test_calls_of_other_machines.py", "test_a_worker_has_the_zone_of_the_host_and_not_its_name",
        "test_a_worker_that_dies_is_killed_with_a_reason", "test_other_limits_get_a_worker_of_their_own",
        "test_a_function_sees_nothing_of_the_rehearsals_before_it", "test_a_zygote_that_dies_takes_its_calls_along",
        "test_a_worker_and_a_zygote_that_nobody_calls_end", "test_zygotes_for_other_needs_end",
        "test_a_call_that_waits_for_its_worker_does_not_lose_its_time",
    ),
    "there is no descriptor to forge frames by: `test_the_portable_level.py` has what there is": (
        "test_attempts_that_attack.py", "test_caps_on_claims.py", "test_requests_that_are_sent_ahead_hold_up_no_clock",
        "test_a_worker_that_says_more_than_its_reply_is_ended", "test_claims_that_are_sent_ahead_hold_up_no_clock",
        "test_a_claim_ends_its_call_where_it_is_too_long_altogether",
        "test_a_worker_can_refer_only_to_what_it_has_sent", "test_only_calls_of_functions_take_large_values",
        "test_a_value_that_is_no_json_fails_only_the_call_that_gets_it",
    ),
    "`ssl` and `bz2` are not there": (
        "test_a_certificate_that_proves_nothing_ends_the_fetch", "test_clients_that_are_routed.py",
        "test_a_no_is_a_permission_error_with_the_sentence_and_never_not_found",
    ),
    "pydantic is not there": (
        "test_a_type_that_only_an_import_can_tell_gets_its_schema_from_a_worker",
        "test_pydantic_models_are_built_and_taken_apart", "test_defaults_that_a_field_declares_are_filled_in",
        "test_nested_models_are_instances_with_their_aliases_and_come_back_as_json",
        "test_describe_gives_json_schema_of_what_syntax_cannot_decide",
        "test_a_module_without_pydantic_takes_a_type_that_only_pydantic_knows",
        "test_a_package_of_the_list_can_be_imported_and_others_cannot",
        "test_a_package_that_is_named_only_at_run_time_is_found_too",
        "test_a_check_that_is_gone_is_named_and_needs_a_yes_to_its_reason",
        "test_what_the_gate_had_no_time_for_is_not_shown_as_passed",
    ),
    "its clock shows UTC": ("test_a_zone_that_the_environment_names_is_kept",),
    "the host opens what was granted, not the kernel": (
        "test_files_within_reach.py", "test_a_granted_file_that_was_replaced_is_read_as_it_is_now",
    ),
    "a host that opens each file takes longer than a call may": (
        "test_one_that_is_hidden_deep_or_among_many_is_found_after_the_call",
        "test_a_folder_that_a_call_made_too_large_is_given_again_by_a_human_alone",
        "test_more_than_can_be_looked_through_at_all_is_told",
    ),
    "a folder for reading is never given whole": (
        "test_a_folder_for_reading_that_grew_too_large_is_granted_again_by_a_human_alone",
    ),
    "its `rmtree` and `glob` are those of Python 3.14": (
        "test_what_changes_a_folder_otherwise_names_the_grant_that_it_takes",
        "test_a_call_that_looks_into_a_folder_that_it_lacks_fails_and_says_so",
    ),
    "the level is chosen by a variable": (
        "test_settings_of_a_wrong_shape_are_a_settings_error[no-section]",
        "test_a_verb_that_reads_loads_nothing_that_judges_calls_or_asks",
        "test_a_verb_that_reads_the_state_alone_loads_no_workspace",
        "test_a_command_finds_all_that_it_imports_when_it_starts_from_nothing",
        "test_a_host_of_mcp_servers_starts_the_workspace_by_its_configuration",
        "test_a_function_is_listed_called_and_grown_in_a_turn",
        "test_the_editor_has_the_users_variables_but_no_secret_of_its_own_or_its_parents",
    ),
    "the component lies in the user's folder from the start": (
        "test_a_workspace_goes_on_under_the_new_name_without_asking_again",
        "test_functions_of_somebody_else_are_not_taken_over",
    ),
    "an error has the number of its own system": (
        "test_nothing_tells_what_is_absent_in_the_state_of_the_workspace_or_granted_to_others",
    ),
    "the bench measures at the level of the machine": (
        "test_a_player_that_calls_",
    ),
    "there are no threads": (
        "test_a_function_that_hides_a_no_is_reported_with_it", "[threads]",
        "test_what_takes_another_way_than_before_is_ended_and_says_where",
        "[a_pool_of_threads]", "[timers]", "test_a_thread_of_a_function_stops_as_its_main_one_does",
        "test_between_two_calls_a_worker_and_its_threads_stand_still",
    ),
    "since Python 3.12 a step stays at a comprehension once more": (
        "test_a_call_is_replayed_at_a_terminal_and_stops_where_it_raised_or_at_its_first_line",
    ),
    "a database opens no file in scratch": ("[a_database_in_scratch]", "[nowhere_to_write]"),
    "an expression that never ends is ended with its call": (
        "test_an_expression_without_end_is_stopped_alone",
        "test_keys_complete_recall_and_interrupt_and_ctrl_c_twice_ends_the_turn",
    ),
}  # fmt: skip


def reason_to_skip(nodeid: str) -> str | None:
    """Return why a test does not apply to the forced level, if it does not."""
    if not IS_PORTABLE:
        return None
    return next(
        (why for why, names in NOT_THERE.items() if any(name in nodeid for name in names)), None
    )


NEEDS = "needs another level than"
NO_LEVEL = "no level "
"""How the reason for a skip begins if the level under test is not available."""
NOTHING_RUNS = "The sandbox cannot be enforced here"
"""The program's message if a function must run and no level works."""


def skip_here(why: str, level: str = "") -> None:
    """Skip the test because the given level, or the level of this machine, does not support it."""
    pytest.skip(f"{NEEDS} {level or level_here()}: {why}")


def require_functions() -> None:
    """Skip the test if no level works."""
    if level_here() == "none":
        skip_here("a function has to run")


def require_landlock(why: str) -> None:
    """Skip the test if the kernel has no Landlock."""
    if level_here() not in ("full", "core"):
        skip_here(why)


def require_namespaces(why: str) -> None:
    """Skip the test if namespaces cannot be created."""
    if level_here() not in ("full", "apart"):
        skip_here(why)


def require_root(sandbox: Sandbox, why: str) -> None:
    """Skip the test if workers have no root of their own."""
    if not sandbox.layers["namespaces"]:
        skip_here(why, sandbox.level)


def require_imports_ahead(sandbox: Sandbox | None = None) -> None:
    """Skip the test if each call imports its own packages, in this sandbox or at the level of this machine."""
    if (sandbox.level if sandbox else level_here()) == "apart":
        skip_here("each call imports its packages", "apart")
