"""The workspace's own packages: resolved and shown for approval, pinned with hashes, installed by pip."""

from agent_core.base.late import late_names

__getattr__ = late_names(
    __name__,
    {
        "environment": "Environment",
        "resolution": "PackagesError Pin Resolution",
    },
)
