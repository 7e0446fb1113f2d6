"""What is typed, pasted or suggested from the history, shown without anything that acts on the screen."""

from bisect import bisect_right
from itertools import accumulate

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

from agent_core.untrusted import visible


class Escaped(Processor):
    """Draws such characters in their escaped form; the text itself stays what it is."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """One line of the input as it is drawn, and which place in it is which."""
        fragments = transformation_input.fragments
        text = fragment_list_to_text(fragments)
        if visible(text) == text:
            return Transformation(fragments)
        shown: StyleAndTextTuples = [(each[0], visible(each[1])) for each in explode_text_fragments(fragments)]
        ends = list(accumulate((len(each[1]) for each in shown), initial=0))
        return Transformation(
            shown,
            source_to_display=lambda at: ends[min(at, len(ends) - 1)],
            display_to_source=lambda at: bisect_right(ends, at) - 1,
        )
