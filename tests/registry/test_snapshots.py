"""A snapshot is immutable, replaces one module at a time, and keeps what is good."""

from agent_core.registry.registry import Registry, RegistryChange, Snapshot, difference
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from tests.registry.support import codes, read


def snapshot_of(**modules: str) -> Snapshot:
    snapshot = Snapshot.empty(frozenset({"create_function"}))
    for module, text in modules.items():
        snapshot = snapshot.with_module(read(text, module))
    return snapshot


def test_a_snapshot_stays_as_it_is_when_the_next_one_is_made() -> None:
    before = snapshot_of(a="def f(): ...")
    after = before.with_module(read("def g(): ...", "b")).without_module("a")
    assert (list(before.functions), list(before.modules)) == (["f"], ["a"])
    assert (list(after.functions), list(after.modules)) == (["g"], ["b"])
    assert after.number > before.number


def test_replacing_a_module_leaves_the_others_untouched() -> None:
    before = snapshot_of(a="def f(): ...\ndef old(): ...", b="def g(): ...")
    after = before.with_module(read("def f(x: int): ...\ndef new(): ...", "a"))
    assert set(after.functions) == {"f", "g", "new"}
    assert after.functions["g"] is before.functions["g"]
    assert list(after.functions["f"].parameters["properties"]) == ["x"]
    assert list(
        snapshot_of(a="def f(): ...", b="def g(): ...")
        .with_module(read("def f(x): ...", "a"))
        .functions
    ) == [
        "f",
        "g",
    ]


def test_a_broken_save_keeps_the_last_good_version() -> None:
    before = snapshot_of(a="def f(): ...")
    after = before.with_module(read("def f(:", "a"))
    assert after.functions["f"] is before.functions["f"]
    assert after.modules["a"].text == "def f(): ..."
    assert codes(after.rejected) == ["syntax"]


def test_a_fixed_save_clears_the_rejection() -> None:
    broken = snapshot_of(a="def f(): ...").with_module(read("def f(:", "a"))
    assert broken.with_module(read("def f(x): ...", "a")).rejected == ()


def test_warnings_are_no_rejections_but_functions_left_out_are() -> None:
    snapshot = snapshot_of(a="def f(x): ...\ndef größe(x): ...")
    assert codes(snapshot.rejected) == ["function-name"]


def test_on_a_name_clash_the_first_stays_and_both_places_are_named() -> None:
    snapshot = snapshot_of(a="def f(): ...", b="\ndef f(x): ...\ndef g(): ...")
    assert (snapshot.functions["f"].module, set(snapshot.functions)) == ("a", {"f", "g"})
    (problem,) = snapshot.rejected
    assert problem.code == "name-clash"
    assert "functions/a.py:1" in problem.message
    assert str(problem.where) == "functions/b.py:2"


def test_the_holder_of_a_name_keeps_it_when_its_module_changes() -> None:
    snapshot = snapshot_of(a="def f(): ...", b="def f(x): ...").with_module(
        read("def f(z): ...", "a")
    )
    assert snapshot.functions["f"].module == "a"
    assert codes(snapshot.rejected) == ["name-clash"]


def test_a_built_in_name_cannot_be_taken() -> None:
    snapshot = snapshot_of(a="def create_function(): ...\ndef f(): ...")
    assert (list(snapshot.functions), codes(snapshot.rejected)) == (["f"], ["reserved-name"])


def test_two_files_of_one_module_are_a_clash() -> None:
    package = read_module(ModuleSource.of("web", "def g(): ...", "functions/web/__init__.py"))
    snapshot = snapshot_of(web="def f(): ...").with_module(package)
    assert (list(snapshot.functions), codes(snapshot.rejected)) == (["f"], ["module-clash"])
    assert "functions/web.py" in snapshot.rejected[0].message


def test_a_difference_names_what_the_model_would_notice() -> None:
    rows: list[tuple[str, dict[str, str], dict[str, str], RegistryChange]] = [
        ("loaded", {}, {"a": "def f(): ..."}, RegistryChange(loaded=("f",))),
        ("removed", {"a": "def f(): ..."}, {}, RegistryChange(removed=("f",))),
        (
            "signature",
            {"a": "def f(): ..."},
            {"a": "def f(x): ..."},
            RegistryChange(changed=("f",)),
        ),
        ("body", {"a": "def f(): ..."}, {"a": "def f(): pass"}, RegistryChange(changed=("f",))),
        ("moved-down", {"a": "def f(): ..."}, {"a": "\n\ndef f(): ..."}, RegistryChange()),
        (
            "moved-to-another-module",
            {"a": "def f(): ..."},
            {"b": "def f(): ..."},
            RegistryChange(changed=("f",)),
        ),
        (
            "type",
            {"a": "K = int\ndef f(x: K): ..."},
            {"a": "K = str\ndef f(x: K): ..."},
            RegistryChange(changed=("f",)),
        ),
    ]
    for case, before, after, change in rows:
        assert difference(snapshot_of(**before), snapshot_of(**after)) == change, case


def test_a_new_rejection_is_part_of_the_difference_once() -> None:
    good = snapshot_of(a="def f(): ...")
    broken = good.with_module(read("def f(:", "a"))
    assert codes(difference(good, broken).rejected) == ["syntax"]
    assert not difference(broken, broken.with_module(read("def f(:", "a")))


def test_listeners_hear_of_changes_and_of_nothing_else() -> None:
    registry = Registry()
    heard: list[RegistryChange] = []
    end = registry.subscribe(heard.append)
    registry.swap(snapshot_of(a="def f(): ..."), by="agent")
    registry.swap(snapshot_of(a="def f(): ..."))
    end()
    registry.swap(Snapshot.empty())
    assert heard == [RegistryChange(loaded=("f",), by="agent")]
    assert registry.snapshot().functions == {}
