"""Functions call functions, by plain names and by `self.call`: examples prove it, and a yes says what it repeats."""

from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import standings


def made(name: str, code: str, module: str = "grown") -> Wanted:
    """Return the wish for a new function."""
    given = {"function_name": name, "function_code_with_docstring": code, "module_name": module}
    return Wanted("create_function", given)


READ = r'''def read_it(path: str) -> str:
    """Read a text file as it is.

    Args:
        path: The file.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/a.txt"
    >>> _ = open(path, "w").write("one\\ntwo\\n")
    >>> read_it(path)
    'one\\ntwo\\n'
    >>> _ = open(path + "2", "w").write("three")
    >>> read_it(path + "2")
    'three'
    """
    with open(path) as file:
        return file.read()
'''
COUNT = r'''def count_lines_of(self, path: str) -> int:
    """Count the lines of a text file.

    Args:
        path: The file.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/a.txt"
    >>> _ = open(path, "w").write("one\\ntwo\\n")
    >>> count_lines_of(path)
    2
    >>> _ = open(path + "2", "w").write("")
    >>> count_lines_of(path + "2")
    0
    """
    return len(self.call("read_it", path=path).splitlines())
'''


async def test_an_example_that_writes_a_file_proves_a_function_that_has_it_read(
    at_desk: OpenDesk,
) -> None:
    calls = [made("read_it", READ, "files2"), made("count_lines_of", COUNT, "files3")]
    desk = await at_desk([*map(Ask, calls), Repeat(Say("So."))])
    assert standings(await desk.say("Go.")) == ["trial", "trial"]
