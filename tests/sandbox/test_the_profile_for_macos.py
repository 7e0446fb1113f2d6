"""The profile for sandbox-exec as text: it was never run, so every line of it is looked at."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox import Access, SandboxUnavailable
from sandbox.macos import profile
from sandbox.plan import LAYERS, ZygotePlan
from sandbox.starting import find_ground
from tests.attacks.rows import rows
from tests.attacks.world import REPOSITORY

PYTHON = "/opt/python/bin/python3.12"
PLAN = ZygotePlan(
    readable=("/opt/python/lib/python3.12",),
    hidden=(),
    packages={},
    preload=(),
    layers=LAYERS,
    slots=1,
    scratch=1 << 20,
    scratch_folder="/private/tmp/scratch",
    user=None,
    access=Access(
        readable=("/Users/me/data",),
        writable=("/Users/me/out",),
        packages=(("requests", "/Users/me/ws/.toolwright/env"),),
    ),
    guarded=("/Users/me/out/.git", "/Users/me/ws"),
)
PAGE = (REPOSITORY / "docs" / "platforms.md").read_text()
# verdict → operations, each reviewed in docs/platforms.md
ALLOWED = {
    "process-exec",
    "process-fork",
    "signal",
    "sysctl-read",
    "file-read-metadata",
    "file-read*",
    "file-map-executable",
    "file-write*",
    "file-read-data",
    "file-write-data",
}


def rules(plan: ZygotePlan = PLAN) -> list[tuple[str, list[str], str]]:
    """(verdict, operations, filters) in their order."""
    found = []
    for text in re.split(r"\n(?=\()", profile(plan, PYTHON).strip()):
        match = re.fullmatch(r"\((\w+) ([\w*\- 1]+?)\s*((?:\(.*\))*)\)", re.sub(r"\n\s*", "", text))
        assert match, text
        found.append((match[1], match[2].split(), match[3]))
    return found


def decided(operation: str, path: str, plan: ZygotePlan = PLAN) -> str:
    """What the rules say of a file operation: the last one that matches."""
    verdict = "none"
    for each, operations, filters in rules(plan):
        names = operation in operations or any(
            name[-1] == "*" and operation.startswith(name[:-1]) for name in operations
        )
        below = [base for base in re.findall(r'\(subpath "([^"]+)"\)', filters) if f"{path}/".startswith(f"{base}/")]
        if operations == ["default"] or (names and (not filters or below or f'(literal "{path}")' in filters)):
            verdict = each
    return verdict


def test_everything_is_denied_first_and_nothing_is_allowed_as_a_whole() -> None:
    found = rules()
    assert found[:2] == [("version", ["1"], ""), ("deny", ["default"], "")]
    assert {operation for verdict, operations, _f in found if verdict == "allow" for operation in operations} == ALLOWED
    bare = [operations for verdict, operations, filters in found if verdict == "allow" and not filters]
    assert bare == [["process-fork"]]


@pytest.mark.parametrize(
    ("operation", "path", "verdict"),
    [
        ("file-read-data", "/opt/python/lib/python3.12/json/__init__.py", "allow"),
        ("file-read-data", "/Users/me/ws/.toolwright/env/requests/api.py", "allow"),
        ("file-read-data", "/Users/me/data/a.csv", "allow"),
        ("file-read-data", "/Users/me/.ssh/id_ed25519", "deny"),
        ("file-read-data", "/etc/passwd", "deny"),
        ("file-read-data", "/private/tmp/scratch-2/x", "deny"),
        ("file-read-data", "/Users", "deny"),
        ("file-read-metadata", "/Users", "allow"),
        ("file-read-metadata", "/Users/you", "deny"),
        ("file-write-data", "/private/tmp/scratch/x", "allow"),
        ("file-write-data", "/Users/me/out/x", "allow"),
        ("file-write-data", "/Users/me/out/.git/config", "deny"),
        ("file-write-data", "/Users/me/data/a.csv", "deny"),
        ("file-write-data", "/opt/python/lib/python3.12/json/__init__.py", "deny"),
        ("file-write-data", "/Users/me/ws/functions/a.py", "deny"),
        ("file-write-mode", "/private/tmp/scratch/x", "deny"),
        ("file-write-xattr", "/Users/me/out/x", "deny"),
        ("file-link", "/private/tmp/scratch/x", "deny"),
        ("file-map-executable", "/opt/python/lib/python3.12/lib-dynload/_json.so", "allow"),
        ("file-map-executable", "/private/tmp/scratch/mine.so", "deny"),
        ("file-map-executable", "/Users/me/out/mine.so", "deny"),
        ("process-exec", PYTHON, "allow"),
        ("process-exec", "/bin/sh", "deny"),
        ("network-outbound", "/var/run/mDNSResponder", "deny"),
        ("mach-lookup", "com.apple.logd", "deny"),
        ("process-info-pidinfo", "1", "deny"),
    ],
)
def test_the_last_rule_that_matches_decides_as_it_should(operation: str, path: str, verdict: str) -> None:
    assert decided(operation, path) == verdict


def test_links_sockets_pipes_and_devices_cannot_be_made() -> None:
    (made,) = [filters for verdict, operations, filters in rules() if operations == ["file-write-create"]]
    assert set(re.findall(r"vnode-type ([A-Z-]+)", made)) == {
        "SYMLINK",
        "SOCKET",
        "FIFO",
        "CHARACTER-DEVICE",
        "BLOCK-DEVICE",
    }


def test_without_grants_only_scratch_can_be_written() -> None:
    plan = replace(PLAN, access=Access(), guarded=())
    writes = [
        filters for verdict, operations, filters in rules(plan) if verdict == "allow" and "file-write*" in operations
    ]
    assert writes == ['(subpath "/private/tmp/scratch")']


def test_a_path_cannot_say_anything_else_in_the_profile() -> None:
    sly = replace(PLAN, scratch_folder='/tmp/a") (allow default) (subpath "/\\')
    assert '(subpath "/tmp/a\\") (allow default) (subpath \\"/\\\\")' in profile(sly, PYTHON)
    for bad in ("/tmp/a\n(allow default)", "/tmp/\0", ""):
        with pytest.raises(ValueError, match="cannot be written"):
            profile(replace(PLAN, scratch_folder=bad), PYTHON)


def test_the_page_reviews_every_rule_and_every_family_of_attempts() -> None:
    review = PAGE.partition("## The macOS profile, reviewed")[2]
    assert {operation for operation in ALLOWED if f"`{operation}" not in review} == set()
    assert {row.family for row in rows() if f"`{row.family}`" not in review} == set()
    assert "**never run**" in PAGE


async def test_no_start_puts_it_on_however_the_profile_looks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(SandboxUnavailable, match="never run"):
        await find_ground({}, 1, str(tmp_path), override=False)
    users = [path.name for path in (REPOSITORY / "sandbox").rglob("*.py") if "macos" in path.read_text()]
    assert users == []
