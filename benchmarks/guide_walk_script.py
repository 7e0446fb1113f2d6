"""The guide's texts, keys and screens, in its order: data for `guide_walk`."""

from dataclasses import dataclass

HEAD = """\
# A guide: the first ten minutes

This guide takes you from an empty machine to a function that you made, edited, stopped in the middle and rolled back.
You need no key and no model: the scripted tour answers, and everything that happens is real. With [your own
model](first-minutes.md) you may ask for anything. The pictures were taken by `make guide`, which types exactly these
commands.
"""


@dataclass(frozen=True, slots=True)
class Shell:
    """A command at a shell, typed in the first window; done when its prompt is back, or `until` is shown."""

    command: str
    until: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A line at the program's own prompt; done when `until` is shown once more than before."""

    text: str
    until: str
    mark: str = "› "


@dataclass(frozen=True, slots=True)
class Half:
    """A line that is typed but not sent yet."""

    text: str


@dataclass(frozen=True, slots=True)
class Escape:
    """The key that leaves a view, or the program."""

    key: str = "\x1b"


@dataclass(frozen=True, slots=True)
class Second:
    """A command in a second window, in the workspace folder; done when the first window shows `until`."""

    command: str
    until: str


@dataclass(frozen=True, slots=True)
class Picture:
    """The first window, from the last line that contains `since`."""

    name: str
    says: str
    since: str


@dataclass(frozen=True, slots=True)
class Said:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class File:
    """A file below the home that the reader writes."""

    path: str
    text: str


Act = Shell | Prompt | Half | Escape | Second | Picture | Said | File


@dataclass(frozen=True, slots=True)
class Part:
    """A chapter."""

    title: str
    acts: tuple[Act, ...]


DEBUG = "(debug) "
RHYTHM = "how many vowels are in rhythm?"
PARTS = (
    Part(
        "Install",
        (
            Said(
                "You need Linux on x86-64 (or WSL2) and Python 3.11 or newer. In a clone of the repository:"
            ),
            Shell("python3 -m venv ~/venv && . ~/venv/bin/activate"),
            Shell("pip install --quiet ."),
            Said("Create a workspace, a folder that contains your functions, and start:"),
            Shell("knapper init ~/my-assistant && cd ~/my-assistant"),
            Shell("knapper run --model tour", until="Screen 1 of 10"),
            Picture(
                "begin",
                "The prompt is `›`; the line below shows who answers and how functions are confined.",
                "$ knapper",
            ),
        ),
    ),
    Part(
        "The first function",
        (
            Said("Ask for something that has to be computed:"),
            Prompt("how many vowels are in queueing?", until="Screen 2 of 10"),
            Picture(
                "first",
                (
                    "No function counts vowels, so the assistant writes one; the gate judges it (its "
                    "examples run in a sandbox); then it is called."
                ),
                "› how many",
            ),
            Said("It is plain Python in `functions/tour.py`. If you ask again, it is only called:"),
            Prompt(RHYTHM, until="Screen 4 of 10"),
            Said("It does not count `y` as a vowel: the answer is 0."),
        ),
    ),
    Part(
        "Edit it live",
        (
            Said(
                "`/edit count_vowels` opens the file in your `$EDITOR`, at the function's line. Or use any editor in "
                "another window. Start typing a line, and do not send it yet:"
            ),
            Half("how many vowels are "),
            Said("In a second window:"),
            Second(
                "sed -i s/aeiou/aeiouy/ ~/my-assistant/functions/tour.py",
                until="count_vowels was changed outside",
            ),
            Said("The verdict appears above your line, and the line stays. Continue typing:"),
            Prompt("in rhythm?", until="Screen 5 of 10"),
            Picture(
                "edited",
                "The answer is 1 now: your saved file is what runs, in the same conversation.",
                "was changed outside",
            ),
            Said("A broken save takes nothing away. In the second window:"),
            Second("echo 'def half(' >> ~/my-assistant/functions/tour.py", until="rejected"),
            Picture(
                "rejected",
                "You see the location and the line; the last good version stays active. Remove the line again:",
                "✗ rejected",
            ),
            Second("sed -i '$ d' ~/my-assistant/functions/tour.py", until="loads again"),
            Said(
                "If the assistant changes the function at the moment you save it, yours stays on disk, the assistant's "
                "is kept as pending, and both of you see the difference; `/confirm NAME` uses the other one, "
                "`/pending NAME drop` discards it."
            ),
        ),
    ),
    Part(
        "Break in it",
        (
            Said("Set a breakpoint at its first line ([or elsewhere](debugging.md)):"),
            Prompt("/break count_vowels", until="● 1: count_vowels"),
            Prompt(RHYTHM, until="(debug)"),
            Said(
                "The call and its clock are paused. Look at the arguments, compute something there (in its sandbox), "
                "change a variable, and continue:"
            ),
            Prompt("a", "text = 'rhythm'", DEBUG),
            Prompt('p [one for one in text if one in "aeiouy"]', "['y']", DEBUG),
            Prompt("set text = 'why not'", "done", DEBUG),
            Picture(
                "stopped",
                "`n` runs the next line, `s` steps into a call, `w` shows where you are, and `help` lists the rest.",
                "› how many",
            ),
            Prompt("c", "count_vowels(text='rhythm') → 2", DEBUG),
            Picture(
                "went-on",
                "2, as you chose: `y` and `o`. That is the result that the assistant received.",
                "(debug) set",
            ),
            Prompt("/break clear", until="✓ cleared 1"),
        ),
    ),
    Part(
        "Roll it back",
        (
            Said("Every version is kept, no matter who made it:"),
            Prompt("/history count_vowels", until="type to filter"),
            Picture(
                "history", "It shows who, when, why, and what changed. Esc leaves.", "› /history"
            ),
            Escape(),
            Prompt("/rollback count_vowels", until=" is back, on trial"),
            Picture(
                "back",
                "The previous version passes the gate like any change, and becomes the current one.",
                "› /rollback",
            ),
            Prompt(RHYTHM, until="count_vowels(text='rhythm') → 0"),
            Said(
                "The answer is 0 again. `/rollback count_vowels 2` would restore the other version. "
                "Ctrl-D leaves; everything is kept."
            ),
        ),
    ),
)
TAIL = """\
## Where next

`/help` lists the commands, `next` continues the tour, and the [reference](reference.md) has everything. Read [the
first minutes](first-minutes.md) to set up your own model, [at the terminal](terminal.md) for scripts and for what else
you can type, [grants](grants.md) to control what functions may access, and [several agents](guide-agents.md) for
helpers and groups. Once there are many functions, `/audit` shows which ones need work.
"""
