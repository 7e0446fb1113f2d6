"""What the guide says, types and shows, in its order: data for `guide_walk`."""

from dataclasses import dataclass

HEAD = """\
# A guide: the first ten minutes

From an empty machine to a function that you made, changed by hand, stopped in the middle and rolled back. Type what
stands here as it stands here: no key and no model is needed, as the scripted tour answers, and what happens is real.
With a model of [your own](first-minutes.md) all of it is the same, except that you may ask for anything.

Every picture was taken from the terminal by `make guide`, which types these very commands.
"""


@dataclass(frozen=True, slots=True)
class Shell:
    """A command at a shell, typed in the first window; done when its prompt is back, or `until` is shown."""

    command: str
    until: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A line at the program's own prompt, until something is shown once more than before."""

    text: str
    until: str
    mark: str = "› "


@dataclass(frozen=True, slots=True)
class Half:
    """A line that is begun, and not sent yet."""

    text: str


@dataclass(frozen=True, slots=True)
class Escape:
    """The key that leaves a view."""


@dataclass(frozen=True, slots=True)
class Second:
    """A command in a second window, in the folder of the workspace, until the first one shows something."""

    command: str
    until: str


@dataclass(frozen=True, slots=True)
class Picture:
    """The first window, from the last line with a text on."""

    name: str
    says: str
    since: str


@dataclass(frozen=True, slots=True)
class Said:
    """A paragraph."""

    text: str


Act = Shell | Prompt | Half | Escape | Second | Picture | Said


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
            Said("You need Linux on x86-64 (or WSL2) and Python 3.11 or newer. In a clone of the repository:"),
            Shell("python3 -m venv ~/toolwright && . ~/toolwright/bin/activate"),
            Shell("pip install --quiet ."),
            Said("A workspace is a folder that holds your functions. Make one, and begin:"),
            Shell("toolwright init ~/my-assistant && cd ~/my-assistant"),
            Shell("toolwright run --model tour", until="Screen 1 of 9"),
            Picture(
                "begin",
                "The prompt is `›`; the line below says who answers and how far functions are confined.",
                "$ tool",
            ),
        ),
    ),
    Part(
        "The first function",
        (
            Said("Ask for something that has to be computed:"),
            Prompt("how many vowels are in queueing?", until="Screen 2 of 9"),
            Picture(
                "first",
                "No function counts vowels, so one is written, judged by the gate (its examples run in a sandbox), and "
                "called.",
                "› how many",
            ),
            Said(
                "It is plain Python in `functions/tour.py`, and it is there tomorrow. Ask again, and it is only called:"
            ),
            Prompt(RHYTHM, until="Screen 4 of 9"),
            Said("`y` is no vowel to it: it says 0."),
        ),
    ),
    Part(
        "Edit it live",
        (
            Said(
                "The file is yours. `/edit count_vowels` opens it in your `$EDITOR`, at the function's line. Or take "
                "any editor in another window, and leave this one as it is. Begin a line here, and do not send it yet:"
            ),
            Half("how many vowels are "),
            Said("In a second window:"),
            Second("sed -i s/aeiou/aeiouy/ ~/my-assistant/functions/tour.py", until="by hand changed: count_vowels"),
            Said("The verdict appears above your line, and the line stays. Go on typing it:"),
            Prompt("in rhythm?", until="Screen 5 of 9"),
            Picture("edited", "1 now: what you saved is what runs, in the conversation that goes on.", "⟳ by hand"),
            Said("A save that is not right takes nothing away. In the second window:"),
            Second("echo 'def half(' >> ~/my-assistant/functions/tour.py", until="rejected"),
            Picture(
                "rejected",
                "You see the place and the line; the last good version goes on. Take the line out again:",
                "✗ rejected",
            ),
            Second("sed -i '$ d' ~/my-assistant/functions/tour.py", until="is good again"),
            Said(
                "And if the assistant changes the same function in the very moment in which you save it, nothing is "
                "written over. Your version stays on disk, the assistant's is kept beside it, and both of you see the "
                "difference; `/confirm NAME` takes the other one, `/pending NAME drop` gives it up."
            ),
        ),
    ),
    Part(
        "Break in it",
        (
            Said(
                "A breakpoint at its first line, or at one that you name, and counted if you like "
                "(`/break count_vowels:15 if len(text) > 5 after 3`):"
            ),
            Prompt("/break count_vowels", until="● 1: count_vowels"),
            Prompt(RHYTHM, until="(debug)"),
            Said(
                "The call stands still, and its time limit with it. Look at the arguments, compute something there "
                "(in its sandbox), give a variable another value, and go on:"
            ),
            Prompt("a", "text = 'rhythm'", DEBUG),
            Prompt('p [one for one in text if one in "aeiouy"]', "['y']", DEBUG),
            Prompt("set text = 'why not'", "done", DEBUG),
            Picture(
                "stopped", "`n` would step on, `s` into a call, `w` shows where you are, `help` the rest.", "› how many"
            ),
            Prompt("c", "count_vowels(text='rhythm') → 2", DEBUG),
            Picture("went-on", "2, as you wished: `y` and `o`. That is what the assistant was given.", "(debug) set"),
            Prompt("/break clear", until="✓ cleared 1"),
        ),
    ),
    Part(
        "Roll it back",
        (
            Said("Every version is kept, whoever made it:"),
            Prompt("/history count_vowels", until="type to filter"),
            Picture("history", "Who, when, why, and what changed. Esc leaves.", "› /history"),
            Escape(),
            Prompt("/rollback count_vowels", until="no function calls it"),
            Picture(
                "back", "The version before passes the gate like any change, and is the current one.", "› /rollback"
            ),
            Prompt(RHYTHM, until="count_vowels(text='rhythm') → 0"),
            Said(
                "0 again. `/rollback count_vowels 2` would take the other one back. Ctrl-D leaves; all of it is kept."
            ),
        ),
    ),
)
TAIL = """\
## Where next

`/help` lists what can be typed, `next` goes on with the tour, and the [reference](reference.md) has everything. A model
of your own: [the first minutes](first-minutes.md). What functions may reach, and how you are asked:
[grants](grants.md). Several agents: [agents](agents.md).
"""
