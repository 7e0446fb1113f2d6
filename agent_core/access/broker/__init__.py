"""The broker, the only way out of a worker: it fetches for a function, from the hosts that were granted to it.

A URL is parsed once, a name is resolved once, every address is checked, and the connection goes to a checked address.
Nothing of the host is used: no proxy, no netrc, no cookie, no kept connection. Bodies are passed on in pieces, without
decoding.
"""

from agent_core.base.late import late_names

__getattr__ = late_names(
    __name__,
    {
        "broker": "Broker FetchSession RequestLog",
        "caps": "FetchCaps",
    },
)
