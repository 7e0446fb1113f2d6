"""Pictures at the prompt: `@photo.png` goes along, with its caption told; what cannot be sent is told, too."""

from pathlib import Path

from tests.interfaces.asking import home
from tests.interfaces.support import prompt
from tests.kit import Expect, Say
from tests.pictures.support import RED, URL, sees


def test_a_named_picture_is_sent_with_the_message(tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(RED)
    (tmp_path / "half.png").write_bytes(RED[:40])
    script = [Expect(Say("Red."), sees(URL)), Expect(Say("Still red."), sees(URL))]
    with prompt(script, tmp_path, environment=home(tmp_path), columns=120) as (screen, _):
        screen.do("What is @photo.png", "Red.")
        assert "with photo.png: PNG, 40 × 30" in screen.scrolled()
        screen.do("And @half.png", "Still red.")
        assert "half.png is not sent: it is broken: it is cut off" in screen.scrolled()
