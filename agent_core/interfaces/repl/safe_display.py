"""Safe display of what is typed, pasted or suggested from the history: nothing in it acts on the screen.

The text itself stays what it is. Of a line that is very long the two ends are shown, with its length between them:
drawing is repeated at each key, and must not grow with what was pasted.
"""

from bisect import bisect_right
from itertools import accumulate

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

from agent_core.base.untrusted import visible

LONGEST = 2_000
"""Characters of a line that are shown whole."""
_END = 200


class Escaped(Processor):
    """A processor that draws such characters escaped, and shortens very long lines."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Return one line of the input as it is drawn, with the mapping of positions."""
        fragments = transformation_input.fragments
        text = fragment_list_to_text(fragments)
        if len(text) > LONGEST:
            parts = [*text[:_END], text[_END:-_END], *text[-_END:]]
            mark = f"[pasted: {len(text):,} characters]"
            shown: StyleAndTextTuples = [("", visible(part) if len(part) == 1 else mark) for part in parts]
            return _mapped(shown, [len(part) for part in parts])
        if visible(text) == text:
            return Transformation(fragments)
        shown = [(fragment[0], visible(fragment[1])) for fragment in explode_text_fragments(fragments)]
        return _mapped(shown, [1] * len(shown))


def shortened(line: str) -> str:
    """Return a sent line as the prompt shows it again."""
    return line if len(line) <= LONGEST else f"{line[:_END]} [pasted: {len(line):,} characters] {line[-_END:]}"


def _mapped(shown: StyleAndTextTuples, sizes: list[int]) -> Transformation:
    """Return the parts of a line as they are drawn; `sizes` are their lengths in the line itself."""
    starts = list(accumulate(sizes, initial=0))
    ends = list(accumulate((len(fragment[1]) for fragment in shown), initial=0))
    return Transformation(
        shown,
        source_to_display=lambda at: ends[min(bisect_right(starts, at) - 1, len(ends) - 1)],
        display_to_source=lambda at: starts[min(bisect_right(ends, at) - 1, len(starts) - 1)],
    )
