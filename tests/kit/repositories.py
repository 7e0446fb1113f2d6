"""Code that makes repositories and workspaces in `folder`, by requests of a function or of a program."""

BARE_GIT = r"""import os

def put(name, text):
    with open(f"{folder}/tmp", "w") as file:
        file.write(text)
    os.rename(f"{folder}/tmp", f"{folder}/{name}")

command = f"touch {os.path.abspath(folder)}/PWNED; false"
put("config", f'[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\nfsmonitor = "{command}"\n')
os.mkdir(f"{folder}/objects")
os.mkdir(f"{folder}/refs")
put("HEAD", "ref: refs/heads/main\n")
"""
"""It leaves a repository in which `git status` makes the file `PWNED` in the folder."""

EVERY_NAME = r"""import errno, os

def write(name):
    with open(f"{folder}/{name}", "w") as file:
        file.write("x")

def rename(name):
    write("moved")
    os.rename(f"{folder}/moved", f"{folder}/{name}")

def mkdir(name):
    os.mkdir(f"{folder}/{name}")

def makedirs(name):
    os.makedirs(f"{folder}/{name}")

write("config")
told = []
for name in [".git", "a/.git/hooks", "GIT~1", ".hg", "_darcs", ".knapper", "b/knapper.toml", "commondir", "HEAD"]:
    for make in (write, rename, mkdir, makedirs):
        try:
            make(name)
            told.append(f"{name} was made")
        except OSError as error:
            if "can never be granted" not in str(error) and error.errno != errno.EXDEV:
                told.append(f"{name}: {error}")
"""
"""It tries each way to make each name that no function may make, in an empty folder; `told` has what went otherwise."""

LEFT: list[str] = ["config", "moved"]
"""The names that it leaves in the folder."""
