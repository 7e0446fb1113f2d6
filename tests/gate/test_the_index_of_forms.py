"""The index of forms follows the snapshot: changed functions are indexed again, within the available time."""

from agent_core.functions.gate.clones import Alike, sketch

from .support import ADD, snapshot_of

LIBRARY = snapshot_of(sums=ADD, other=ADD.replace("add", "twice_added").replace("a + b", "a + b + b"))
LEANING = "def one(a):\n    return two(a)\n\n\ndef two(a):\n    return a + {}\n"


async def test_a_function_that_leans_on_another_is_looked_at_again_with_it() -> None:
    same, _size = sketch("one", "def one(b):\n    return two(b)\n", LEANING.format(1))
    alike = Alike()
    for number, expected in ((1, ["one"]), (2, []), (1, ["one"])):
        await alike.see(snapshot_of(lib=LEANING.format(number)))
        assert alike.copies(same) == expected


async def test_an_index_for_which_time_is_up_goes_on_at_the_next_look() -> None:
    alike = Alike()
    assert [await alike.see(LIBRARY, 0) for _ in range(2)] == [1, 0]
    assert alike.copies(sketch("plus", ADD.replace("add", "plus"))[0]) == ["add"]
    assert await alike.see(snapshot_of()) == 0
    assert alike.copies(sketch("plus", ADD.replace("add", "plus"))[0]) == []
