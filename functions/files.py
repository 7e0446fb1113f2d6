"""Files: what is in a folder, and what is in a text file."""

import os


def list_folder(path: str = "") -> list[str]:
    """List a folder. Give the names of its files and folders, without hidden ones.

    Args:
        path: The folder; empty for the workspace's own.

    Returns:
        The names in order. That of a folder ends in "/", that of a link in "@".

    Examples:
        >>> import tempfile; folder = tempfile.mkdtemp()
        >>> for name in ["b.txt", "a.csv", ".hidden"]: _ = open(f"{folder}/{name}", "w").write("")
        >>> os.mkdir(f"{folder}/mails")
        >>> list_folder(folder)
        ['a.csv', 'b.txt', 'mails/']
        >>> list_folder(f"{folder}/mails")
        []
    """
    names = []
    with os.scandir(path or ".") as entries:
        for entry in entries:
            if not entry.name.startswith("."):
                is_folder = entry.is_dir(follow_symlinks=False)
                names.append(entry.name + ("/" if is_folder else "@" if entry.is_symlink() else ""))
    return sorted(names)


def read_text(path: str) -> str:
    """Read a text file. It is read as UTF-8 or, if it is not valid as that, as Windows-1252 or else as ISO-8859-1.

    Args:
        path: The file.

    Examples:
        >>> import tempfile; path = tempfile.mkdtemp() + "/a.txt"
        >>> _ = open(path, "w", encoding="utf-8").write("day;paid\\n1;2,50\\n2;4\\n")
        >>> read_text(path)
        'day;paid\\n1;2,50\\n2;4\\n'
        >>> other = path + "2"; _ = open(other, "wb").write(b"Gr\\xfc\\xdfe: 5 \\x80\\r\\n")
        >>> read_text(other)
        'Grüße: 5 €\\r\\n'
        >>> third = path + "3"; _ = open(third, "wb").write(b"caf\\xe9 \\x81")
        >>> read_text(third)
        'café \\x81'
    """
    with open(path, "rb") as file:
        content = file.read()
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    return content.decode("iso-8859-1")
