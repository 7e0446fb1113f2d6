"""What keys do at the prompt: Enter sends, Alt-Enter breaks the line, Ctrl-C ends the turn, Ctrl-D leaves."""

from typing import Protocol

from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.key_binding import KeyBindings

from .prompt import Prompt


class Wheel(Protocol):
    """What the keys steer."""

    @property
    def busy(self) -> bool:
        """Whether something runs or waits that Ctrl-C ends."""

    def send(self, text: str) -> None:
        """Take what was typed."""

    def interrupt(self) -> None:
        """End the running turn."""

    def leave(self) -> None:
        """End the conversation."""


def bindings(prompt: Prompt, wheel: Wheel) -> KeyBindings:
    """The bindings of a prompt."""
    keys = KeyBindings()
    typing = has_focus(prompt.buffer)
    empty = Condition(lambda: not prompt.buffer.text)
    keys.add("enter", filter=typing)(lambda event: _enter(prompt, wheel))
    keys.add("escape", "enter", filter=typing)(lambda event: prompt.buffer.insert_text("\n"))
    keys.add("c-c", filter=typing)(lambda event: _stop(prompt, wheel))
    keys.add("c-d", filter=typing & empty)(lambda event: wheel.leave())
    return keys


def _enter(prompt: Prompt, wheel: Wheel) -> None:
    menu = prompt.buffer.complete_state
    if menu and menu.current_completion:
        prompt.buffer.apply_completion(menu.current_completion)
        return
    text = prompt.buffer.text
    if text.strip():
        prompt.buffer.reset(append_to_history=True)
        wheel.send(text)


def _stop(prompt: Prompt, wheel: Wheel) -> None:
    if wheel.busy:
        wheel.interrupt()
    elif prompt.buffer.text:
        prompt.buffer.reset()
    else:
        prompt.bar.hint = "Nothing is running. Ctrl-D or /exit leaves."
