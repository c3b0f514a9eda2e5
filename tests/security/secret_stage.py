"""Servers for a secret, and functions that search for leaks of it.

Loaded by ``test_secret_leaks.py`` and ``test_secret_skills.py``.
"""

import base64
import json
import os
import socketserver
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote, quote_plus

CANARY = 'c4n4ry/+"q"\\z&=%99-5ab3'


def forms(value):
    """Return the value and its encodings in other texts, independent of those that the redactor searches for."""
    raw = value.encode()
    plain = {value, raw.hex(), raw.hex().upper(), quote(value, safe=""), quote(value), quote_plus(value)}
    plain |= {json.dumps(value)[1:-1], json.dumps(json.dumps(value))[3:-3], repr(value + "'")[1:-2]}
    plain |= {"".join(f"%{byte:02x}" for byte in raw), "".join(f"\\u{ord(letter):04x}" for letter in value)}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for offset in range(3):
            # The neighboring bytes affect the first and the last characters.
            plain.add(encode(b"\0" * offset + raw + b"\0\0").decode()[4 if offset else 0 : -4])
    return plain


def seen_in(text, value=CANARY):
    """Return the encodings of the value that occur in a text or in bytes."""
    raw = text if isinstance(text, bytes) else text.encode(errors="replace")
    return sorted(form for form in forms(value) if form.encode() in raw)


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def handle_error(self, *_):
        pass


@contextmanager
def serve(answer):
    """Run a loopback server that sends the bytes of ``answer(path, token)``, and records requests."""
    requests = []

    class Handler(socketserver.StreamRequestHandler):
        timeout = 30

        def handle(self):
            lines = [self.rfile.readline()]
            while (line := self.rfile.readline()).strip():
                lines.append(line)
            headers = {
                name.strip().lower(): value.strip()
                for name, _, value in (line.decode("latin-1").partition(":") for line in lines[1:])
            }
            body = self.rfile.read(int(headers.get("content-length", "0")))
            requests.append(b"".join(lines) + b"\r\n" + body)
            path = lines[0].decode("latin-1").split(" ")[1]
            with suppress(OSError):
                self.wfile.write(answer(path, headers.get("authorization", "").removeprefix("Bearer ").encode()))

    with _Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield SimpleNamespace(origin=f"http://127.0.0.1:{server.server_address[1]}", requests=requests)
        finally:
            server.shutdown()
            thread.join()


def ok(body, *headers):
    """Return an ordinary response."""
    lines = [b"HTTP/1.1 200 OK", b"Connection: close", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def written_below(folder):
    """Return the files below a folder that contain the secret."""
    return {
        str(path.relative_to(folder)): found
        for path in Path(folder).rglob("*")
        if path.is_file() and not path.is_symlink() and (found := seen_in(path.read_bytes()))
    }


def processes_with_secret():
    """Return the processes whose arguments or environment contain the secret."""
    found = []
    for process in Path("/proc").iterdir():
        for name in ("cmdline", "environ"):
            with suppress(OSError):
                if process.name.isdigit() and seen_in((process / name).read_bytes()):
                    found.append(f"{process.name}: {name}")
    return found


def temporary_files():
    """Return the files of this user in the temporary folder that contain the secret."""
    return {
        path: found
        for path in Path(os.environ.get("TMPDIR", "/tmp")).glob("*")
        if path.is_file() and path.stat().st_uid == os.geteuid() and (found := seen_in(path.read_bytes()))
    }
