# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
"""importing by names that climb, by paths that lead out, by other finders"""

import importlib
import importlib.util
import sys
import zipimport


def a_module_of_the_folder_of_secrets(self, world):
    """secret | namespaces landlock"""
    return (
        importlib.machinery.SourceFileLoader("outside", world["folder"] + "/outside.py")
        .load_module()
        .SECRET
    )


def from_an_archive(self, world):
    """secret | namespaces landlock"""
    return zipimport.zipimporter(world["folder"] + "/outside.zip").load_module("packed").SECRET


def into_the_path_of_the_functions(self, world):
    """secret | namespaces landlock | ahead: there is no call yet that reports or asks"""
    sys.modules["functions"].__path__.append(world["folder"])
    finder = importlib.machinery.PathFinder.find_spec("functions.outside", [world["folder"]])
    if finder is None:
        raise ImportError("it is not seen")
    module = importlib.util.module_from_spec(finder)
    finder.loader.exec_module(module)
    return module.SECRET


def by_running_it(self, world):
    """secret | namespaces landlock"""
    import runpy

    return runpy.run_path(world["folder"] + "/outside.py")["SECRET"]


def the_host_program(self, world):
    """said: it is this repository | namespaces landlock"""
    sys.path.insert(0, world["repository"])
    return importlib.import_module("agent_core").__name__[:0] + world["mark"]


def what_is_installed_for_others(self, world):
    """said: it is what runs these tests | namespaces landlock"""
    sys.path.insert(0, world["packages"])
    return importlib.import_module(world["package"]).__name__[:0] + world["mark"]


def _asked(self, name):
    answer = self._channel.ask({"kind": "module", "module": name})
    source = self._channel.ask({"kind": "source", "module": name})
    return [answer["kind"], source.get("text")]


def a_name_that_climbs(self, world):
    """apart: a name is a key in the host and never a path, so that there is no layer to take away

    | | ahead: there is no call yet that reports or asks"""
    return _asked(self, "../../../../../../../.." + world["folder"] + "/outside")


def a_name_that_is_a_path(self, world):
    """apart: a name is a key in the host and never a path, so that there is no layer to take away

    | | ahead: there is no call yet that reports or asks"""
    return _asked(self, world["folder"] + "/outside.py")


def a_name_that_climbs_by_dots(self, world):
    """apart: a name is a key in the host and never a path, so that there is no layer to take away

    | | ahead: there is no call yet that reports or asks"""
    return [
        _asked(self, name)
        for name in ("..outside", "...", "", ".", "__init__", "functions", "..agent_core.cage")
    ]


def a_name_with_an_end_in_it(self, world):
    """apart: a name is a key in the host and never a path, so that there is no layer to take away

    | | ahead: there is no call yet that reports or asks"""
    return [
        _asked(self, name)
        for name in ("outside\0", "outside\n", "\x1b[2J", "ｏｕｔｓｉｄｅ", "out\u202eside")
    ]


def a_name_without_end(self, world):
    """apart: a name is a key in the host and never a path, so that there is no layer to take away

    | | ahead: there is no call yet that reports or asks"""
    return _asked(self, "a." * 5000)


def import_by_a_name_that_climbs(self, world):
    """apart: a name is a key in the host and never a path, so that there is no layer to take away

    | | ahead: there is no call yet that reports or asks"""
    return str(importlib.import_module("functions...outside")) + world["mark"]


def say_what_another_module_is(self, world):
    """apart: the host keeps code that a worker compiled which ran no line of it, and hears none of this

    | | ahead: there is no call yet that reports or asks"""
    self._channel.say(
        {
            "kind": "code",
            "module": "honest",
            "code": "",
            "path": "functions/honest.py",
            "imports": [],
        }
    )
    return world["mark"][:0]
