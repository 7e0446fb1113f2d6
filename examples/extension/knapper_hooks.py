"""A door of the server: whoever posts a text to /hooks/AGENT has told it to that agent. See docs/extending.md."""

from starlette.requests import Request

from agent_core.api.agent_host import Rooms
from agent_core.api.http_door import HttpAnswer, HttpDoor, HttpRoute


class HooksDoor(HttpDoor):
    """Takes what other programs report, such as a build that failed: `curl --data-binary @log …/hooks/main`."""

    def __init__(self, rooms: Rooms) -> None:
        self.rooms = rooms

    def routes(self) -> tuple[HttpRoute]:
        """Return the one path; a token needs the scope `chat` for it."""
        return (HttpRoute("/hooks/{agent}", self.take, methods=("POST",), scopes=("chat",)),)

    async def take(self, request: Request) -> HttpAnswer:
        """Keep the text on disk as a message to the agent, which answers it when it can."""
        identity = request.scope["identity"]
        agent = await self.rooms.known(request.path_params["agent"], identity)
        text = (await request.body()).decode("utf-8", "replace")
        posted = await self.rooms.host.post(agent, text, identity=identity)
        return HttpAnswer({"event": posted.event}, 202)


DOORS = {"hooks": HooksDoor}
