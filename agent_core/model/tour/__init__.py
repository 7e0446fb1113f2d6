"""The tour: a scripted endpoint on the loopback that plays a growth session through the real loop.

What it says is data (`script.toml`); what its calls do is real. It says of itself that it is scripted.
`endpoint` imports an HTTP client, so import it only when the tour is really opened.
"""

__all__: list[str] = []
