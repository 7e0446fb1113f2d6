"""Readers for calls that a model writes as text: bare, fenced, tagged, as JSON or as Python, however unusual. Pure.

A call is read only where the calls are the reply: the whole text, or what follows a short lead-in as a tag or
a fence; and only if every one of them names a function that is shown. Else the text stays text.
"""

from .forms import Holder, Shown, meant, unwrapped
from .reply import read_text
from .written import written_calls

__all__ = ["Holder", "Shown", "meant", "read_text", "unwrapped", "written_calls"]
