"""Projects with a different name from their modules, as data: import name → normalized name of the project."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ..grants.value import project

PROJECTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Crypto": "pycryptodome",
        "Cryptodome": "pycryptodomex",
        "MySQLdb": "mysqlclient",
        "OpenSSL": "pyopenssl",
        "PIL": "pillow",
        "Levenshtein": "levenshtein",
        "attr": "attrs",
        "bs4": "beautifulsoup4",
        "cairo": "pycairo",
        "cpuinfo": "py-cpuinfo",
        "cv2": "opencv-python-headless",
        "dateutil": "python-dateutil",
        "dns": "dnspython",
        "docx": "python-docx",
        "dotenv": "python-dotenv",
        "faiss": "faiss-cpu",
        "fitz": "pymupdf",
        "git": "gitpython",
        "github": "pygithub",
        "google.auth": "google-auth",
        "google.cloud.bigquery": "google-cloud-bigquery",
        "google.cloud.storage": "google-cloud-storage",
        "google.protobuf": "protobuf",
        "grpc": "grpcio",
        "jose": "python-jose",
        "jwt": "pyjwt",
        "ldap": "python-ldap",
        "magic": "python-magic",
        "mpl_toolkits": "matplotlib",
        "multipart": "python-multipart",
        "nacl": "pynacl",
        "odf": "odfpy",
        "pkg_resources": "setuptools",
        "pptx": "python-pptx",
        "psycopg2": "psycopg2-binary",
        "pylab": "matplotlib",
        "pythoncom": "pywin32",
        "pywt": "pywavelets",
        "pyximport": "cython",
        "rest_framework": "djangorestframework",
        "ruamel.yaml": "ruamel-yaml",
        "serial": "pyserial",
        "shapefile": "pyshp",
        "skimage": "scikit-image",
        "sklearn": "scikit-learn",
        "slugify": "python-slugify",
        "snappy": "python-snappy",
        "telegram": "python-telegram-bot",
        "tlz": "toolz",
        "usb": "pyusb",
        "websocket": "websocket-client",
        "wx": "wxpython",
        "yaml": "pyyaml",
        "zmq": "pyzmq",
    }
)


def project_of(name: str) -> str:
    """Return the normalized project of a dotted import: a well-known one, else one with the module's name."""
    parts = name.split(".")
    heads = (".".join(parts[:size]) for size in range(len(parts), 0, -1))
    return next((PROJECTS[head] for head in heads if head in PROJECTS), project(parts[0]))
