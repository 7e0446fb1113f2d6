"""The names of the program's own functions, listed without loading their modules, match the actual ones."""

from agent_core.registry.loader_names import OF_THE_PROGRAM
from agent_core.runtime import host_functions


def test_the_listed_names_are_those_of_the_program() -> None:
    assert {*OF_THE_PROGRAM} == {*host_functions.parameters()}
