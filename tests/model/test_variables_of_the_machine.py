"""Proxies, certificates, addresses and keys that cannot be used: one sentence that names the variable and the fix."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import httpcore2
import pytest

from agent_core.base.network_variables import proxy_for
from knapper.shell.cli import main
from tests.kit import Say, ScriptedModel

URL = "https://models.example.invalid/v1"
PASSWORD = "swordfish"
UNUSABLE = [
    pytest.param("ALL_PROXY", "socks://127.0.0.1:9/", "SOCKS", id="socks-of-a-desktop"),
    pytest.param(
        "ALL_PROXY", f"socks5h://me:{PASSWORD}@127.0.0.1:9/", "SOCKS", id="socks-with-a-password"
    ),
    pytest.param(
        "https_proxy", '"http://127.0.0.1:9"', "it has quotes in it", id="proxy-in-quotes"
    ),
    pytest.param(
        "HTTPS_PROXY",
        f"http://me:{PASSWORD}@127.0.0.1:99999",
        "no number up to 65535",
        id="port-of-a-proxy",
    ),
    pytest.param(
        "HTTPS_PROXY", "http://127.0.0.1:port", "no number up to 65535", id="port-in-words"
    ),
    pytest.param(
        "HTTPS_PROXY", "ftp://127.0.0.1:9", "it begins with none of", id="scheme-of-a-proxy"
    ),
    pytest.param("HTTPS_PROXY", "http://", "it names no host", id="no-host"),
    pytest.param("HTTPS_PROXY", "http://127.0.0.1 :9", "a blank or a line end", id="blank"),
    pytest.param(
        "SSL_CERT_FILE", "/nowhere/cert.pem", "there is nothing", id="no-certificate-file"
    ),
    pytest.param("SSL_CERT_FILE", "{folder}", "that is a folder", id="a-folder-of-certificates"),
    pytest.param(
        "SSL_CERT_FILE",
        "{folder}/knapper.toml",
        "it holds no certificate",
        id="no-certificate-in-it",
    ),
    pytest.param("OPENAI_API_KEY", "“sk-test”", "it has `“` in it", id="key-in-quotes"),
    pytest.param("OPENAI_API_KEY", "sk-te\nst", "a blank or a line end", id="key-of-two-lines"),
    pytest.param(
        "OPENAI_BASE_URL", "https://a.example.invalid:99999/v1", "no number up to 65535", id="port"
    ),
    pytest.param(
        "OPENAI_BASE_URL", f"https://me:{PASSWORD}@[::1/v1", "it is no address", id="bracket"
    ),
    pytest.param("OPENAI_BASE_URL", "https:///v1", "it names no host", id="address-without-host"),
    pytest.param(
        "OPENAI_BASE_URL",
        '"https://a.example.invalid/v1"',
        "it has quotes in it",
        id="address-in-quotes",
    ),
    pytest.param(
        "OPENAI_BASE_URL",
        "a.example.invalid/v1",
        "it begins with none of",
        id="address-without-scheme",
    ),
]


@pytest.fixture
def tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace whose model is at an address, and a machine without proxies."""
    (tmp_path / "knapper.toml").write_text("# not a certificate\n")
    real = getattr(httpcore2.default_ssl_context, "__wrapped__", httpcore2.default_ssl_context)
    monkeypatch.setattr(
        httpcore2, "default_ssl_context", real
    )  # tests share one, whatever the variables say
    for name in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name.upper()}_PROXY", raising=False)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    own = {
        "OPENAI_BASE_URL": URL,
        "OPENAI_API_KEY": "sk-test",
        "KNAPPER_MODEL_NAME": "m",
        "KNAPPER_MODEL_RETRIES": "0",
    }
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def doctor(root: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:  # Any: JSON
    capsys.readouterr()
    main(["doctor", "--json", "-C", str(root)])
    return dict(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize(("name", "value", "why"), UNUSABLE)
def test_a_variable_that_cannot_be_used_is_named_with_the_fix(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    why: str,
) -> None:
    monkeypatch.setenv(name, value.format(folder=tmp_path))
    assert main(["run", "--once", "--message", "hi", "-C", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    report = doctor(tmp_path, capsys)
    for text in (said, f"{report['model']['problem']} {report['model']['fix']}"):
        assert [part in text for part in (name, why, "report it", PASSWORD)] == [
            True,
            True,
            False,
            False,
        ], text
    is_of_the_machine = name not in ("OPENAI_API_KEY", "OPENAI_BASE_URL")
    assert [name in row["problem"] for row in report["network"]["problems"]] == [
        True
    ] * is_of_the_machine


def test_a_proxy_that_nothing_needs_stops_nothing_and_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "ftp://127.0.0.1:9")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    report = doctor(tmp_path, capsys)
    assert report["model"]["ok"]
    assert ["ALL_PROXY" in row["problem"] for row in report["network"]["problems"]] == [True]
    main(["run", "--once", "--message", "hi", "-C", str(tmp_path)])
    assert "cannot be reached through the proxy in HTTPS_PROXY" in capsys.readouterr().err


def test_a_server_of_this_machine_needs_no_variable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "ftp://127.0.0.1:9")
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/cert.pem")
    monkeypatch.setenv("OPENAI_API_KEY", " sk-test\n")
    with closing(ScriptedModel([Say("Hello.")])) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", f" {model.base_url}\n")
        monkeypatch.setenv("KNAPPER_MODEL_NAME", "scripted")
        assert main(["run", "--once", "--message", "hi", "-C", str(tmp_path)]) == 0
        assert "Hello." in capsys.readouterr().out


def test_a_login_in_an_address_is_never_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"https://me:{PASSWORD}@models.example.invalid/v1")
    report = doctor(tmp_path, capsys)
    assert report["model"]["endpoint"] == "https://…@models.example.invalid/v1"
    main(["run", "--once", "--message", "hi", "-C", str(tmp_path)])
    assert PASSWORD not in f"{report} {capsys.readouterr()}"


@pytest.mark.parametrize(
    ("exceptions", "is_proxied"),
    [("", True), ("example.invalid", False), ("*", False), ("other.invalid", True)],
)
def test_the_proxy_of_an_address_is_the_one_that_its_package_would_choose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exceptions: str, is_proxied: bool
) -> None:
    monkeypatch.setenv("all_proxy", "127.0.0.1:9")
    monkeypatch.setenv("no_proxy", exceptions)
    choice = proxy_for(URL)
    assert (choice and (choice.variable, choice.url)) == (
        ("all_proxy", "http://127.0.0.1:9") if is_proxied else None
    )
