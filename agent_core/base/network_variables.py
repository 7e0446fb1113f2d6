"""The variables of this machine that decide how others are reached: proxies, certificates, addresses and keys.

The packages that use them fail with errors of their own, without a name. So each is checked here first: one that
cannot be used is one sentence with its name and the fix, and one that is not needed stops nothing. No text has a
password or a key in it.
"""

import os
import re
import ssl
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from .errors import KnapperError
from .own_environment import environment
from .own_installation import add_extra
from .records import dataclass
from .untrusted import one_line

if TYPE_CHECKING:
    import httpx2

CERTIFICATE_FILE: Final = "SSL_CERT_FILE"
CERTIFICATE_FOLDER: Final = "SSL_CERT_DIR"
_PROXIED: Final = ("http", "https", "all")
_PROXY_SCHEMES: Final = ("http", "https", "socks5", "socks5h")
_QUOTES: Final = "\"'`“”„‘’«»"
_LOGIN: Final = re.compile(r"//[^/?#]*@")
_KEY: Final = re.compile(r"[!-~]*")  # what a header takes
_MAX_SHOWN: Final = 200
_HOST: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[\w-]+(\.[\w-]+)*\.?)(?P<port>:\d*)?")
_TOP_LEVEL: Final = range(2, 25)  # letters of the last part of a host's name
_NEAR: Final = (
    "localhost",
    "local",
    "lan",
    "internal",
    "home",
    "arpa",
)  # names that only a local network knows
_KEY_FORM: Final = re.compile(r"[A-Za-z0-9_.=+~-]+")


class UnusableVariable(KnapperError):
    """A variable of this machine cannot be used; the message names it."""

    code = "machine-variable"


@dataclass(frozen=True, slots=True)
class ProxyChoice:
    """The proxy for an address, and the variable that names it."""

    variable: str
    url: str

    def for_client(self) -> "httpx2.Proxy":
        """Return the proxy as the HTTP client takes it.

        Raises:
            UnusableVariable: the certificates for a secure proxy cannot be read.
        """
        import httpx2  # noqa: PLC0415 - the HTTP client is slow to import

        return httpx2.Proxy(
            self.url, ssl_context=certificates() if self.url.startswith("https:") else None
        )


def masked_address(address: str) -> str:
    """Return an address for people, without the login in it."""
    return one_line(_LOGIN.sub("//…@", address), _MAX_SHOWN)


def checked_address(address: str) -> str:
    """Return the address of an endpoint, without blanks around it.

    Raises:
        UnusableVariable: no request can be sent to it.
    """
    address = address.strip()
    if why := _misfit(address, ("http", "https")):
        name = _variable_with(address)
        where = f"The address in {name}" if name else "The address"
        fix = f"Correct {name or 'it'}: it looks like http://127.0.0.1:8080/v1."
        raise UnusableVariable(
            f"{where} cannot be used ({masked_address(address)}): {why}.", fix=fix
        )
    return address


def whole_address(text: str) -> str:
    """Return what a person typed with its scheme, if it has the form of an address; "" if not.

    A name without dots and port, such as `myserver`, has that form only before a slash: it may as well be a key.
    On this machine or in its network, the scheme is http; elsewhere https, since a key is sent there.
    """
    text = text.strip()
    if "://" in text:
        return text
    place, slash, path = text.partition("/")
    bare = f"[{place}]" if _is_ip(place) and ":" in place else place
    match = _HOST.fullmatch(bare)
    if match is None:
        return ""
    host, port = match["host"], match["port"]
    last = host.rstrip(".").rpartition(".")[2]
    is_number = _is_ip(host.strip("[]")) or ("." in host and last.isdecimal())
    is_name = (
        "." in host
        and last.isalpha()
        and last in (last.lower(), last.upper())
        and len(last) in _TOP_LEVEL
    )
    if not (is_number or is_name or port is not None or slash or host.lower() == "localhost"):
        return ""
    is_near = _is_near(host.strip("[]").lower(), last.lower())
    return f"http{'' if is_near else 's'}://{bare}{f'/{path}' * bool(path)}".rstrip("/")


def _is_ip(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_near(host: str, last: str) -> bool:
    """Check whether a host is this machine or in its network."""
    return not ip_address(host).is_global if _is_ip(host) else "." not in host or last in _NEAR


def has_form_of_key(text: str) -> bool:
    """Check whether a text may be a key: it is neither an address nor a path, and has no blanks."""
    return (
        _KEY_FORM.fullmatch(text) is not None and not whole_address(text) and text.strip(".") != ""
    )


def checked_key(key: str) -> str:
    """Return a key or token, without blanks around it.

    Raises:
        UnusableVariable: it cannot be sent.
    """
    key = key.strip()
    if _KEY.fullmatch(key):
        return key
    name = _variable_with(key)
    odd = next(character for character in key if not _KEY.fullmatch(character))
    what = "a blank or a line end" if odd.isspace() else f"`{one_line(odd)}`"
    fix = f"Set {name or 'it'} again, without quotes and line ends."
    raise UnusableVariable(
        f"The key{f' in {name}' * bool(name)} cannot be sent: it has {what} in it.", fix=fix
    )


def proxy_for(address: str) -> ProxyChoice | None:
    """Return the proxy for an address, by the variables of this machine; None if it is reached directly.

    Raises:
        UnusableVariable: the proxy cannot be used.
    """
    import httpx2  # noqa: PLC0415 - the HTTP client is slow to import
    from httpx2._utils import URLPattern, get_environment_proxies  # noqa: PLC0415 - the same

    # As the package chooses, with exceptions such as NO_PROXY; it would reject all for one that is not needed.
    target, rows = httpx2.URL(address), get_environment_proxies()
    patterns = sorted(map(URLPattern, rows))
    value = next((rows[pattern.pattern] for pattern in patterns if pattern.matches(target)), None)
    if value is None:
        return None
    schemes = (target.scheme, "all")
    variable = next(
        filter(None, map(_proxy_variable, schemes)), "the proxy settings of this system"
    )
    return ProxyChoice(variable, _checked_proxy(variable, value))


def certificates() -> ssl.SSLContext:
    """Return a context that verifies certificates against those that this machine trusts.

    Raises:
        UnusableVariable: a variable names certificates that cannot be read.
    """
    try:
        return _certificates(
            os.environ.get(CERTIFICATE_FILE, ""), os.environ.get(CERTIFICATE_FOLDER, "")
        )
    except (OSError, ValueError) as error:  # of which `ssl.SSLError` is one
        name = CERTIFICATE_FILE if os.environ.get(CERTIFICATE_FILE) else CERTIFICATE_FOLDER
        raise _unusable_certificates(name, error) from error


@cache
def _certificates(_file: str, _folder: str) -> ssl.SSLContext:
    """Return the context for these variables, which the package reads: loading takes tens of milliseconds."""
    import httpcore2  # noqa: PLC0415 - the HTTP client is slow to import

    return httpcore2.default_ssl_context()


def unusable_variables() -> Iterator[UnusableVariable]:
    """Yield what is wrong with the proxies and certificates that are set here, also if nothing needs them now."""
    proxies = filter(None, map(_proxy_variable, _PROXIED))
    checks: list[Callable[[], object]] = [
        partial(_checked_proxy, name, os.environ[name]) for name in proxies
    ]
    folder = os.environ.get(CERTIFICATE_FOLDER)
    checks.append(certificates)
    for check in checks:
        try:
            check()
        except UnusableVariable as error:
            yield error
    is_used = folder and not os.environ.get(CERTIFICATE_FILE)
    if folder and is_used and not any(Path(place).is_dir() for place in folder.split(os.pathsep)):
        yield _unusable_certificates(CERTIFICATE_FOLDER, FileNotFoundError())


def _checked_proxy(variable: str, value: str) -> str:
    address = value if "://" in value else f"http://{value}"
    address = re.sub(r"^socks://", "socks5://", address.strip())  # as desktops write it
    why, fix = (
        _misfit(address, _PROXY_SCHEMES),
        f"Correct {variable}, or unset it: it looks like http://host:8080.",
    )
    if not why and address.startswith("socks") and find_spec("socksio") is None:
        why, fix = "the package for SOCKS is not installed", f"Type: {add_extra('socks')}"
    if why:
        raise UnusableVariable(
            f"The proxy in {variable} cannot be used ({masked_address(value)}): {why}.", fix=fix
        )
    return address


def _misfit(address: str, schemes: tuple[str, ...]) -> str:
    """Return why nothing can be sent to an address; empty if it can."""
    if any(character in _QUOTES for character in address):
        return "it has quotes in it"
    if not address.isprintable() or " " in address:
        return "it has a blank or a line end in it"
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        about = str(error).partition(":")[0]
        return "its port is no number up to 65535" if "ort" in about else "it is no address"
    if parts.scheme not in schemes:
        return f"it begins with none of {', '.join(f'{scheme}://' for scheme in schemes)}"
    if not parts.hostname:
        return "it names no host"
    return "its port is 0" if port == 0 else ""


def _proxy_variable(scheme: str) -> str:
    """Return the variable that is set for the proxy of a scheme; empty if none is."""
    return next(
        (name for name in (f"{scheme}_proxy", f"{scheme.upper()}_PROXY") if os.environ.get(name)),
        "",
    )


def _variable_with(value: str) -> str:
    """Return the first variable that has this value; empty if none has, for example because a file has it."""
    return next(
        (name for name, other in sorted(environment().items()) if value and other.strip() == value),
        "",
    )


def _unusable_certificates(variable: str, error: OSError | ValueError) -> UnusableVariable:
    path = os.environ.get(variable, "")
    match error:
        case FileNotFoundError():
            why = "there is nothing"
        case IsADirectoryError():
            why = "that is a folder"
        case PermissionError():
            why = "it may not be read"
        case _:
            why = "it holds no certificate"
    fix = f"Correct {variable}, or unset it to trust the certificates of this system."
    return UnusableVariable(f"{variable} names {one_line(path, _MAX_SHOWN)}, and {why}.", fix=fix)
