"""A simulated internet: a name server whose answers change, and a web server at public and private addresses.

Runs in namespaces in which 93.184.216.34 is an address of the loopback interface. So tests can observe which address
a request reaches, without patching the host.
"""

import ctypes
import fcntl
import json
import os
import socket
import socketserver
import struct
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import anyio
import sideband_http._addresses._resolving
import sideband_http.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.ops import OpError

PUBLIC, PRIVATE, HERE = "93.184.216.34", "10.0.0.1", "127.0.0.1"
A, CNAME, AAAA = 1, 5, 28
ANSWERS = {
    "public.test": [[(A, PUBLIC)]],
    "private.test": [[(A, PRIVATE)]],
    "flipping.test": [[(A, PUBLIC)], [(A, HERE)], [(A, PRIVATE)], [(A, PUBLIC)]],
    "both.test": [[(A, PUBLIC), (A, PRIVATE)]],
    "mapped.test": [[(AAAA, "::ffff:127.0.0.1")]],
    "alias.test": [[(CNAME, "private.test"), (A, PRIVATE)]],
    "zero.test": [[(A, "0.0.0.0")]],
    "six.test": [[(AAAA, "::1"), (A, PUBLIC)]],
}


def enter_namespaces():
    libc = ctypes.CDLL(None, use_errno=True)
    user = 0 if os.geteuid() == 0 else 0x1000_0000
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(user | 0x4000_0000 | 0x0002_0000):
        raise OSError(ctypes.get_errno(), "unshare")
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    if libc.mount(None, b"/", None, 0x4000 | 0x4_0000, None):
        raise OSError(ctypes.get_errno(), "make mounts private")
    for name, content in [("resolv.conf", f"nameserver {HERE}\noptions timeout:1 attempts:1\n"), ("hosts", "")]:
        file = Path(tempfile.mkdtemp()) / name
        file.write_text(content)
        if libc.mount(bytes(file), f"/etc/{name}".encode(), None, 0x1000, None):
            raise OSError(ctypes.get_errno(), f"mount {name}")


def raise_interface():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, 0x8914, struct.pack("16sh22x", b"lo", 0x41))
        for number, address in enumerate([PUBLIC, PRIVATE]):
            name = f"lo:{number}".encode()
            packed = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))
            fcntl.ioctl(one, 0x8916, struct.pack("16s16s8x", name, packed))


class NameServer(socketserver.BaseRequestHandler):
    """Answers successive queries for a name with successive answers."""

    lookups: ClassVar = []
    lock = threading.Lock()

    def handle(self):
        data, sock = self.request
        labels, position = [], 12
        while length := data[position]:
            labels.append(data[position + 1 : position + 1 + length].decode())
            position += 1 + length
        kind = struct.unpack(">H", data[position + 1 : position + 3])[0]
        name = ".".join(labels).lower()
        found = [one for one in self.next(name, kind) if one[0] in {kind, CNAME}]
        if name == "silent.test":
            return
        # Records after a CNAME belong to its target.
        aliases = [value for what, value in found if what == CNAME]
        records = [self.record(aliases if what != CNAME else [], what, value) for what, value in found]
        status = 0x8180 if name in ANSWERS else 0x8183
        head = data[:2] + struct.pack(">HHHHH", status, 1, len(records), 0, 0)
        sock.sendto(head + data[12 : position + 5] + b"".join(records), self.client_address)

    def next(self, name, kind):
        with self.lock:
            self.lookups.append((name, kind))
            times = sum(one == (name, kind) for one in self.lookups)
        answers = ANSWERS.get(name, [[]])
        return answers[min(times, len(answers)) - 1]

    def record(self, aliases, kind, value):
        owner = encoded(aliases[0]) if aliases else b"\xc0\x0c"
        if kind == CNAME:
            content = encoded(value)
        else:
            content = socket.inet_pton(socket.AF_INET if kind == A else socket.AF_INET6, value)
        return owner + struct.pack(">HHLH", kind, 1, 0, len(content)) + content


def encoded(name):
    return b"".join(bytes([len(one)]) + one.encode() for one in name.split(".")) + b"\0"


class Web(BaseHTTPRequestHandler):
    """Returns the address at which it was reached."""

    seen: ClassVar = []

    def do_GET(self):
        here = self.connection.getsockname()[0]
        self.seen.append((here, self.headers["host"]))
        moved = self.path.startswith("/to/")
        self.send_response(302 if moved else 200)
        if moved:
            self.send_header("Location", self.path.removeprefix("/to/"))
        self.send_header("Content-Length", str(len(here)))
        self.end_headers()
        self.wfile.write(here.encode())

    def log_message(self, *_):
        pass


def serve():
    for server in (
        socketserver.ThreadingUDPServer((HERE, 53), NameServer),
        ThreadingHTTPServer(("", 80), Web),
    ):
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()


async def ask(host, url, grants, **params):
    """Return the response or the error code, the addresses reached and the names looked up."""
    reached, lookups = len(Web.seen), len(NameServer.lookups)
    try:
        answer = (await host.op("http.get", {"url": url, **params}, grants=grants))["body"]
    except OpError as error:
        answer = error.code
    return {
        "result": answer,
        "reached": [place for place, _ in Web.seen[reached:]],
        "lookups": sorted({name for name, _ in NameServer.lookups[lookups:]}),
    }


async def main(home):
    plugins = [
        Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
        Plugin(kind="op", name="http", value=sideband_http.plugin),
    ]
    sideband_http._addresses._resolving._CACHE_SECONDS = -1.0
    results = {}
    async with Host(home=home, plugins=plugins, autoload=False) as host:
        for name in sorted(ANSWERS):
            times = len(ANSWERS[name])
            results[name] = [await ask(host, f"http://{name}/", [f"http:host={name}"]) for _ in range(times)]
        for target in (
            "http://private.test/",
            f"http://{PRIVATE}/",
            f"http://{HERE}/",
            "http://both.test/",
            "//six.test/",
        ):
            url = f"http://public.test/to/{target}"
            results[f"to {target}"] = await ask(host, url, ["http"])
        results["granted"] = await ask(host, "http://private.test/", ["http:host=private.test,network=private"])
        results["not granted by name"] = await ask(host, "http://private.test/", ["http:host=public.test"])
        results["unknown"] = await ask(host, "http://unknown.test/", ["http"])
        results["silent"] = await ask(host, "http://silent.test/", ["http"], timeout=0.2)
    return results


if __name__ == "__main__":
    enter_namespaces()
    raise_interface()
    serve()
    print(json.dumps(anyio.run(main, Path(sys.argv[1]))))
