"""What tests of the agent's commands share: written turns, and a terminal with a person before it."""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyte
import pytest

ROWS, COLUMNS = 50, 80
PATIENCE = 20
# The terminal has to be the session's own for Ctrl-C to be a signal.
AT_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from sideband.__main__ import main
sys.exit(main())
"""
GREET = "from sideband.skill import tool\n@tool\nasync def greet(name: str) -> str:\n    return f'hello {name}'\n"


@pytest.fixture
def hello(make_skill):
    """A skill with the tool ``hello.greet``."""
    return make_skill("hello", GREET)


@pytest.fixture
def turns(tmp_path):
    """The options for a model that says these turns, in order."""

    def write(*spoken, **model):
        file = tmp_path / "turns.json"
        # TOML is written as JSON where both agree: strings, numbers, lists; tables are inline.
        lines = ["[models.test]", *(f"{name} = {toml(value)}" for name, value in model.items())]
        file.with_suffix(".toml").write_text("\n".join([*lines, f"turns = {toml(list(spoken))}", ""]))
        return ["--model", "scripted:test", "--set", f"plugins.scripted.script={file.with_suffix('.toml')}"]

    return write


def toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


@pytest.fixture
def plugin(tmp_path):
    """Writes a distribution with one plugin; returns the environment in which it is found."""
    site = tmp_path / "site"

    def make(name, group, code):
        module = f"plugin_{name.replace('-', '_')}"
        info = site / f"{module}-1.0.dist-info"
        info.mkdir(parents=True)
        (site / f"{module}.py").write_text(code)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[sideband.v1.{group}]\n{name} = {module}\n")
        return {"PYTHONPATH": str(site)}

    return make


class Gate(BaseHTTPRequestHandler):
    """Answers once it is opened."""

    def do_GET(self):
        self.server.reached.set()
        self.server.opened.wait(PATIENCE)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def gate(make_skill):
    """A skill with the tool ``gate.wait``, which waits until the gate is opened."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Gate)
    server.reached, server.opened = threading.Event(), threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    code = (
        "from sideband.skill import http, tool\n@tool\nasync def wait() -> str:\n"
        f"    await http.get('http://127.0.0.1:{server.server_port}/')\n    return 'open'\n"
    )
    server.folder = make_skill("gate", code, "http:host=127.0.0.1")
    yield server
    server.opened.set()
    server.shutdown()
    thread.join()
    server.server_close()


class Terminal:
    """A process at a terminal of its own, and what the screen shows."""

    def __init__(self, words, environment):
        self._master, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._inside = inside
        self.settings = termios.tcgetattr(inside)
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._screen.write_process_input = lambda data: os.write(self._master, data.encode())
        self._stream = pyte.ByteStream(self._screen)
        self.written = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", AT_TERMINAL, *map(str, words)],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            env=environment,
            cwd=environment["HOME"],
            start_new_session=True,
        )

    @property
    def text(self):
        return "\n".join(line.rstrip() for line in self._screen.display).strip()

    def type(self, text):
        os.write(self._master, text.encode())

    def say(self, text):
        """Type a line, and send it once it is there: what comes too quickly may meet a terminal that is being drawn."""
        self.type(text)
        self.wait_for(text[-20:])
        self.type("\r")

    def wait_for(self, *texts):
        """Read until the screen shows all of these."""
        until = time.monotonic() + PATIENCE
        while not all(text in self.text for text in texts):
            assert time.monotonic() < until, f"{texts} never came:\n{self.text}"
            assert self._read(until), f"{texts} never came before its end:\n{self.text}"

    def wait(self):
        """Read until the process ends; its exit code."""
        until = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < until, f"it does not end:\n{self.text}"
            self._read(time.monotonic() + 0.05)
        while self._read(time.monotonic() + 0.05):
            pass
        return self.process.returncode

    def is_restored(self):
        """Whether the terminal is as it was found."""
        return termios.tcgetattr(self._inside) == self.settings

    def _read(self, until):
        ready, _, _ = select.select([self._master], [], [], max(0, until - time.monotonic()))
        if not ready:
            return False
        data = os.read(self._master, 65_536)
        self.written += data
        self._stream.feed(data)
        return bool(data)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
        os.close(self._inside)


@pytest.fixture
def terminal(tmp_path):
    """Starts the command line at a terminal; see ``Terminal``."""
    opened = []

    def start(*words, **environment):
        base = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "SIDEBAND_HOME": str(tmp_path / "home"),
            "TERM": "xterm-256color",
        }
        opened.append(Terminal(words, {**base, **environment}))
        return opened[-1]

    yield start
    for one in opened:
        one.close()
