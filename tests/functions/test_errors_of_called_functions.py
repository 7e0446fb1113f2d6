"""A function that calls another one by `self.call` gets its own error, of its class, and never one of permission."""

from tests.functions.support import Room
from tests.kit.sources import function_text

FAILING = "\n\n".join(
    [
        "import json\n\n\nclass Unknown(LookupError):\n    pass",
        function_text(
            "fail(how: str) -> int",
            "Fail in some way.\n\nArgs:\n    how: The way.",
            "if how == 'key':\n    return {'a': 1}['Betrag']\n"
            "if how == 'file':\n    raise FileNotFoundError(2, 'No such file', 'a.csv')\n"
            "if how == 'json':\n    return len(json.loads('{'))\n"
            "if how == 'text':\n    return len(b'\\xff'.decode())\n"
            "if how == 'own':\n    raise Unknown('K-17')\n"
            "if how == 'permission':\n    raise PermissionError('not yours')\n"
            "if how == 'object':\n    raise ValueError(object)\n"
            "if how == 'exit':\n    raise SystemExit('bye')\n"
            "return int(how)",
        ),
    ]
)
CATCHING = "\n\n".join(
    [
        "from functions.failing import Unknown\n",
        function_text(
            "kind_of(self, name: str, arguments: dict[str, object]) -> list[str]",
            "Call a function, and say which error arrived.\n\nArgs:\n    name: The function.\n    arguments: Its own.",
            "try:\n    self.call(name, **arguments)\n"
            "except KeyError as error:\n    return ['KeyError', str(error), error.args[0]]\n"
            "except UnicodeDecodeError as error:\n    return ['UnicodeDecodeError', error.reason]\n"
            "except FileNotFoundError as error:\n    return ['FileNotFoundError', str(error), str(error.errno)]\n"
            "except Unknown as error:\n    return ['Unknown', str(error)]\n"
            "except Exception as error:\n"
            "    return [type(error).__name__, type(error).__mro__[1].__name__, str(error)]\n"
            "return []",
        ),
        function_text(
            "through(self, how: str) -> int",
            "Call what fails.\n\nArgs:\n    how: The way.",
            'return self.call("fail", how=how)',
        ),
    ]
)


async def test_the_error_of_a_called_function_arrives_as_it_was_raised(here: Room) -> None:
    await here.save(FAILING, here.root / "functions" / "failing.py")
    await here.save(CATCHING, here.root / "functions" / "catching.py")
    says = {
        "key": ["KeyError", "'Betrag'", "Betrag"],
        "file": ["FileNotFoundError", "[Errno 2] No such file: 'a.csv'", "2"],
        "json": [
            "JSONDecodeError",
            "ValueError",
            "Expecting property name enclosed in double quotes: line 1 column 2",
        ],
        "text": ["UnicodeDecodeError", "invalid start byte"],
        "own": ["Unknown", "K-17"],
        "permission": ["PermissionError", "OSError", "not yours"],
        "object": ["ValueError", "ValueError", "<class 'object'>"],
        "exit": ["SystemExit", "Exception", "bye"],
        "x": ["ValueError", "Exception", "invalid literal for int() with base 10: 'x'"],
    }
    for how, expected in says.items():
        report = await here.shop.call("kind_of", {"name": "fail", "arguments": {"how": how}})
        got = report.value
        assert got is not None, (how, report)
        assert [part.startswith(text) for part, text in zip(got, expected, strict=True)] == [
            True
        ] * len(got), (
            how,
            got,
        )


async def test_a_call_that_cannot_be_made_is_no_matter_of_permission(here: Room) -> None:
    await here.save(FAILING, here.root / "functions" / "failing.py")
    await here.save(CATCHING, here.root / "functions" / "catching.py")
    wrong = await here.shop.call("kind_of", {"name": "fail", "arguments": {"what": "key"}})
    missing = await here.shop.call("kind_of", {"name": "nothing", "arguments": {}})
    assert (wrong.value[0], missing.value[:2]) == ("TypeError", ["LookupError", "Exception"])


async def test_an_error_says_in_which_function_it_was_raised(here: Room) -> None:
    await here.save(FAILING, here.root / "functions" / "failing.py")
    await here.save(CATCHING, here.root / "functions" / "catching.py")
    error = (await here.shop.call("through", {"how": "key"})).error
    assert error is not None
    assert error.type == "KeyError"
    assert error.message.splitlines()[0] == "'Betrag'"
    assert "(raised in `fail`, at functions/failing.py:" in error.message
    assert "return {'a': 1}['Betrag'])" in error.message
