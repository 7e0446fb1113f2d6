"""Every slash command, typed in one session; none fails, and each states its purpose."""

from pathlib import Path

from agent_core.operations.catalog import ENTRIES
from tests.interfaces.support import NOTHING_LEFT, prompt
from tests.kit import Repeat, Say

TYPED = {
    "help": ("/help", "Browse the functions"),
    "functions": ("/functions vow", "Count the vowels"),
    "introspect": ("/introspect count_vowels", "functions/words.py:1"),
    "about": ("/about count_vowels", "def count_vowels(text: str) -> int"),
    "call": ('/call count_vowels("ab")', "count_vowels(text='ab')"),
    "show": ("/show", "No call was made in this session."),
    "create": ("/create 1st", "cannot be a function's name."),
    "edit": ("/edit count_vowels", "the editor was here"),
    "break": ("/break", "No breakpoint is set."),
    "debug": ("/debug", "Type /debug"),
    "trace": ('/trace count_vowels {"text": "ab"}', "return sum("),
    "test": ("/test count_vowels", "2 of 2 examples agree"),
    "release": ("/release count_vowels", "count_vowels"),
    "grants": ("/grants", "No function"),
    "delete": ("/delete nothing", "There is no function `nothing`"),
    "history": ("/history count_vowels", "versions of count_vowels 1 of 1"),
    "diff": ("/diff count_vowels 1", "nothing differs"),
    "pin": ("/pin count_*", "is pinned: only you change count_vowels"),
    "unpin": ("/unpin count_*", "is not pinned any more"),
    "join": ("/join", "Type /join NAME|PATTERN"),
    "mode": ("/mode ask", "ask: each new reach is asked; growth: on"),
    "go": ("/go", "There is no plan to take up."),
    "rename": ("/rename count_vowels class", "`class` is a Python keyword."),
    "move": ("/move count_vowels words", "`count_vowels` is in `words` already."),
    "rollback": ("/rollback", "Type /rollback NAME [VERSION]."),
    "example": ("/example", "Type /example NAME CALL = RESULT."),
    "pending": ("/pending", "There are no rejected candidates."),
    "confirm": ("/confirm", "Type /confirm NAME [REASON"),
    "good": ("/good", "count_vowels is rated good"),  # the call that was typed above
    "bad": ("/bad count_vowels y counts", "count_vowels is rated bad; its standing is draft"),
    "audit": ("/audit", "of 100"),
    "reload": ("/reload", "othing changed"),
    "memory": ("/memory", "human"),
    "attach": ("/attach", "Type /attach PATH|URL|NAME."),
    "forget": ("/forget zeppelin", "The record does not contain “zeppelin”."),
    "summarize": ("/summarize", "othing"),
    "agents": ("/agents", "main"),
    "switch": ("/switch main", "You are already talking to main."),
    "save": ("/save kept.json", "main is in kept.json"),
    "load": ("/load nothing.json", "nothing.json"),
    "retry": ("/retry", "There is no message to send again."),
    "pop": ("/pop", "There is no turn to remove."),
    "changes": ("/changes", "Nothing was made or changed in this session."),
    "undo": ("/undo", NOTHING_LEFT),
    "cost": ("/cost", "Nothing was asked in this session yet."),
    "answer": ("/answer 123456 yes", "No question `123456` is open"),
    "approvals": ("/approvals", "Nothing was asked or allowed yet."),
    "cap": ("/cap day_tokens 9000000", "9,000,000 tokens for today"),
    "pause": ("/pause until noon", "Paused (until noon): nothing runs by itself."),
    "resume": ("/resume", "What runs by itself goes on."),
    "new": ("/new", "The conversation is already new."),
    "conversations": ("/conversations", "0 messages"),
    "open": ("/open main", "You are already in “main”."),
    "branch": ("/branch", "Nothing was said in it yet."),
    "name": ("/name", "Type /name NAME."),
    "waiting": ("/waiting", "None waits."),
    "log": ("/log", "Nothing was said."),
    "dump": ("/dump", "/dump · rows 1-"),
    "model": ("/model", "scripted at http://127.0.0.1"),
    "shell": ("/shell echo here", "it goes along with your next message"),
    "memorywarning": ("/memorywarning", "∙ 1 step"),
    "heartbeat": ("/heartbeat", "∙ 1 step"),
}
LAST = {"clear", "exit"}


def test_every_command_does_its_work_on_a_small_screen(grown: Path) -> None:
    assert {entry.name for entry in ENTRIES} == {*TYPED, *LAST}
    with prompt(
        [Repeat(Say("Hi."))], grown, environment={"EDITOR": "echo the editor was here"}
    ) as (screen, _):
        for typed, says in TYPED.values():
            screen.do(typed, says)
        assert not [
            row
            for row in screen.scrolled().split("\n")
            if "Knapper failed" in row or "Traceback" in row
        ]
        screen.line("/clear")
        screen.wait_gone("› /heartbeat")
        screen.line("/exit")
        assert screen.exit_code() == 0
