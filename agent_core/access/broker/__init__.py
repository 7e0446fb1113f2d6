"""The broker, the only way out of a worker: it fetches for a function, from the hosts that were granted to it.

A URL is read once, a name is resolved once, every address is checked, and the connection goes to one that was.
Nothing of the host is lent: no proxy, no netrc, no cookie, no kept connection. Bodies are handed on piece by piece,
and decoded by nobody here.
"""

from agent_core.base.late import late_names

__getattr__ = late_names(
    __name__,
    {
        "broker": "Broker FetchSession",
        "caps": "FetchCaps",
        "log": "RequestLog",
    },
)
