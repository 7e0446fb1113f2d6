"""What the page is made of: its colors, the libraries beside it, and how its files are sent."""

import gzip
import hashlib
import re
from pathlib import Path

import httpx2

from knapper_ext.server.page_files import FOLDER, PageFiles
from tests.kit.vendored import FOLDER as VENDOR
from tests.kit.vendored import LICENSES, LIST, imports_of, listed

from .conftest import Served

DESIGN = Path(__file__).parents[3] / "docs" / "page" / "design.md"
FIRST_PAINT = 150_000
TOKEN = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")


def tokens() -> dict[str, tuple[str, str]]:
    """Return the colors of the page's style, light and dark."""
    return {
        name: (light, dark)
        for name, light, dark in TOKEN.findall((FOLDER / "style.css").read_text("utf-8"))
    }


def luminance(color: str) -> float:
    """Return how bright a color is, as WCAG 2 has it."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colors."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_each_color_is_documented_and_contrasts_as_the_page_on_design_says() -> None:
    colors, text = tokens(), DESIGN.read_text("utf-8")
    table = text.partition("| what | on |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert len(rows) == 12
    for what, on, needs, *told in rows:
        grounds = re.findall(r"`([\w-]+)`", on)
        least = [
            min(contrast(colors[what.strip("`")][scheme], colors[one][scheme]) for one in grounds)
            for scheme in (0, 1)
        ]
        assert [f"{figure:.1f}" for figure in least] == told, what
        assert min(least) >= float(needs), what
    for name in re.findall(r"`([\w-]+)`", text.partition("| token |")[2].partition("\n\n")[0]):
        if not name.startswith("#"):
            assert all(color in text for color in colors[name]), name


def test_each_library_is_in_the_list_with_its_version_its_license_and_its_hash() -> None:
    rows = listed()
    files = {path.name for path in VENDOR.iterdir()} - {LIST, LICENSES}
    assert files == {row["file"] for row in rows}
    licenses = (VENDOR / LICENSES).read_text("utf-8")
    for row in rows:
        body = (VENDOR / row["file"]).read_bytes()
        assert hashlib.sha256(body).hexdigest() == row["sha256"], row["file"]
        title = body.decode().splitlines()[0]
        assert f"{row['package']} {row['version']}, file {row['path']}" in title
        assert f"{row['package']} {row['version']}" in licenses
        assert row["license"]
        named = [name for name in imports_of(body.decode()) if name.startswith(".")]
        assert {name.removeprefix("./") for name in named} <= files, row["file"]


def test_what_the_first_paint_needs_is_small() -> None:
    files, wanted = PageFiles.read().files, ["style.css", "icon.svg", "app.webmanifest", "app.js"]
    sizes: dict[str, int] = {}
    while wanted:
        name = wanted.pop()
        sizes[name] = len(files[name].packed)
        text = files[name].body.decode()
        named = re.findall(r'^import [^;]*?"\./([\w./-]+)"', text, re.MULTILINE)
        wanted += [each for each in named if each not in sizes and each not in wanted]
    assert "vendor/codemirror-view.js" not in sizes
    assert "vendor/preact.js" in sizes
    assert len(sizes) > 15
    assert sum(sizes.values()) < FIRST_PAINT


async def test_a_file_is_sent_compressed_and_kept_by_the_hash_in_its_address(
    unchanged: Served,
) -> None:
    async with httpx2.AsyncClient(base_url=unchanged.url) as browser:
        first = await browser.get("/")
        assert first.headers["cache-control"] == "no-cache"
        assert "unsafe" not in first.headers["content-security-policy"]
        [address] = re.findall(r'src="(/page/[0-9a-f]{16}/app\.js)"', first.text)
        sent = await browser.get(address)
        assert "immutable" in sent.headers["cache-control"]
        assert sent.headers["content-encoding"] == "gzip"
        assert int(sent.headers["content-length"]) < len(sent.content)
        plain = await browser.get(address, headers={"Accept-Encoding": "identity"})
        assert plain.content == sent.content
        again = await browser.get(address, headers={"If-None-Match": sent.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        old = await browser.get("/page/app.js")
        assert (old.headers["cache-control"], old.content) == ("no-cache", sent.content)
        for nothing in ("/page/0123456789abcdef/app.js", "/page/index.html", "/page/none.js"):
            assert (await browser.get(nothing)).status_code == 404
    assert gzip.decompress(PageFiles.read().files["app.js"].packed) == sent.content
