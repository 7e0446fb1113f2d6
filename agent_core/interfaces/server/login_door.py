"""How a browser is let in: a link is made by who can do everything, and used once, by the page that it leads to."""

from starlette.requests import Request
from starlette.responses import Response

from sandbox.wire.foreign import MESSAGE, Malformed, read_json

from .identity import NotAllowed, Sessions
from .responses import error_response, failure, json_response


class LoginDoor:
    """Makes login links, and gives a cookie and its key for one."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def link(self, url: str) -> str:
        """Return a login link of the server at an address."""
        return f"{url}/login?code={self._sessions.link()}"

    async def new_link(self, request: Request) -> Response:
        """Answer with a login link, if the identity may do everything that the page can."""
        identity = request.scope["identity"]
        if not identity.may_log_in:
            message = (
                f"The page can do everything, so its links need all scopes and agents; `{identity.name}` has less."
            )
            return failure(NotAllowed(message, fix="Type `knapper login` where the workspace is."))
        return json_response({"login": self.link(f"{request.url.scheme}://{request.headers['host']}")})

    async def log_in(self, request: Request) -> Response:
        """Answer with the key of a new login, and set its cookie; the body has the code of a link.

        It is no GET, so that what looks a link over before a person opens it does not use it up.
        """
        given = self._sessions.log_in(await _code(request))
        if given is None:
            message = "This login link was used already, or is too old."
            return error_response(403, "used-link", message, "Another one, where the workspace is: knapper login")
        cookie, key = given
        answer = json_response({"key": key})
        name, is_secure = self._sessions.cookie, request.url.scheme == "https"
        answer.set_cookie(name, cookie, httponly=True, samesite="strict", secure=is_secure, path="/")
        return answer


async def _code(request: Request) -> str:
    try:
        value = read_json(await request.body(), MESSAGE)
    except Malformed:
        return ""
    code = value.get("code") if isinstance(value, dict) else None
    return code if isinstance(code, str) else ""
