"""Key bindings of the prompt: Enter sends, Alt-Enter breaks the line, Ctrl-C ends the turn, Ctrl-D leaves.

If nothing runs, Ctrl-C pressed twice leaves. While a function is stopped, the debugger's line has the keys: Ctrl-C
pressed twice ends the turn, and Ctrl-D ends the call. While a question is open, a key answers it or says which would;
Enter answers nothing, and Ctrl-C is a no.
"""

from typing import Protocol

from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from .prompt import OpenQuestion, OpenTable, Prompt

_TOO_LATE = "The call has ended, so this was not a debugger command. Enter again sends it to the assistant."
_LEAVING = "Nothing is running. Ctrl-C again, Ctrl-D or /exit leaves."


class Wheel(Protocol):
    """The interface that the keys control."""

    @property
    def busy(self) -> bool:
        """True if something is running or waiting that Ctrl-C ends."""

    def send(self, text: str) -> None:
        """Process what was typed."""

    def interrupt(self) -> None:
        """End the running turn."""

    def leave(self) -> None:
        """End the conversation."""


def bindings(prompt: Prompt, wheel: Wheel) -> KeyBindings:
    """Return the key bindings of a prompt."""
    keys = KeyBindings()
    typing = has_focus(prompt.buffer)
    empty = Condition(lambda: not prompt.buffer.text)
    keys.add("enter", filter=typing)(lambda event: _enter(prompt, wheel))
    keys.add("escape", "enter", filter=typing)(lambda event: prompt.buffer.insert_text("\n"))
    keys.add("c-c", filter=typing)(lambda event: _stop(prompt, wheel))
    keys.add("c-d", filter=typing & empty)(lambda event: wheel.leave())
    debugging = has_focus(prompt.debug.buffer)
    no_command = Condition(lambda: not prompt.debug.buffer.text)
    keys.add("enter", filter=debugging)(lambda event: prompt.debug.enter())
    keys.add("c-c", filter=debugging)(lambda event: wheel.interrupt() if prompt.debug.stops_turn() else None)
    keys.add("c-d", filter=debugging & no_command)(lambda event: prompt.debug.end())
    _bind_answers(keys, prompt, wheel)
    _bind_table(keys, prompt)
    return keys


def _bind_answers(keys: KeyBindings, prompt: Prompt, wheel: Wheel) -> None:
    is_asking = Condition(lambda: prompt.asking is not None)
    counts = Condition(lambda: prompt.asking is not None and prompt.asking.state in ("armed", "pressed", "chosen"))
    word = Condition(lambda: prompt.asking is not None and prompt.asking.state == "word")
    keys.add("enter", filter=is_asking, eager=True)(lambda event: _open(prompt).enter())
    keys.add("c-c", filter=is_asking, eager=True)(lambda event: _open(prompt).refuse())
    keys.add("escape", filter=counts | word, eager=True)(lambda event: _open(prompt).refuse())
    keys.add("c-d", filter=is_asking, eager=True)(lambda event: wheel.leave())
    keys.add(Keys.Any, filter=counts, eager=True)(lambda event: _open(prompt).press(_text(event)))


def _bind_table(keys: KeyBindings, prompt: Prompt) -> None:
    looks = Condition(lambda: prompt.browser is not None and prompt.asking is None)
    moves = {"up": -1, "c-p": -1, "down": 1, "c-n": 1, "pageup": -2, "pagedown": 2}
    for key, by in moves.items():
        keys.add(key, filter=looks, eager=True)(lambda event, by=by: _table(prompt).move(by))
    keys.add("enter", filter=looks, eager=True)(lambda event: _table(prompt).enter())
    keys.add("escape", filter=looks, eager=True)(lambda event: _table(prompt).escape())
    keys.add("c-c", filter=looks, eager=True)(lambda event: _table(prompt).escape())
    keys.add("c-d", filter=looks, eager=True)(lambda event: _table(prompt).escape())
    keys.add("backspace", filter=looks, eager=True)(lambda event: _table(prompt).back())
    keys.add(Keys.Any, filter=looks, eager=True)(lambda event: _table(prompt).press(_text(event)))


def _table(prompt: Prompt) -> OpenTable:
    assert prompt.browser is not None
    return prompt.browser


def _open(prompt: Prompt) -> OpenQuestion:
    assert prompt.asking is not None
    return prompt.asking


def _text(event: KeyPressEvent) -> str:
    return event.data if event.key_sequence[0].key == event.data else ""


def _enter(prompt: Prompt, wheel: Wheel) -> None:
    menu = prompt.buffer.complete_state
    if menu and menu.current_completion:
        prompt.buffer.apply_completion(menu.current_completion)
        return
    text = prompt.buffer.text
    if prompt.debug.was_meant(text):
        prompt.bar.hint = _TOO_LATE
    elif text.strip():
        prompt.buffer.reset(append_to_history=True)
        wheel.send(text)


def _stop(prompt: Prompt, wheel: Wheel) -> None:
    if wheel.busy:
        wheel.interrupt()
    elif prompt.buffer.text:
        prompt.buffer.reset()
    elif prompt.bar.hint == _LEAVING:
        wheel.leave()
    else:
        prompt.bar.hint = _LEAVING
