"""One played demonstration: a function made, called, and its result told. Data.

A model of 1.5 billion parameters does with an example what it does not do with a rule: with the
instructions alone it solved 1 of 10 requests, with this before the conversation 7 (notes in ADR 0007).
The texts of the answers are those that the program really gives.
"""

import json
from typing import Final

from ..messages import Answer, Assistant, Call, Message, User

_CODE: Final = '''\
def swap_ends(text: str) -> str:
    """Swap the first and the last character of a text.

    Args:
        text: The text to change.

    Returns:
        The text with its ends swapped.

    >>> swap_ends("abc")
    'cba'
    >>> swap_ends("lamp")
    'paml'
    """
    if len(text) < 2:
        return text
    return text[-1] + text[1:-1] + text[0]
'''

DEMONSTRATION: Final[tuple[Message, ...]] = (
    User("Make a function that swaps the first and the last character of a text. What does it make of 'garden'?"),
    Assistant(
        "",
        (
            Call(
                "demonstration-1",
                "create_function",
                json.dumps(
                    {"function_name": "swap_ends", "function_code_with_docstring": _CODE},
                    ensure_ascii=False,
                    separators=(",", ":"),
                ),
            ),
        ),
        "No function for this yet: I write swap_ends, general, with hints, docstring and two examples.",
    ),
    Answer(
        "demonstration-1",
        "create_function",
        "`swap_ends` is ready: it passed the gate, and its 2 examples agreed.\n"
        "Next: call swap_ends with the user's data.",
    ),
    Assistant(
        "", (Call("demonstration-2", "swap_ends", '{"text":"garden"}'),), "It is ready, so I call it with 'garden'."
    ),
    Answer("demonstration-2", "swap_ends", '"nardeg"\nIf this answers the user, reply now.'),
    Assistant("I made `swap_ends`. It turns 'garden' into 'nardeg'.", (), "That is the result: I tell it."),
)
