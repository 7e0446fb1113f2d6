"""A function's scratch folder works like any folder of Linux, whether the kernel or the component provides it."""

from sandbox import FunctionCall, Job, Returned, Sandbox
from tests.sandbox.support import modules

FILES = modules(
    files="""
    import errno, os, pathlib, shutil, tempfile

    def do(self) -> dict[str, list[str]]:
        return {how: _done(self.scratch / how, way) for how, way in ways.items()}

    def _done(place, way):
        os.makedirs(place)
        os.chdir(place)
        os.makedirs("folder/inner")
        os.mkdir("empty")
        for name in ("file", "folder/inner/deep"):
            pathlib.Path(name).write_text("precious")
        return [_attempt(way), *sorted(str(path) for path in pathlib.Path(".").rglob("*"))]

    def _attempt(act):
        try:
            return str(act())
        except OSError as error:
            return errno.errorcode.get(error.errno, str(error))

    def _fill(file):
        with file:
            file.write("text")
            file.flush()
            return pathlib.Path(file.name).read_text() if isinstance(file.name, str) else file.name > 2

    def _made(suffix, mode):
        number, path = tempfile.mkstemp(suffix)
        with os.fdopen(number, mode) as file:
            file.write("text" if "b" not in mode else b"text")
        return (open(path).read(), os.remove(path))[0]

    def _descriptor(flags, act, path="file"):
        number = os.open(path, flags)
        try:
            return act(number)
        finally:
            os.close(number)

    ways = {
        "into itself": lambda: os.rename("folder", "folder/b"),
        "deep into itself": lambda: os.rename("folder", "folder/inner/b"),
        "to itself": lambda: os.rename("folder", "folder"),
        "over what is above": lambda: os.rename("folder/inner", "folder"),
        "file over folder": lambda: os.rename("file", "empty"),
        "folder over file": lambda: os.rename("empty", "file"),
        "folder over full": lambda: os.rename("empty", "folder"),
        "folder over empty": lambda: os.rename("folder", "empty"),
        "file over file": lambda: os.replace("file", "folder/inner/deep"),
        "a zone over a file": lambda: os.rename(_zone(), "file"),
        "mkstemp": lambda: [_made("", mode) for mode in ("w", "w+", "wb", "a", "r+")],
        "temporary": lambda: _fill(tempfile.NamedTemporaryFile("w")),
        "temporary for both": lambda: _fill(tempfile.NamedTemporaryFile("w+")),
        "too short": lambda: os.truncate("file", -1),
        "too short by number": lambda: _descriptor(os.O_RDWR, lambda number: os.ftruncate(number, -1)),
        "too short by file": lambda: open("file", "r+b", buffering=0).truncate(-1),
        "a folder cut": lambda: os.truncate("folder", 0),
        "cut without writing": lambda: _descriptor(os.O_RDONLY, lambda number: os.truncate(number, 0)),
        "written without writing": lambda: _descriptor(os.O_RDONLY, lambda number: os.write(number, b"x")),
        "read without reading": lambda: _descriptor(os.O_WRONLY, lambda number: os.read(number, 1)),
        "a zone cut": lambda: _descriptor(os.O_RDONLY | os.O_TRUNC, str, _zone()),
        "folder cut": lambda: _descriptor(os.O_RDONLY | os.O_TRUNC, str, "folder"),
        "a file as a folder": lambda: open("file/"),
        "a file within a file": lambda: open("file/x"),
        "a folder as a folder": lambda: os.listdir("folder/"),
        "by a missing folder": lambda: open("missing/../file"),
        "new by a missing folder": lambda: open("missing/../new", "w"),
        "by a folder": lambda: open("folder/../file").read(),
        "new by a folder": lambda: os.mkdir("folder/./../folder/new/"),
        "long": lambda: open("n" * 256, "w"),
        "as long as can be": lambda: open("n" * 255, "w").close() or os.remove("n" * 255),
        "bytes": lambda: sorted((one.name, one.path, one.is_dir()) for one in os.scandir(b"folder")),
    }

    def _zone():
        import zoneinfo
        return next(f"{path}/UTC" for path in zoneinfo.TZPATH if os.path.exists(f"{path}/UTC"))
    """
)
ALL = ["empty", "file", "folder", "folder/inner", "folder/inner/deep"]
ENDS = {
    "into itself": "EINVAL",
    "deep into itself": "EINVAL",
    "to itself": "None",
    "over what is above": "ENOTEMPTY",
    "file over folder": "EISDIR",
    "folder over file": "ENOTDIR",
    "folder over full": "ENOTEMPTY",
    "mkstemp": str(["text"] * 5),
    "temporary": "text",
    "temporary for both": "text",
    "too short by number": "EINVAL",
    "too short by file": "EINVAL",
    "written without writing": "EBADF",
    "read without reading": "EBADF",
    "folder cut": "EISDIR",
    "a file as a folder": "ENOTDIR",
    "a file within a file": "ENOTDIR",
    "a folder as a folder": "['inner']",
    "by a missing folder": "ENOENT",
    "new by a missing folder": "ENOENT",
    "by a folder": "precious",
    "long": "ENAMETOOLONG",
    "as long as can be": "None",
    "bytes": "[(b'inner', b'folder/inner', True)]",
}
LEAVES = {
    "folder over empty": ["empty", "empty/inner", "empty/inner/deep", "file"],
    "file over file": ["empty", "folder", "folder/inner", "folder/inner/deep"],
    "new by a folder": [*ALL, "folder/new"],
}
REFUSED = {"EACCES", "EXDEV", "EBADF", "EINVAL", "EISDIR", "EPERM", "EROFS"}


async def test_what_fails_on_linux_fails_and_takes_nothing_and_the_rest_works(
    sandbox: Sandbox,
) -> None:
    outcome = await sandbox.run(Job(FILES, "files", FunctionCall("do", {})))
    assert isinstance(outcome, Returned), outcome
    found = outcome.value
    for how, ended in ENDS.items():
        assert found.pop(how) == [ended, *ALL], how
    for how, left in LEAVES.items():
        assert found.pop(how) == ["None", *left], how
    assert found.keys() == {
        "a zone over a file",
        "a zone cut",
        "cut without writing",
        "too short",
        "a folder cut",
    }
    for how, (ended, *left) in found.items():
        assert (ended in REFUSED, left) == (True, ALL), how
