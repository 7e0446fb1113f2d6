"""Pictures for the tests, and those in a request."""

from base64 import b64encode
from typing import Any

from tests.kit import Seen
from tests.kit.pictures import png

RED = png(40, 30, color=(200, 0, 0))
BLUE = png(40, 30, color=(0, 0, 200))
CAPTION = f"[picture photo.png: PNG, 40 × 30, {len(RED)} bytes]"
URL = f"data:image/png;base64,{b64encode(RED).decode()}"


def parts_of(seen: Seen) -> list[dict[str, Any]]:
    """Return the pictures in a request."""
    content = [row["content"] for row in seen.messages if isinstance(row.get("content"), list)]
    return [part for parts in content for part in parts if part["type"] == "image_url"]


def sees(*urls: str) -> Any:  # Any: a predicate
    """Expect these pictures in a request."""

    def look(seen: Seen) -> str | None:
        came = [part["image_url"]["url"] for part in parts_of(seen)]
        return None if came == [*urls] else f"it has {len(came)} pictures: {came}"[:400]

    return look
