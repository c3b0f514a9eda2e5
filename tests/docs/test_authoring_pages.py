"""The examples of the pages on publishing, on using a host, and on several kinds of plugins work."""

import hashlib
import json
import re
import sys
import threading
import tomllib
import types
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
import sideband_store_sqlite.plugin
from sideband import Host, Plugin, StoreConflict
from sideband.approvals import ApprovalNeeded
from sideband.ledger import query
from sideband.loading import SkillSources
from sideband.ops import OpDenied, OpFailed

PLUGINS, PUBLISHING, PYTHON = "docs/plugins", "docs/publishing.md", "docs/python.md"

pytestmark = pytest.mark.anyio


@contextmanager
def serving(content):
    """Run a server that answers each request with this content, and yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/plain")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_): ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


SKILL = """
name = "door-man"
description = "Greets people."

[tools.greet]
module = "door.py"
description = "Greet a person."
arguments = ["name"]
"""


async def test_example_loader_loads_a_skill_that_runs_and_reports_an_invalid_one(tmp_path, page):
    for name, text in (("door", SKILL), ("broken", 'name = "broken"\n')):
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True)
        (folder / "skill.toml").write_text(text)
    code = (
        "from sideband.skill import tool\n\n@tool\nasync def greet(name: str) -> str:\n    return f'Hello, {name}.'\n"
    )
    (tmp_path / "skills" / "door" / "door.py").write_text(code)
    loader = Plugin("loader", "toml", page(PLUGINS).module("class TomlLoader"))
    async with Host(home=tmp_path / "home", plugins=[loader], skill_dirs=[tmp_path / "skills"]) as host:
        assert await host.call("door_man.greet", name="Ada") == "Hello, Ada."
        problems = [one.reason for one in (await host.skills()).problems if one.code == "toml.invalid"]
        assert problems == ["KeyError: 'description'"]
        plugin = await host.plugins.load("loader", "toml")
        (example,) = plugin.contribution
        codes = {name: [one.code for one in await example.validate(tmp_path / "skills" / name)] for name in FOLDERS}
        assert codes == FOLDERS


FOLDERS = {"door": [], "broken": ["toml.invalid"], "elsewhere": ["skill.manifest.missing"]}


async def test_example_loader_uses_the_first_of_several_skills_with_one_name(tmp_path, page):
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "skill.toml").write_text(SKILL)
    (loader,) = page(PLUGINS).module("class TomlLoader").sideband_loaders()
    loaded = await loader.load(SkillSources(folders=(tmp_path / "two", tmp_path)))
    assert [one.source.name for one in loaded.skills] == ["two"]
    assert {one.code for one in loaded.problems} == {"toml.name"}


async def test_example_loader_fetches_skills_and_compares_their_digests(tmp_path, page):
    manifest = b"---\nname: hello\ndescription: Says hello.\n---\nBe kind.\n"
    loader = Plugin("loader", "fetched", page(PLUGINS).module("class Fetched"))
    with serving(manifest) as url:
        digests = {f"{url}hello.md": hashlib.sha256(manifest).hexdigest(), f"{url}other.md": "0" * 64}
        settings = {"plugins": {"fetched": {"skills": digests}}}
        async with Host(home=tmp_path / "home", plugins=[loader], settings=settings) as host:
            loaded = await host.skills()
            effects = await query(host.ledger.folder, op="http.get")
    assert [one.description for one in loaded.skills if one.origin == "loader fetched"] == ["Says hello."]
    assert [one.code for one in loaded.problems if one.fatal] == ["fetched.changed"]
    assert {one.origin.plugin for one in effects} == {"fetched"}


async def test_example_store_serves_a_host(tmp_path, page):
    plugins = [
        Plugin("store", "memory", page(PLUGINS).module("class MemoryStore")),
        Plugin("op", "clock", clock(page)),
    ]
    async with Host(home=tmp_path, plugins=plugins, autoload=False) as host:
        for _ in range(2):
            assert await host.op("clock.now", {"zone": "UTC"}, key="once")
        assert await host.store.keys()


async def change(store):
    """Append in a transaction that fails."""
    async with store.transaction() as changes:
        await changes.append("s", [{"n": 4}])
        await changes.put("a", {"n": 3}, version=9)


async def test_example_store_checks_versions_and_rolls_transactions_back(tmp_path, page):
    module = page(PLUGINS).module("class MemoryStore")
    async with module.open_memory(tmp_path) as store:
        assert await store.put("a", {"n": 1}, version=0) == 1
        with pytest.raises(StoreConflict):
            await store.put("a", {"n": 2}, version=0)
        with pytest.raises(StoreConflict):
            await store.delete("a", version=7)
        assert (await store.append("s", [{"n": 1}, {"n": 2}]), await store.append("s", [{"n": 3}])) == (0, 2)
        with pytest.raises(StoreConflict):
            await change(store)
        assert (await store.get("a")).value == {"n": 1}
        assert [one.value["n"] for one in await store.read("s", start=1)] == [2, 3]
        async with store.transaction() as changes:
            await changes.delete("a")
        assert await store.get("a") is None


@pytest.fixture
def installed(tmp_path, page, monkeypatch):
    """Return a function that installs an example with a command as a package."""

    def install(name, part):
        site = tmp_path / "site"
        (site / f"sideband_{name}-0.1.dist-info").mkdir(parents=True)
        (site / f"sideband_{name}.py").write_text(page(PLUGINS).example("python", part))
        metadata = {
            "METADATA": f"Metadata-Version: 2.1\nName: sideband-{name}\nVersion: 0.1\n",
            "entry_points.txt": f"[sideband.v1.command]\n{name} = sideband_{name}\n",
        }
        for file, text in metadata.items():
            (site / f"sideband_{name}-0.1.dist-info" / file).write_text(text)
        monkeypatch.syspath_prepend(site)

    return install


def test_example_command_runs(sideband, installed):
    installed("hello", "whom to greet")
    done = sideband("hello", "Ada")
    assert (done.returncode, done.stdout) == (0, "Hello, Ada.\n")


def test_example_command_with_a_host_has_the_shared_options_and_output(sideband, installed):
    installed("count", 'opens="host"')
    done = sideband("count", "skills")
    assert done.returncode == 0
    assert done.stdout.endswith(" skills\n")
    done = sideband("count", "skills", "--json")
    assert json.loads(done.stdout)["skills"] >= 0
    done = sideband("count", "digits", "2", "--set", "policy.timeout=5", "--yes")
    assert 1 <= json.loads(done.stdout)["digits"] <= 5
    done = sideband("count", "digits", "--json", "0")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (2, "op.params")
    done = sideband("count", "skills", "--jason")
    assert (done.returncode, "--json" in done.stderr) == (2, True)


def clock(page):
    module = types.ModuleType("sideband_clock")
    exec(page(PLUGINS).example("python", "class NowParams"), module.__dict__)
    return module


async def test_example_sdk_module_adds_a_function_for_skills(tmp_path, page):
    module = clock(page)
    sdk = tmp_path / "_sdk.py"
    sdk.write_text(page(PLUGINS).example("python", "async def both"))
    family = module.sideband_ops()
    module.sideband_ops = lambda: type(family)(family.name, family.ops, family.scope, sdk=sdk)
    folder = tmp_path / "skills" / "trip"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: trip\ndescription: Plans trips.\nmetadata:\n  sideband.capabilities: clock\n---\n"
    )
    (folder / "trip.py").write_text(
        "from sideband.skill import clock, tool\n\n@tool\nasync def times() -> list[str]:\n"
        "    return await clock.both('UTC', 'Europe/Vienna')\n"
    )
    settings = {"grants": {"trip": ["clock"]}}
    plugin = Plugin("op", "clock", module)
    home = tmp_path / "home"
    async with Host(home=home, plugins=[plugin], skill_dirs=[tmp_path / "skills"], settings=settings) as host:
        first, second = await host.call("trip.times")
    assert (first[-6:], second[-6:-4]) == ("+00:00", "+0")


class Weather(BaseHTTPRequestHandler):
    """A service that knows Graz."""

    def do_GET(self):
        known = self.path == "/Graz"
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"celsius": 21, "latitude": 47, "longitude": 15.4}).encode())

    def log_message(self, *_):
        """Print nothing."""


@pytest.fixture
def service():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Weather)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_example_family_makes_requests_with_the_rights_of_the_call(tmp_path, page, service):
    plugin = Plugin("op", "weather", page(PLUGINS).module("class WeatherParams"))
    settings = {"plugins": {"weather": {"url": service}}}
    grants = ["weather", "http:host=127.0.0.1"]
    async with Host(home=tmp_path, plugins=[plugin], settings=settings) as host:
        assert await host.op("weather.now", {"city": "Graz"}, grants=grants) == 21.0
        with pytest.raises(OpFailed, match=r"does not know 'Linz\?'") as caught:
            await host.op("weather.now", {"city": "Linz?"}, grants=grants)
        assert caught.value.code == "weather.unknown"
        with pytest.raises(OpDenied):
            await host.op("weather.now", {"city": "Graz"}, grants=["weather"])


async def test_example_family_makes_requests_with_rights_of_its_own(tmp_path, page, service):
    plugin = Plugin("op", "geo", page(PLUGINS).module("class PlaceParams"))
    (right,) = tomllib.loads(page(PLUGINS).example("toml", "plugin:geo"))["grants"]["plugin:geo"]
    settings = {"plugins": {"geo": {"url": service}}}
    given = {**settings, "grants": {"plugin:geo": [right.replace("geo.example", "127.0.0.1")]}}
    async with Host(home=tmp_path / "home", plugins=[plugin], settings=given) as host:
        assert await host.op("geo.locate", {"place": "Graz"}, grants=["geo"]) == [47.0, 15.4]
        with pytest.raises(OpDenied):
            await host.op("http.get", {"url": service}, grants=["geo"])
    async with Host(home=tmp_path / "other", plugins=[plugin], settings=settings) as host:
        with pytest.raises(ApprovalNeeded):
            await host.op("geo.locate", {"place": "Graz"}, grants=["geo", "http"])


async def test_example_guard_reads_its_configuration(tmp_path, page):
    guard = page(PLUGINS).module("class QuietHours")
    guard.datetime = SimpleNamespace(now=lambda: SimpleNamespace(hour=7))
    settings = {"plugins": {"quiet": {"first_hour": 8}}}
    async with Host(home=tmp_path, plugins=[Plugin("guard", "quiet", guard)], settings=settings) as host:
        with pytest.raises(OpDenied, match="before 8:00"):
            await host.op("http.get", {"url": "http://127.0.0.1:9/"})


async def test_example_program_undoes_an_effect(tmp_path, page, monkeypatch, capsys):
    monkeypatch.setenv("SIDEBAND_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(sys.modules, "sideband_board", page(PLUGINS).module("class WriteParams"))
    await page(PYTHON).module("sideband_board").main()
    planned, undone = capsys.readouterr().out.splitlines()
    assert planned == "['restore the previous text of the board'] ()"
    assert undone == "restore the previous text of the board done"
    assert (tmp_path / "home" / "board.txt").read_text() == ""


async def test_example_test_of_a_plugin_passes(tmp_path, page, monkeypatch):
    monkeypatch.setitem(sys.modules, "sideband_clock", clock(page))
    module = page(PUBLISHING).module("OpDenied")
    plugins = [
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
        Plugin("op", "clock", sys.modules["sideband_clock"]),
    ]
    await module.test_grant_restricts_the_zone(tmp_path, plugins)


async def test_example_of_allowed_plugins_leaves_a_working_host(tmp_path, page):
    import tomllib

    policy = tomllib.loads(page(PLUGINS).example("toml", "only ="))["policy"]
    async with Host(home=tmp_path, settings={"policy": policy}) as host:
        assert host.plugins.names("store") == ("sqlite",)
        assert host.plugins.names("op") == ("secrets",)
        assert not host.plugins.names("guard")
        (http,) = host.plugins.why("http", kind="op")
        assert (http.state.value, http.reason) == ("denied", "this machine has no network")


def test_each_kind_of_plugin_has_a_page_with_an_example_and_what_its_author_needs(page, root):
    table = (root / "docs" / "plugins.md").read_text().partition("\n## ")[0]
    kinds = [f"docs/{place}" for place in re.findall(r"\]\((plugins/[\w-]+\.md)\)", table)]
    assert len(kinds) == 12
    for place in kinds:
        needed = page(place).section("Configuration, context, errors and tests")
        words = re.findall(r"^- \*\*(\w+)\.\*\*", needed, re.MULTILINE)
        assert {"Configuration", "Context", "Errors", "Tests"} <= set(words), place
        assert page(place).examples("python"), place
