"""The files of a library as modules of this workspace: each as its author wrote it, in a separate package.

Pure text transformations: imports between the files are rewritten for the new place, code for another agent is
translated, and functions that share a name are each defined under their module's name. Line numbers do not change.
"""

import ast
import gzip
import io
import keyword
import os
import re
import stat
import sys
import tarfile
import typing
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Final, NamedTuple

from agent_core.base import machine, syntax
from agent_core.base.errors import UsageError
from agent_core.base.plain_files import read_named
from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass, field, replace
from agent_core.functions.gate import Candidate
from agent_core.functions.gate.examples import with_example
from agent_core.functions.gate.read import write_escapes
from agent_core.functions.service.file_checks import parse_line
from agent_core.functions.service.memgpt_functions import adapt
from agent_core.registry.depends import ModuleParts
from agent_core.registry.function import Function
from agent_core.registry.module_edits import adding
from agent_core.registry.source import (
    FOLDER,
    ModuleSource,
    ParsedText,
    applied,
    bound_names,
    check_module_name,
    column_of,
    is_literal,
    module_of,
)
from agent_core.registry.tree import Definition, imported_module
from sandbox.wire.lines import lines_of

# Reads a library as texts: a `.py` file, a folder, a `.zip`, a `.tar` or `.tar.gz`. Nothing is unpacked to disk. An
# archive may be hostile: names that leave it, links, devices and encrypted members are reported and skipped, and sizes
# and counts are limited while reading, whatever its directory claims.

_ZIP_ENTRY: Final = b"PK\x01\x02"  # begins each entry of a zip's directory
_TAR_BLOCK: Final = 512
_TAR_HEADERS: Final = frozenset(
    {
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
    }
)
_MAX_HEADER: Final = 64 << 10  # bytes
_MAX_HEADERS: Final = 2 << 20  # bytes of all of them
_LEAST_HEADER: Final = 100  # bytes as which any counts
_MAX_DIGITS: Final = 8  # of a record's size, with the blank after it
_PIECE: Final = 64 << 10
_BROKEN = (
    OSError,
    EOFError,
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    NotImplementedError,
    RuntimeError,
    ValueError,
)


_PASSED_OVER = re.compile(
    r"(?:^|/)(?:tests?|docs|examples)/|(?:^|/)(?:tests?|test_[^/]*|[^/]*_test|conftest|setup|__main__)\.py$"
)
_PROMPT = re.compile(r"^\s*(?:>>>|\.\.\.) ")
_IMPORT_LINE = re.compile(r"from\s+[.\w]+\s+import\b")
_MAX_GIVEN = 8  # examples of a `.jsonl` line that are added to the docstring
_MAX_NAME = 64  # characters of a function's name


@dataclass(frozen=True, slots=True)
class LibraryLimits:
    """Limits on how much of a library is read."""

    members: int = 10_000
    file_bytes: int = 256 << 10
    text_bytes: int = 32 << 20
    archive_bytes: int = 64 << 20
    unpacked_bytes: int = 256 << 20


@dataclass(slots=True)
class Library:
    """The Python files of a library by their paths in it, and the problems of skipped members."""

    name: str
    base: str
    limits: LibraryLimits
    files: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    _bytes: int = 0
    _members: int = 0

    def refuse(self, code: str, name: str, message: str, fix: str) -> None:
        """Report a member that is skipped."""
        self.problems.append(Problem(code, message, Place(self.base + name), fix))

    def take(self, member: "_Member") -> None:
        """Take a member if it is a Python file of acceptable size whose name stays inside the library.

        Raises:
            UsageError: there are too many members, or their total size is too large.
        """
        name = member.name
        limits = self.limits
        self._members += 1
        if self._members > limits.members:
            raise UsageError(
                f"{self.name} holds more than {limits.members:,} members.", fix="Import part of it."
            )
        path = PurePosixPath(name)
        if (
            path.is_absolute()
            or ".." in path.parts
            or "\\" in name
            or ":" in name
            or not name.isprintable()
        ):
            shown = name.encode("unicode_escape").decode()
            self.refuse(
                "unsafe-path", shown, "its name leads out of the archive", "give it a plain name"
            )
        elif not member.is_plain:
            self.refuse(
                "link",
                name,
                "it is a link or a device, and neither is followed",
                "put the file itself there",
            )
        elif (
            path.suffix == ".py"
            and member.opened
            and not any(part.startswith(".") for part in path.parts)
        ):
            try:
                with member.opened() as stream:
                    self._keep(name, stream.read(limits.file_bytes + 1))
            except _BROKEN as error:
                self.refuse(
                    "unreadable",
                    name,
                    f"it cannot be read: {error}",
                    "pack it anew, without a password",
                )

    def _keep(self, name: str, content: bytes) -> None:
        self._bytes += len(content)
        if self._bytes > self.limits.text_bytes:
            limit = f"{self.limits.text_bytes >> 20} MiB"
            raise UsageError(
                f"{self.name} holds more than {limit} of Python.", fix="Import part of it."
            )
        if len(content) > self.limits.file_bytes:
            self.refuse(
                "too-large",
                name,
                f"it is larger than {self.limits.file_bytes >> 10} KiB",
                "split it",
            )
        elif name in self.files:
            self.refuse(
                "twice", name, "it is there twice, and the first is used", "remove one of them"
            )
        else:
            try:
                self.files[name] = (
                    content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
                )
            except UnicodeDecodeError:
                self.refuse("encoding", name, "it is not UTF-8", "save it as UTF-8")


class _Member(NamedTuple):
    """A member of a library; `is_plain` for a file or folder. `opened` is None for anything but a file."""

    name: str
    is_plain: bool
    opened: Callable[[], IO[bytes]] | None


def read_library(path: Path, limits: LibraryLimits | None = None) -> Library:
    """Return the Python files of a library.

    Raises:
        UsageError: nothing can be read, or the library exceeds the limits.
    """
    is_packed = not path.is_dir() and path.suffix != ".py"
    folder = path if path.is_dir() and not (path / "__init__.py").is_file() else path.parent
    base = f"{path.name}:" if is_packed else f"{folder.as_posix()}/".removeprefix("./")
    library = Library(path.name, base, limits or LibraryLimits())
    try:
        for member in (
            _archive_members(path, library.limits) if is_packed else _folder_members(path)
        ):
            library.take(member)
    except _BROKEN as error:
        message = f"{path} cannot be read as a library: {error}."
        raise UsageError(
            message, fix="Give a .py file, a folder, a .zip, a .tar or .tar.gz, or a .jsonl."
        ) from error
    # Folders around all of it that are no packages are left out, such as `helpers-1.0/src/`; of a folder, its `src/`.
    while library.files:
        top, *more = {
            PurePosixPath(name).parts[0] for name in library.files if not _PASSED_OVER.search(name)
        } or {""}
        if (
            more
            or not (is_packed or top == "src")
            or {f"{top}/__init__.py", top} & library.files.keys()
            or not top
        ):
            break
        library.files = {name.removeprefix(f"{top}/"): text for name, text in library.files.items()}
    return library


def _folder_members(root: Path) -> Iterator[_Member]:
    """Yield the file, or the members of the folder; the names in a package include its own."""
    if not root.is_dir():
        yield _Member(root.name, True, partial(_open_file, root))
        return
    root = root.resolve()
    base = root.parent if (root / "__init__.py").is_file() else root
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name != "__pycache__"
        )
        for name in sorted([*names, *folders]):
            path = Path(folder, name)
            opened = partial(_open_file, path) if path.is_file() else None
            yield _Member(path.relative_to(base).as_posix(), not path.is_symlink(), opened)


def _open_file(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_RDONLY | machine.NONBLOCK | machine.CLOEXEC), "rb")


def _archive_members(path: Path, limits: LibraryLimits) -> Iterator[_Member]:
    """Yield the members of an archive. Read each before the next one."""
    if path.stat().st_size > limits.archive_bytes:
        raise UsageError(
            f"{path} is larger than {limits.archive_bytes >> 20} MiB.", fix="Import part of it."
        )
    if zipfile.is_zipfile(path):
        if path.read_bytes().count(_ZIP_ENTRY) > limits.members:  # before all are listed
            raise UsageError(
                f"{path} holds more than {limits.members:,} members.", fix="Import part of it."
            )
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                is_plain = stat.S_IFMT(member.external_attr >> 16) in (
                    0,
                    stat.S_IFREG,
                    stat.S_IFDIR,
                )
                yield _Member(member.filename, is_plain, partial(archive.open, member))
        return
    with path.open("rb") as raw:
        is_gzip = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        unpacked = _Capped(
            gzip.GzipFile(fileobj=raw) if is_gzip else raw, limits.unpacked_bytes, path.name
        )
        yield from _tar_members(unpacked, limits)


def _tar_members(stream: "_Capped", limits: LibraryLimits) -> Iterator[_Member]:
    """Yield the members of a tar. Of `tarfile` only the reader of one block is used.

    The rest of it reads headers of any size whole, and searches them in the square of their size.
    """
    name = ""  # from a header that stands before the member's own
    spare = _MAX_HEADERS
    while any(block := stream.read(_TAR_BLOCK)):
        entry = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        left = -(-entry.size // _TAR_BLOCK) * _TAR_BLOCK
        if entry.type in _TAR_HEADERS:
            spare -= max(entry.size, _LEAST_HEADER)
            if not 0 <= entry.size <= _MAX_HEADER or spare < 0:
                most = f"{_MAX_HEADER >> 10} KiB, or all of them more than {_MAX_HEADERS >> 20} MiB"
                raise tarfile.ReadError(f"a header of it has more than {most}")
            name = _long_name(entry.type, stream.read(left)[: entry.size]) or name
            continue
        content = stream.read(min(left, limits.file_bytes + 1)) if entry.isreg() else b""
        opened = partial(io.BytesIO, content[: entry.size])
        yield _Member(
            name or entry.name, entry.isreg() or entry.isdir(), opened if entry.isreg() else None
        )
        name = ""
        left = left - len(content)
        while left > 0 and (piece := stream.read(min(left, _PIECE))):
            left -= len(piece)


def _long_name(kind: bytes, header: bytes) -> str:
    """Return the name that a header gives to the next member, or an empty text."""
    if kind == tarfile.GNUTYPE_LONGNAME:
        return header.partition(b"\0")[0].decode("utf-8", "surrogateescape")
    name = ""
    at = 0
    while kind == tarfile.XHDTYPE and at < len(header):
        digits, _, _ = header[at : at + _MAX_DIGITS].partition(b" ")
        size = int(digits) if digits.isdigit() else 0
        key, _, value = header[at + len(digits) + 1 : at + size].partition(b"=")
        if not size or not value.endswith(b"\n"):
            raise tarfile.ReadError("a header of it is damaged")
        name = value[:-1].decode("utf-8", "surrogateescape") if key == b"path" else name
        at = at + size
    return name


class _Capped(io.RawIOBase):
    """A stream with a read limit, because the unpacked size is only known while reading."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, limit: int, name: str) -> None:
        self._stream = stream
        self._left = limit
        self._name = name

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes.

        Raises:
            UsageError: the limit is exceeded.
        """
        if size < 0 or size > self._left:
            raise UsageError(
                f"{self._name} unpacks to far more than it should.", fix="Import part of it."
            )
        content = self._stream.read(size)
        self._left -= len(content)
        return content


@dataclass(frozen=True, slots=True)
class LibraryFile:
    """One file of a library as a module of the workspace.

    `author_text` is the original text. `notes` are the rewrites by line, to be shown with its functions: a sentence and
    the diff. `problems` point to the lines that were left out. A line of a `.jsonl` file is `given`.
    """

    file: str
    source: ModuleSource
    author_text: str
    parts: ModuleParts
    notes: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    given: Candidate | None = None

    @classmethod
    def of(cls, file: str, place: PurePath, text: str, author_text: str) -> "LibraryFile | Problem":
        """Return the file with its target path below `functions/`, or why it cannot be a module."""
        module = module_of(place)
        if isinstance(module, Problem):
            return replace(module, where=Place(file))
        source = ModuleSource.of(module, text, f"{FOLDER}/{place.as_posix()}")
        parts = ModuleParts.of(text, file, module)
        return parts if isinstance(parts, Problem) else cls(file, source, author_text, parts)

    @property
    def module(self) -> str:
        """The module that the file becomes."""
        return self.source.module

    @property
    def is_package(self) -> bool:
        """True for the `__init__.py` of a package."""
        return self.source.path.endswith("/__init__.py")

    def defined_as(self, fresh: Mapping[str, str]) -> "LibraryFile":
        """Return the file with functions defined under other names, and the old names bound to them."""
        lines = list(self.parts.text.lines)
        notes = dict[int, tuple[str, str]]()
        often = Counter(name for bound in self.parts.binds for name in bound)
        # A name that another statement also binds is left.
        fresh = {name: new for name, new in fresh.items() if often[name] == 1}
        for node in reversed(self.parts.text.body):
            if not isinstance(node, Definition) or node.name not in fresh:
                continue
            new = fresh[node.name]
            at = node.lineno - 1
            end = node.end_lineno or node.lineno
            before = lines[at]
            lines[at] = re.sub(rf"(\bdef\s+){node.name}\b", rf"\g<1>{new}", before, count=1)
            for row in range(at + 1, end):
                if _PROMPT.match(lines[row]):
                    lines[row] = re.sub(rf"(?<![\w.'\"]){node.name}(?=\s*\()", new, lines[row])
            lines[end - 1] = lines[end - 1].rstrip("\n") + "\n"
            alias = f"{node.name} = {new}  # its name in the library\n"
            lines[end : end + 1] = (
                [alias] if lines[end : end + 1] == ["\n"] else [alias, *lines[end : end + 1]]
            )
            message = f"named it `{new}`, as another module of the library has a `{node.name}`, too"
            notes[node.lineno] = (message, f"-{before.rstrip()}\n+{lines[at].rstrip()}")
        text = "".join(lines)
        for new in fresh.values():
            parsed = ParsedText.of(text, syntax.parse(text))
            text = applied(parsed.lines, adding(parsed, new))
        changed = LibraryFile.of(
            self.file, PurePath(self.source.path).relative_to(FOLDER), text, self.author_text
        )
        if isinstance(changed, Problem):  # no longer valid Python
            return self
        return replace(
            changed, notes={**self.notes, **notes}, problems=self.problems, given=self.given
        )


def read_files(
    path: Path, prefix: str, text: str, *, maps: bool, held: Mapping[str, str]
) -> Iterator[LibraryFile | Problem]:
    """Yield the files of a library as modules, and the problems of skipped files.

    Args:
        path: A `.py` file, a folder, an archive, or a `.jsonl` file with a candidate per line.
        prefix: The package that will contain the modules; may be empty.
        text: The content of the file at `path`, if it is not to be read.
        maps: Whether to translate code that was written for another agent.
        held: The module of each function of the workspace, by function name.

    Raises:
        UsageError: nothing can be read.
    """
    if prefix and (bad := check_module_name(prefix)):
        raise UsageError(f"--module-prefix: {bad.message}.", fix=bad.fix or "")
    if not text and not path.exists():
        fix = "Give the path of a library; or, of a package of the index, what you want: --wrap MODULE.NAME"
        raise UsageError(f"{path} is not there.", fix=fix)
    if path.suffix == ".jsonl":
        yield from _of_lines(path, prefix)
        return
    library = (
        Library(path.name, "", LibraryLimits(), {path.name: text}) if text else read_library(path)
    )
    yield from library.problems
    message = "tests and setup files are not imported"
    passed_over = filter(_PASSED_OVER.search, sorted(library.files))
    yield from (Problem("passed-over", message, Place(name), None, "warns") for name in passed_over)
    found = list(_modules(library, prefix, maps=maps))
    yield from (row for row in found if isinstance(row, Problem))
    yield from _apart([row for row in found if isinstance(row, LibraryFile)], held)


def left_behind(file: LibraryFile, offered: Iterable[Function]) -> Iterator[Problem]:
    """Yield a warning for each class with public methods that no function needs, and for each conditional function.

    Neither is offered.
    """
    needed = file.parts.needed(file.parts.public)
    for at, node in enumerate(file.parts.text.body):
        members = node.body if isinstance(node, ast.ClassDef) and at not in needed else []
        count = sum(
            isinstance(member, Definition) and not member.name.startswith("_") for member in members
        )
        if count and isinstance(node, ast.ClassDef):
            many = "1 method is" if count == 1 else f"{count} methods are"
            message = f"{many} not taken of `{node.name}`: functions stand at the top of a module"
            fix = "write each as `def name(self, …)` there, with what it needs of the object as parameters"
            yield Problem("methods", message, Place(file.file, node.lineno), fix, "warns")
    for function in offered:
        if function.name not in file.parts.public:
            message = f"`{function.name}` is not offered: a condition decides whether it is defined"
            fix = "define it at the top of the module, and decide in its body"
            yield Problem("conditional", message, Place(file.file, function.line), fix, "warns")


def fitting(name: str) -> str:
    """Return a word as a valid part of a module's name."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII).strip() or "library"
    if plain[0].isdigit():
        return f"m{plain}"
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def _of_lines(path: Path, prefix: str) -> Iterator[LibraryFile | Problem]:
    below = (prefix or fitting(path.stem)).split(".")
    known = set[str]()
    for number, line in enumerate(read_named(path).split(b"\n"), 1):
        where = f"{path.name}:{number}"
        candidate = parse_line(line, where, "") if line.strip() else None
        if candidate is None or isinstance(candidate, Problem):
            yield from filter(None, [candidate])
            continue
        text = escaped = write_escapes(candidate.code)
        for example in candidate.examples[
            :_MAX_GIVEN
        ]:  # examples with a tolerance are not written as doctests
            more = (
                ""
                if example.approx
                else with_example(text, candidate.name, example.call, example.expected)
            )
            text = more if isinstance(more, str) and more and example.call not in text else text
        parts = (
            candidate.module.split(".") if candidate.module else [*below, fitting(candidate.name)]
        )
        part = LibraryFile.of(where, PurePath(*parts[:-1], f"{parts[-1]}.py"), text, candidate.code)
        if isinstance(part, Problem):
            yield replace(
                part,
                code="not-a-candidate",
                where=Place(where),
                message=f"line {part.where.line}: {part.message}",
            )
        elif candidate.name not in part.parts.public or part.module in known:
            reason = f"it does not define `{candidate.name}`"
            if part.module in known:
                reason = f"a line above holds a `{candidate.name}` too, which is taken"
            yield Problem("not-a-candidate", reason, Place(where), "fix that line")
        else:
            known.add(part.module)
            alone = replace(part.parts, public=(candidate.name,))
            others = tuple(example for example in candidate.examples if example.call not in text)
            given = replace(candidate, code=text, module=part.module, examples=others)
            yield replace(
                part, parts=alone, given=given, notes=_escape_notes(candidate.code, escaped)
            )


def _modules(library: Library, prefix: str, *, maps: bool) -> Iterator[LibraryFile | Problem]:
    """Yield each file that can be a module, in order of path."""
    files = {
        name: text for name, text in sorted(library.files.items()) if not _PASSED_OVER.search(name)
    }
    files = {
        name: text
        for name, text in files.items()
        if text.strip() or not name.endswith("__init__.py")
    }
    below = [*(prefix.split(".") if prefix else [])]
    targets = {
        _module_name(name): ".".join([*below, *map(fitting, _module_name(name).split("."))])
        for name in files
    }
    targets.pop("", None)
    renamed = _public_names(files, targets)
    targets |= renamed
    mentions = {
        module: re.compile(rf"\b{module.rpartition('.')[2]}\b(?!\s+import)") for module in renamed
    }
    still_used = {
        module for module, mention in mentions.items() if any(map(mention.search, files.values()))
    }
    taken = dict[str, str]()
    for name, text in files.items():
        dotted = _module_name(name)
        if not dotted:
            continue
        shown = library.base + name
        is_package = name.endswith("__init__.py")
        adapted = adapt(write_escapes(text), shown, maps=maps)
        mover = ImportMover(
            targets, dotted, targets[dotted], FOLDER, is_package=is_package, old_names=still_used
        )
        moved = mover.moved(adapted.text)
        place = PurePath(*targets[dotted].split("."))
        part = LibraryFile.of(
            shown, place / "__init__.py" if is_package else place.with_suffix(".py"), moved, text
        )
        if isinstance(part, LibraryFile) and part.module in taken:
            message = f"it would be the module `{part.module}`, as {taken[part.module]} is"
            part = Problem("module-clash", message, Place(shown), "rename one of the two")
        if isinstance(part, LibraryFile):
            taken[part.module] = shown
            notes = {**_escape_notes(text, write_escapes(text)), **adapted.mapped}
            part = replace(part, notes=notes, problems=adapted.problems)
        yield part


def _escape_notes(text: str, written: str) -> dict[int, tuple[str, str]]:
    """Return a note for each line in which characters were replaced by escapes."""
    pairs = enumerate(zip(lines_of(text), lines_of(written), strict=True), 1)
    message = "wrote characters that cannot be seen as escapes"
    return {
        number: (message, f"-{before.rstrip()}\n+{after.rstrip()}")
        for number, (before, after) in pairs
        if before != after
    }


def _module_name(name: str) -> str:
    path = PurePosixPath(name)
    parts = path.parts[:-1] if path.name == "__init__.py" else (*path.parts[:-1], path.stem)
    return ".".join(parts)


def _public_names(files: Mapping[str, str], targets: Mapping[str, str]) -> dict[str, str]:
    """Return the private modules whose content a package exports, each with a public name."""
    opened: dict[str, str] = {}
    for name, text in files.items():
        for node in _imports(text) if name.endswith("/__init__.py") else ():
            if not isinstance(node, ast.ImportFrom) or all(
                alias.name.startswith("_") for alias in node.names
            ):
                continue
            module = imported_module(
                node.module or "", node.level, _module_name(name), is_package=True
            )
            package, _, own = targets.get(module, "").rpartition(".")
            public = f"{package}.{own.strip('_')}"
            is_file = f"{module.replace('.', '/')}.py" in files
            is_free = (
                public not in {*targets.values(), *opened.values()}
                and check_module_name(public) is None
            )
            if own.startswith("_") and is_file and is_free:
                opened[module] = public
    return opened


def _imports(text: str) -> list[ast.Import | ast.ImportFrom]:
    try:
        tree = syntax.parse(text)
    except SyntaxError:
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def _is_standard(name: str) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names


@dataclass(frozen=True, slots=True)
class ImportMover:
    """A rewriter that turns the imports of one module into relative imports for its new place.

    `targets` map the old names of the imported modules to the new ones; `own` is the old name of this module, `target`
    its new one. `import a.b`, which binds `a`, has no relative form: it is written with the `root` of the new place.
    The package of a renamed module in `old_names` also binds the old name, as importing the module by that name would.
    """

    targets: Mapping[str, str]
    own: str
    target: str
    root: str
    is_package: bool
    old_names: Set[str] = frozenset()

    def moved(self, text: str) -> str:
        """Return the text with its imports rewritten; text that is not valid Python is returned unchanged."""
        lines = lines_of(text)
        nodes = _imports(text)
        outermost = {
            self._base(node): node for node in reversed(nodes) if isinstance(node, ast.ImportFrom)
        }
        binds = dict[ast.stmt, str]()
        for base in self.old_names & outermost.keys() if self.is_package else ():
            package, _, old = base.rpartition(".")
            if (
                package == self.own
            ):  # before the names are imported, because one may be the module's new name
                binds[outermost[base]] = (
                    f"from . import {self.targets[base].rpartition('.')[2]} as {old}; "
                )
        for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset), reverse=True):
            head, new = (
                self._from(node) if isinstance(node, ast.ImportFrom) else ("", self._whole(node))
            )
            if not (new and node.end_lineno and node.end_col_offset):
                continue
            first = node.lineno - 1
            last = node.end_lineno - 1
            before = lines[first][: column_of(lines[first], node.col_offset)]
            written, count = (
                _IMPORT_LINE.subn(f"{head} import", lines[first][len(before) :], count=1)
                if head
                else ("", 0)
            )
            before += binds.get(node, "")
            if count:  # the list of names keeps its format
                lines[first] = before + written
            else:
                after = lines[last][column_of(lines[last], node.end_col_offset) :]
                lines[first : last + 1] = [f"{before}{new}{after}", *(["\n"] * (last - first))]
        return "".join(lines)

    def _base(self, node: ast.ImportFrom) -> str:
        return imported_module(node.module or "", node.level, self.own, is_package=self.is_package)

    def _from(self, node: ast.ImportFrom) -> tuple[str, str]:
        """Return `from …` if the names do not change, and the whole statement; both are empty if it needs no change."""
        base = self._base(node)
        members = {
            alias.name: self.targets.get(f"{base}.{alias.name}".strip("."), "")
            for alias in node.names
        }
        if (
            node.module == "typing_extensions"
            and not node.level
            and all(hasattr(typing, name) for name in members)
        ):
            return "from typing", ast.unparse(node)
        inner = next(filter(None, members.values()), None)
        home = self.targets.get(base) or (inner and inner.rpartition(".")[0])
        if home is None or (not node.level and _is_standard(base)):
            return "", ""
        head = self._head(home)
        opened = {name: member.rpartition(".")[2] for name, member in members.items()}
        renamed = {name: new for name, new in opened.items() if new not in ("", name)}
        if not renamed and head == f"from {'.' * node.level}{node.module or ''}":
            return "", ""
        names = (
            f"{renamed[alias.name]} as {alias.asname or alias.name}"
            if alias.name in renamed
            else ast.unparse(alias)
            for alias in node.names
        )
        return "" if renamed else head, f"{head} import {', '.join(names)}"

    def _head(self, home: str) -> str:
        """Return `from …` for a module or package at the new place."""
        around = self.target.split(".")[: None if self.is_package else -1]
        inside = home.split(".") if home else []
        shared = next(
            (at for at, word in enumerate(around) if inside[at : at + 1] != [word]), len(around)
        )
        return f"from {'.' * (len(around) - shared + 1)}{'.'.join(inside[shared:])}"

    def _whole(self, node: ast.Import) -> str:
        """Return `import …` with the new places of moved modules; empty if it names none."""
        stay = list[str]()
        moved = list[str]()
        for alias in node.names:
            target = "" if _is_standard(alias.name) else self.targets.get(alias.name, "")
            top = alias.name.partition(".")[0]
            local = alias.asname or alias.name
            if not target:
                stay.append(ast.unparse(alias))
            elif "." not in local:
                home, _, own = target.rpartition(".")
                moved.append(
                    f"{self._head(home)} import {own}" + (f" as {local}" if local != own else "")
                )
            else:  # `import a.b` binds `a`
                package = self.targets.get(
                    top, ".".join(target.split(".")[: -alias.name.count(".")])
                )
                moved.append(
                    f"import {self.root}.{target}, {f'{self.root}.{package}'.strip('.')} as {top}"
                )
        return (
            "; ".join([*([f"import {', '.join(stay)}"] if stay else []), *moved]) if moved else ""
        )


def _apart(parts: list[LibraryFile], held: Mapping[str, str]) -> Iterator[LibraryFile]:
    """Yield the files; functions that share a name are defined under their modules' names.

    The old name stays in the module for the code that uses it there. A function keeps its name if the workspace has it
    from this module, or else if it is in the top package. The new names use as much of the module paths as is needed to
    make them distinct.
    """
    sharing: dict[str, list[LibraryFile]] = {}
    for part in parts:
        for name in part.parts.public:
            sharing.setdefault(name, []).append(part)
    fresh: dict[str, dict[str, str]] = {part.module: {} for part in parts}
    for name, owners in sharing.items():
        paths = {
            part.module: [word.strip("_") or word for word in part.module.split(".")]
            for part in owners
        }
        size = next(
            (
                n
                for n in range(1, 99)
                if len({(*path[-n:],) for path in paths.values()}) == len(paths)
            ),
            0,
        )
        keeper = next((module for module in paths if module == held.get(name)), "") or min(
            (part.module for part in owners if part.is_package), key=len, default=""
        )
        for module in paths.keys() - {keeper} if len(owners) > 1 else ():
            new = "_".join([*paths[module][-size:], name])
            if new not in sharing and held.get(new, module) == module and len(new) <= _MAX_NAME:
                fresh[module][name] = new
    yield from (
        part.defined_as(fresh[part.module]) if fresh[part.module] else part for part in parts
    )


def star_names(
    file: LibraryFile, parts: Mapping[str, LibraryFile], seen: Set[str] = frozenset()
) -> list[str]:
    """Return the names that `from … import *` imports from a file in its original form; empty if they are computed."""
    body = file.parts.text.body
    listings = [
        node for node, bound in zip(body, file.parts.binds, strict=True) if "__all__" in bound
    ]
    if listings:
        value = getattr(listings[0], "value", None)
        names = (
            {*file.parts.exported()}
            if len(listings) == 1 and value is not None and is_literal(value)
            else set()
        )
        return sorted(names)
    names = set[str]()
    for node in body:
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            other = parts.get(_source_of(node, file))
            if other is not None and other.module not in seen:
                names |= {*star_names(other, parts, seen | {file.module})}
        else:
            names |= bound_names(node)
    return sorted(name for name in names if not name.startswith("_") and name != "*")


def _source_of(node: ast.ImportFrom, file: LibraryFile) -> str:
    """Return the workspace module that a statement of a file imports from."""
    module = imported_module(node.module or "", node.level, file.module, is_package=file.is_package)
    return module.removeprefix(f"{FOLDER}.")


def with_names(file: LibraryFile, withheld: Iterable[str], parts: Mapping[str, LibraryFile]) -> str:
    """Return a file's text with `*` replaced by the names for imports from files that now offer fewer."""
    lines = list(file.parts.text.lines)
    for node in file.parts.text.body:
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            module = _source_of(node, file)
            if module in withheld and (names := star_names(parts[module], parts)):
                lines[node.lineno - 1] = re.sub(
                    r"\*", ", ".join(names), lines[node.lineno - 1], count=1
                )
    return "".join(lines)
