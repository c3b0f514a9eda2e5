"""Two servers, a secret that is bound to one of them, and everything in which it must not be seen.

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
    """The value as it stands, and as it is written in other texts. Not what the redactor itself looks for."""
    raw = value.encode()
    plain = {value, raw.hex(), raw.hex().upper(), quote(value, safe=""), quote(value), quote_plus(value)}
    plain |= {json.dumps(value)[1:-1], json.dumps(json.dumps(value))[3:-3], repr(value + "'")[1:-2]}
    plain |= {"".join(f"%{byte:02x}" for byte in raw), "".join(f"\\u{ord(letter):04x}" for letter in value)}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for offset in range(3):
            # what stands before and after it makes other characters of the first and of the last ones
            plain.add(encode(b"\0" * offset + raw + b"\0\0").decode()[4 if offset else 0 : -4])
    return plain


def seen_in(text, value=CANARY):
    """In which forms the value stands in a text or bytes."""
    raw = text if isinstance(text, bytes) else text.encode(errors="replace")
    return sorted(form for form in forms(value) if form.encode() in raw)


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def handle_error(self, *_):
        pass


@contextmanager
def serve(answer):
    """A server on loopback that says what ``answer(path, token)`` gives, byte for byte, and keeps what it is told."""
    heard = []

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
            heard.append(b"".join(lines) + b"\r\n" + body)
            path = lines[0].decode("latin-1").split(" ")[1]
            with suppress(OSError):
                self.wfile.write(answer(path, headers.get("authorization", "").removeprefix("Bearer ").encode()))

    with _Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield SimpleNamespace(origin=f"http://127.0.0.1:{server.server_address[1]}", heard=heard)
        finally:
            server.shutdown()
            thread.join()


def ok(body, *headers):
    """An ordinary answer."""
    lines = [b"HTTP/1.1 200 OK", b"Connection: close", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def written_below(folder):
    """All files of a folder in which the secret stands."""
    return {
        str(path.relative_to(folder)): found
        for path in Path(folder).rglob("*")
        if path.is_file() and not path.is_symlink() and (found := seen_in(path.read_bytes()))
    }


def told_by_processes():
    """All processes in whose arguments or environment the secret stands."""
    found = []
    for process in Path("/proc").iterdir():
        for name in ("cmdline", "environ"):
            with suppress(OSError):
                if process.name.isdigit() and seen_in((process / name).read_bytes()):
                    found.append(f"{process.name}: {name}")
    return found


def temporary_files():
    """The files that this user has made in the folder for temporary ones, by name and content."""
    return {
        path: found
        for path in Path(os.environ.get("TMPDIR", "/tmp")).glob("*")
        if path.is_file() and path.stat().st_uid == os.geteuid() and (found := seen_in(path.read_bytes()))
    }
