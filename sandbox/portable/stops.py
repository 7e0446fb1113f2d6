"""`break now` in the component, where no signal arrives: while a human debugs, running code looks whether one wants it.

It looks at each start of a function and each jump back, most of which cost a counter.
"""

import sys
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final

from ..inside import debugger

_TOOL: Final = 4  # no debugger's, profiler's or coverage tool's
_EVERY: Final = 64  # events between two looks
_NAP_S: Final = 0.05


class _Watch:
    def __init__(self, wanted: Callable[[], bool]) -> None:
        self._wanted = wanted
        self._seen = 0
        self._sleep = time.sleep

    def look(self, _code: CodeType, *_where: object) -> None:
        """Look now and then."""
        self._seen += 1
        if self._seen % _EVERY == 0 and self._wanted():
            self._stop(sys._getframe(1))

    def sleep(self, seconds: float) -> None:
        """Sleep in naps, and look after each."""
        until = time.monotonic() + seconds
        self._sleep(min(seconds, _NAP_S))
        while (left := until - time.monotonic()) > 0:
            if self._wanted():
                self._stop(sys._getframe(1))
            self._sleep(min(left, _NAP_S))

    def _stop(self, frame: FrameType) -> None:
        debugger.stop_at(frame)


_watches: list[_Watch] = []


def watch_for_stops(wanted: Callable[[], bool]) -> None:
    """Look from now on, if nothing looks yet."""
    if _watches:
        return
    _watches.append(watch := _Watch(wanted))
    monitoring: Any = sys.__dict__["monitoring"]  # 3.12's
    monitoring.use_tool_id(_TOOL, "stops")
    for event in (monitoring.events.PY_START, monitoring.events.JUMP):
        monitoring.register_callback(_TOOL, event, watch.look)
    monitoring.set_events(_TOOL, monitoring.events.PY_START | monitoring.events.JUMP)
    time.__dict__["sleep"] = watch.sleep
