"""The log of outgoing requests: who asked, the target and the result; private, of limited size, without secrets."""

import stat
from pathlib import Path

from agent_core.access.broker.broker import MOST_LOG_BYTES, RequestLog


def kept(folder: Path) -> RequestLog:
    return RequestLog(folder, lambda text: text.replace("s3cret", "[secret KEY]"), lambda: 0.5)


def test_a_line_of_the_private_file_has_time_and_mask_and_no_control_character(tmp_path: Path) -> None:
    kept(tmp_path)("weather: GET a.b/s3cret\x1b[2J\nother: GET c.d/: 200")
    text = (tmp_path / "requests.log").read_text()
    assert text == "1970-01-01T00:00:00.500Z weather: GET a.b/[secret KEY]\\x1b[2J\\nother: GET c.d/: 200\n"
    assert stat.S_IMODE((tmp_path / "requests.log").stat().st_mode) == 0o600


def test_a_full_file_makes_room_and_the_one_before_goes(tmp_path: Path) -> None:
    (tmp_path / "requests.log").write_text("x" * (MOST_LOG_BYTES - 10))
    (tmp_path / "requests.log.1").write_text("oldest")
    log = kept(tmp_path)
    log("first")
    log("second")
    assert [line.split()[1] for line in (tmp_path / "requests.log").read_text().splitlines()] == ["first", "second"]
    assert (tmp_path / "requests.log.1").read_text().startswith("xxx")


def test_a_link_in_its_place_is_not_written_through_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "else").write_text("kept")
    (tmp_path / "requests.log").symlink_to(tmp_path / "else")
    kept(tmp_path)("weather: GET a.b/")
    assert (tmp_path / "else").read_text() == "kept"
