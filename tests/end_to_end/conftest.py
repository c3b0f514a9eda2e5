"""Fixtures for tests of the command line: scripted models, plugins, a blocking skill, and a pseudo-terminal."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import termios
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyte
import pytest

from .command_server import CommandServer

ROWS, COLUMNS = 50, 80
TIMEOUT = 20
GREET = "from sideband.skill import tool\n@tool\nasync def greet(name: str) -> str:\n    return f'hello {name}'\n"


@pytest.fixture(scope="session")
def command_server(tmp_path_factory):
    server = CommandServer(tmp_path_factory.mktemp("server"))
    yield server
    server.close()


@pytest.fixture
def sideband(sideband, tmp_path, command_server):
    """Run the command line in a forked process with its own home folder and without a terminal."""

    def run(*words, stdin="", folder=tmp_path, **environment):
        base = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SIDEBAND_HOME": str(tmp_path / "home")}
        return command_server.run(
            [str(word) for word in words], stdin=stdin, folder=folder, environment={**base, **environment}
        )

    run.in_new_interpreter = sideband
    return run


@pytest.fixture
def sideband_process(sideband):
    """Run the installed executable, in a new interpreter."""
    return sideband.in_new_interpreter


@pytest.fixture
def hello(make_skill):
    """The folder of a skill with the tool ``hello.greet``."""
    return make_skill("hello", GREET)


@pytest.fixture
def turns(tmp_path):
    """Return a function that writes a scripted model with these turns and returns the options to use it."""

    def write(*scripted, **model):
        file = tmp_path / "turns.json"
        # JSON is valid TOML for strings, numbers and lists; tables are inline.
        lines = ["[models.test]", *(f"{name} = {toml(value)}" for name, value in model.items())]
        file.with_suffix(".toml").write_text("\n".join([*lines, f"turns = {toml(list(scripted))}", ""]))
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
    """Return a function that writes a distribution with one plugin and returns the environment that finds it."""
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
    """Handles requests once the gate is open."""

    def do_GET(self):
        self.server.reached.set()
        self.server.opened.wait(TIMEOUT)
        self.send_response(204)
        self.end_headers()

    def do_POST(self):
        self.do_GET()

    def log_message(self, *_):
        pass


@pytest.fixture
def gate(make_skill):
    """A server that blocks ``gate.wait``, a read, and ``gate.change`` of the skill in ``folder`` until ``opened``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Gate)
    server.reached, server.opened = threading.Event(), threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    code = (
        "from sideband.skill import http, tool\n@tool\nasync def wait() -> str:\n"
        f"    await http.get('http://127.0.0.1:{server.server_port}/')\n    return 'open'\n"
        f"@tool\nasync def change() -> None:\n    await http.post('http://127.0.0.1:{server.server_port}/')\n"
    )
    server.folder = make_skill("gate", code, "http:host=127.0.0.1")
    yield server
    server.opened.set()
    server.shutdown()
    thread.join()
    server.server_close()


class Terminal:
    """A process at its own pseudo-terminal, and the content of its screen."""

    def __init__(self, server, words, environment, folder, columns):
        self._master, self._inside = pty.openpty()
        self._set_size(columns)
        self.settings = termios.tcgetattr(self._inside)
        self._screen = pyte.Screen(columns, ROWS)
        self._screen.write_process_input = lambda data: os.write(self._master, data.encode())
        self._stream = pyte.ByteStream(self._screen)
        self.written = b""
        self.process = server.start(
            [str(word) for word in words],
            streams=[self._inside] * 3,
            folder=folder,
            environment=environment,
            terminal=True,
        )

    def resize(self, columns):
        """Change the width of the terminal, as a user does with a window."""
        self._screen.resize(columns=columns)
        self._set_size(columns)
        self.process.send_signal(signal.SIGWINCH)

    def _set_size(self, columns):
        fcntl.ioctl(self._inside, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))

    @property
    def text(self):
        return "\n".join(line.rstrip() for line in self._screen.display).strip()

    def type(self, text):
        os.write(self._master, text.encode())

    def say(self, text):
        """Type a line, and press Enter once it is displayed: input during a redraw could be lost."""
        self.type(text)
        self.wait_for(text[-20:])
        self.type("\r")

    def answer(self, question, text):
        """Type an answer once the screen ends with the end of its question: what was typed before is discarded."""
        self._read_until(lambda: self.text.endswith(question), question)
        self.type(text)

    def wait_for(self, *texts):
        """Read until the screen shows all of these texts."""
        self._read_until(lambda: all(text in self.text for text in texts), texts)

    def _read_until(self, condition, awaited):
        until = time.monotonic() + TIMEOUT
        while not condition():
            assert time.monotonic() < until, f"timeout while waiting for {awaited}:\n{self.text}"
            assert self._read(until), f"no more output while waiting for {awaited}:\n{self.text}"

    def wait(self):
        """Read until the process exits and return its exit code."""
        until = time.monotonic() + TIMEOUT
        while self.process.poll() is None:
            assert time.monotonic() < until, f"the process does not exit:\n{self.text}"
            self._read(time.monotonic() + 0.05)
        while self._read(time.monotonic() + 0.05):
            pass
        return self.process.returncode

    def leave(self):
        """Leave a chat."""
        self.type("\x04")
        assert self.wait() == 0
        assert self.is_restored()

    def is_restored(self):
        """Return whether the terminal has its original settings."""
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
def terminal(tmp_path, command_server):
    """Return a function that starts the command line at a ``Terminal``."""
    opened = []

    def start(*words, folder=tmp_path, columns=COLUMNS, **environment):
        base = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "SIDEBAND_HOME": str(tmp_path / "home"),
            "TERM": "xterm-256color",
        }
        opened.append(Terminal(command_server, words, {**base, **environment}, folder, columns))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.fixture
def site(tmp_path):
    """Return a function that writes a distribution with one plugin and returns the folder for the path."""
    folder = tmp_path / "site"
    folder.mkdir()

    def make(distribution, module, code, group, name):
        (folder / f"{module}.py").write_text(code)
        info = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n")
        return folder

    return make


@pytest.fixture
def chat(terminal):
    """Return a function that starts a chat and waits for its prompt."""

    def start(*words, **environment):
        chat = terminal("chat", *words, **environment)
        chat.wait_for("[scripted:test", "\n>")
        return chat

    return start
