"""The records of loaded plugins in the ledger."""

import hashlib
import json
import re

import pytest
import sideband_store_sqlite.plugin
from sideband import Host
from sideband.ledger import LedgerUnwritable, find, loads, verify
from sideband.plugins import Plugin, PluginReloadFailed

pytestmark = pytest.mark.anyio

STORE = Plugin("store", "sqlite", sideband_store_sqlite.plugin, "test-store", "9")
READS_THE_LEDGER = """
    from pathlib import Path
    segments = sorted(Path({ledger!r}).glob("*.jsonl"))
    assert '"plugin":"hook.early"' in segments[-1].read_text()
    from sideband.hooks import hookimpl

    @hookimpl
    def settled(event):
        pass
"""


@pytest.fixture
def open_host(home):
    def make(**options):
        """Return a host that loads the plugins of the test only."""
        return Host(home=home, settings={"policy": {"only": ["test-*"]}}, plugins=[STORE], **options)

    return make


def plain(entry):
    return {name: entry.fields.get(name) for name in ("plugin", "distribution", "version", "status")}


async def test_load_is_recorded_before_the_code_is_imported_with_its_provenance(site, home, open_host):
    module = site.plugin("hook", "early", READS_THE_LEDGER.format(ledger=str(home / "ledger")))
    site.echo("acme", version="2.1", direct_url=json.dumps({"url": "https://me:token@example.org/a.whl?key=1#sha"}))
    record = (site.folder / "test_acme-2.1.dist-info" / "RECORD").read_bytes()
    async with open_host() as host:
        assert host.plugins.active("hook", "early") is not None
        await host.op("acme.say", {})
        found = await loads(host.ledger.folder)
        verdict = await verify(host.ledger.folder, host.store)
    assert verdict.ok
    acme, early, store = found
    assert acme.fields["plugin"] == "op.acme"
    assert plain(store) == {
        "plugin": "store.sqlite",
        "distribution": "test-store",
        "version": "9",
        "status": "begun",
    }
    expected = {
        "plugin": "op.acme",
        "distribution": "test-acme",
        "version": "2.1",
        "digest": hashlib.sha256(record).hexdigest(),
        "installer": "by-hand",
        "location": str(site.folder),
        "source": "https://example.org/a.whl",
        "principal": "user",
        "status": "begun",
    }
    assert {name: acme.fields[name] for name in expected} == expected
    assert early.fields["value"] == module
    assert "token" not in str(found)


async def test_failures_and_reloads_are_recorded_with_the_version_that_they_replace(package, open_host):
    package.write_ops(1)
    async with open_host() as host:
        assert await host.op("acme.pair", {}) == [1, 1, 1, 1, 1]
        package.write_ops(2)
        await host.reload("acme")
        package.write(3, {"plugin": "raise RuntimeError('no luck')"})
        with pytest.raises(PluginReloadFailed):
            await host.reload("acme")
        assert await host.op("acme.pair", {}) == [2, 2, 2, 2, 2]
        found = await loads(host.ledger.folder, plugin="op.acme")
    steps = [(one.fields["version"], one.fields["status"], one.fields.get("replaces")) for one in reversed(found)]
    assert steps == [("1.0", "begun", None), ("2.0", "begun", "1.0"), ("3.0", "begun", "2.0"), ("2.0", "failed", "2.0")]
    assert "RuntimeError: no luck" in found[0].fields["error"]["message"]


async def test_plugin_that_fails_at_the_start_is_recorded_after_the_secrets_are_known(site, open_host):
    site.plugin("hook", "broken", "raise RuntimeError('no luck')")
    site.plugin("hook", "later", "from sideband.hooks import hookimpl\n@hookimpl\ndef settled(event): pass")
    async with open_host() as host:
        found = await loads(host.ledger.folder, plugin="hook.broken", text="no luck")
        everything = await loads(host.ledger.folder, host=host.ledger.host)
    assert [one.fields["status"] for one in found] == ["failed"]
    assert [one.fields["plugin"] for one in everything] == ["hook.broken", "hook.later", "hook.broken", "store.sqlite"]


async def test_loads_that_cannot_be_recorded_precede_the_next_entry(site, home, open_host, caplog):
    site.echo("acme")
    home.joinpath("ledger").write_text("in the way")
    async with open_host() as host:
        assert len(re.findall("are not recorded yet", caplog.text)) == 1
        with pytest.raises(LedgerUnwritable):
            await host.op("acme.say", {})
        assert host.plugins.active("op", "acme") is not None
        home.joinpath("ledger").unlink()
        await host.op("acme.say", {})
        found = await loads(host.ledger.folder)
        (effect,) = [await find(host.ledger.folder, f"{host.ledger.host}-{number}") for number in (2,)]
    assert [one.fields["plugin"] for one in found] == ["op.acme", "store.sqlite"]
    assert found[0].seq < effect.entries[0].seq


async def test_metadata_of_any_length_is_cut_and_its_control_characters_are_escaped(site, open_host):
    site.echo("acme", direct_url=json.dumps({"url": "file:///\x1b[31m" + "x" * 100_000}))
    async with open_host() as host:
        await host.op("acme.say", {})
        (entry, *_) = await loads(host.ledger.folder, limit=1)
        raw = b"".join(one.read_bytes() for one in host.ledger.folder.glob("*.jsonl"))
    assert len(entry.fields["source"]) == 500
    assert b"\x1b" not in raw
