"""The tour: a scripted endpoint on the loopback that plays a growth session through the real loop.

Its replies are data (`script.toml`); its calls have real effects. It says that it is scripted. `endpoint` imports an
HTTP client, so import it only when the tour is really opened.
"""

__all__: list[str] = []
