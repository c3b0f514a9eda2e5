import hashlib
import random
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.hooks import hookimpl
from sideband.host import Host
from sideband.plugins import (
    EntryPoint,
    GuardMissing,
    Lock,
    LockInvalid,
    Plugin,
    PluginDenied,
    PluginDrifted,
    PluginHost,
    PluginPolicy,
    State,
    StrictPluginError,
    list_plugins,
    read_lock,
)
from sideband.plugins._discovery import decide

pytestmark = pytest.mark.anyio

GUARD = """
    from sideband.hooks import hookimpl
    class Guard:
        @hookimpl
        def op_call(self, event): return None
    def sideband_guards(): return Guard
"""


def records(home):
    return {one.label: one for one in list_plugins(home, PluginPolicy())[0]}


async def test_plugin_that_is_not_in_the_lock_is_denied_and_the_others_load(site, locked, home):
    site.echo("tidal")
    other = site.plugin("op", "other", "raise RuntimeError('imported')")
    locked.write("op.tidal")
    async with PluginHost(home=home) as plugins:
        assert (await plugins.load("op", "tidal")).record.locked
        with pytest.raises(PluginDenied, match="is not in the lock of this environment") as caught:
            await plugins.load("op", "other")
    assert caught.value.record.decided_by == "lock"
    assert other not in sys.modules


IN_A_PROCESS = """
import os
import sys
from pathlib import Path

import anyio

folder = Path(sys.argv[1])
sys.prefix = str(folder)

from sideband.plugins import PluginError, PluginHost, PluginPolicy
from sideband.settings import load_settings, trust_plugins, trust_project

home = folder / "home"
trust_plugins(home, [folder / "notes.py"])
trust_project(home, folder)
flags = {"policy": {"only": ["*"], "files": {"hook.notes": str(folder / "notes.py")}}}
settings = load_settings(home, project=folder, environment=os.environ, flags=flags)


async def main():
    for policy in (settings.plugin_policy(), PluginPolicy(only=frozenset("*"), files=flags["policy"]["files"])):
        async with PluginHost(policy, home=home) as plugins:
            await plugins.load("op", "tidal")
            for record in plugins.records:
                if record.label != "op.tidal":
                    try:
                        await plugins.load(record.kind, record.name)
                    except PluginError as error:
                        assert error.code == "plugin.denied", error
                        print(record.label)


anyio.run(main)
assert not [name for name in sys.modules if name in sys.argv[2:] or name.startswith("sideband_file_")]
"""


def test_plugin_that_is_not_in_the_lock_is_never_imported_however_it_is_named(site, locked, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    modules = [site.plugin(kind, "evil", "", distribution=f"evil-{kind}") for kind in ("hook", "guard", "op")]
    modules.append(site.plugin("hook", "another", "", folder=elsewhere))
    site.echo("tidal")
    locked.write("op.tidal")
    (tmp_path / "notes.py").write_text("")
    (tmp_path / "home").mkdir()
    for folder in (tmp_path / "home", tmp_path):
        config = f'[policy]\nonly = ["*"]\n[policy.files]\n"hook.notes" = "{tmp_path / "notes.py"}"\n'
        (folder / "sideband.toml").write_text(config)
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS, tmp_path, *modules],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": f"{site.folder}:{elsewhere}", "SIDEBAND_POLICY__ONLY": '["*"]'},
    )
    assert done.returncode == 0, done.stderr
    assert {"hook.another", "hook.evil", "guard.evil", "op.evil", "hook.notes"} <= set(done.stdout.split())


async def test_changed_file_of_a_locked_plugin_is_refused_by_name_and_not_imported(site, locked, home):
    module = site.echo("tidal")
    locked.write("op.tidal")
    path = site.folder / f"{module}.py"
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text(path.read_text() + "# changed\n")
    after = hashlib.sha256(path.read_bytes()).hexdigest()
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginDrifted, match=rf"test-tidal 1\.0: {module}\.py has changed") as caught:
            await plugins.load("op", "tidal")
    assert before in caught.value.message
    assert after in caught.value.message
    assert (caught.value.exit_code, caught.value.record.state) == (5, State.FAILED)
    assert module not in sys.modules


async def test_file_that_changes_after_the_host_has_started_is_refused(site, locked, home):
    module = site.echo("tidal")
    locked.write("op.tidal")
    async with PluginHost(home=home) as plugins:
        (site.folder / f"{module}.py").write_text("raise RuntimeError('imported')")
        with pytest.raises(PluginDrifted, match="has changed"):
            await plugins.load("op", "tidal")


async def test_missing_and_additional_files_of_a_package_are_named(packages, site, locked, home):
    package = packages("acme")
    package.write(1, {"plugin": "{ops}"})
    locked.write("op.acme")
    (package.folder / "_late.py").unlink()
    (package.folder / "extra").mkdir()
    (package.folder / "extra" / "__init__.py").write_text("")
    (package.folder / "__pycache__").mkdir()
    (package.folder / "__pycache__" / "plugin.pyc").write_bytes(b"")
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginDrifted) as caught:
            await plugins.load("op", "acme")
    name = package.module
    assert caught.value.differences == (
        f"test-acme 1.0: {name}/_late.py is missing",
        f"test-acme 1.0: {name}/extra/__init__.py is not in the lock",
    )


async def test_link_to_a_folder_within_a_locked_package_is_not_in_the_lock(packages, site, locked, home, tmp_path):
    package = packages("acme")
    package.write(1, {"plugin": "{ops}"})
    locked.write("op.acme")
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "__init__.py").write_text("raise RuntimeError('imported')")
    (package.folder / "extra").symlink_to(tmp_path / "evil")
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginDrifted) as caught:
            await plugins.load("op", "acme")
    assert caught.value.differences == (f"test-acme 1.0: {package.module}/extra is not in the lock",)


async def test_package_that_a_plugin_needs_is_compared_too(site, locked, home):
    helper = site.module("VALUE = 1")
    site.distribution("test-helper", {"sideband.v1.skill": {"helper": helper}}, modules=[helper])
    module = site.plugin("op", "tidal", f"import {helper}", requires=["test-helper"])
    locked.write("op.tidal", "skill.helper")
    text = locked.file.read_text()
    name = 'name = "test-tidal"\nversion'
    assert name in text
    locked.file.write_text(text.replace(name, 'name = "test-tidal"\nrequires = ["test-helper"]\nversion'))
    (site.folder / f"{helper}.py").write_text("VALUE = 2")
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginDrifted, match=rf"test-helper 1\.0: {helper}\.py has changed"):
            await plugins.load("op", "tidal")
    assert not {module, helper} & set(sys.modules)


async def test_module_elsewhere_on_the_path_does_not_replace_that_of_a_locked_plugin(
    site, locked, home, tmp_path, monkeypatch
):
    module = site.echo("tidal")
    locked.write("op.tidal")
    other = tmp_path.with_name(f"{tmp_path.name}-other")
    other.mkdir()
    (other / f"{module}.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(other))
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginDrifted, match=f"would import `{module}` from {other}"):
            await plugins.load("op", "tidal")
    shutil.rmtree(other)


async def test_distribution_of_the_same_name_outside_the_environment_is_refused(site, locked, home, monkeypatch):
    site.echo("tidal")
    locked.write("op.tidal")
    monkeypatch.setattr(sys, "prefix", str(home))
    locked.file.rename(home / "sideband.lock")
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginDrifted, match="outside the locked environment"):
            await plugins.load("op", "tidal")


async def test_bytecode_in_a_folder_that_a_variable_names_is_not_used(site, locked, home, monkeypatch):
    site.echo("tidal")
    locked.write("op.tidal")
    monkeypatch.setattr(sys, "pycache_prefix", str(home))
    async with PluginHost(home=home) as plugins:
        await plugins.load("op", "tidal")
    assert sys.pycache_prefix is None


async def test_other_version_and_missing_package_are_problems_that_stop_a_strict_host(site, locked, home):
    site.echo("tidal")
    site.echo("gone")
    locked.write("op.tidal", "op.gone")
    shutil.rmtree(site.folder / "test_tidal-1.0.dist-info")
    shutil.rmtree(site.folder / "test_gone-1.0.dist-info")
    site.distribution("test-tidal", {"sideband.v1.op": {"tidal": "nothing"}}, version="2.0")
    found = records(home)["op.tidal"]
    assert (found.state, found.reason) == (State.FAILED, "test-tidal 2.0 is installed, but the lock has 1.0")
    with pytest.raises(StrictPluginError) as caught:
        async with Host(home=home):
            pass
    assert "test-tidal 2.0 is installed, but the lock has 1.0" in caught.value.message
    assert "test-gone 1.0, which is in the lock, is not installed" in caught.value.message
    assert caught.value.exit_code == 5


async def test_locked_owner_keeps_a_contested_name(site, locked, home):
    site.echo("tidal")
    locked.write("op.tidal")
    intruder = site.plugin("op", "tidal", "raise RuntimeError('imported')", distribution="a-intruder")
    policy = PluginPolicy(conflicts={"op.tidal": "a-intruder"})
    inline = Plugin("op", "tidal", SimpleNamespace())
    async with PluginHost(policy, home=home, inline=[inline]) as plugins:
        assert (await plugins.load("op", "tidal")).record.distribution == "test-tidal"
        reasons = {one.distribution: one.reason for one in plugins.why("tidal")}
    assert reasons["a-intruder"] == reasons["inline"] == "the lock gives this name to test-tidal"
    assert intruder not in sys.modules


async def test_program_that_embeds_a_host_may_pass_plugins_of_its_own(site, locked, home):
    locked.write()

    class Guard:
        @hookimpl
        def op_call(self, event):
            return None

    inline = Plugin("guard", "mine", SimpleNamespace(sideband_guards=lambda: Guard))
    async with PluginHost(home=home, inline=[inline]) as plugins:
        assert plugins.active("guard", "mine")


async def test_local_file_is_denied_in_a_locked_environment(locked, home, tmp_path):
    locked.write()
    (tmp_path / "notes.py").write_text("raise RuntimeError('imported')")
    async with PluginHost(PluginPolicy(files={"hook.notes": str(tmp_path / "notes.py")}), home=home) as plugins:
        (found,) = plugins.why("notes")
    assert (found.state, found.decided_by) == (State.DENIED, "lock")


def test_reason_for_a_plugin_that_the_lock_denies_is_that_of_the_team(site, locked, home):
    site.echo("tidal")
    locked.write(settings={"policy": {"deny": {"op.tid*": "too wet for us"}}})
    assert records(home)["op.tidal"].reason == "too wet for us"


def test_policy_can_deny_locked_plugins(site, locked, home):
    site.echo("tidal")
    locked.write("op.tidal")
    found, _ = list_plugins(home, PluginPolicy(deny={"op.tidal": "not now"}))
    assert [(one.state, one.reason) for one in found if one.name == "tidal"] == [(State.DENIED, "not now")]


def test_editable_installation_of_a_locked_package_is_refused(site, locked, home):
    site.echo("tidal")
    locked.write("op.tidal")
    info = site.folder / "test_tidal-1.0.dist-info"
    (info / "direct_url.json").write_text('{"dir_info": {"editable": true}}')
    assert "editable installation" in records(home)["op.tidal"].reason


def test_changed_entry_point_of_a_locked_plugin_is_refused(site, locked, home):
    site.echo("tidal")
    locked.write("op.tidal")
    (site.folder / "test_tidal-1.0.dist-info" / "entry_points.txt").write_text("[sideband.v1.op]\ntidal = os\n")
    assert "its entry point is `os`" in records(home)["op.tidal"].reason


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("version = 2\n", "its version is 2, and this core reads version 1"),
        ("= 1\n", "it is not TOML"),
        ("", "its version is None"),
        ("version = 1\n", "it is damaged"),
        ("version = 1\nplugins = []\npackages = [1]\n", "it is damaged"),
    ],
)
async def test_nothing_loads_with_a_lock_that_cannot_be_used(locked, home, content, problem):
    locked.file.write_text(content)
    with pytest.raises(LockInvalid, match=problem) as caught:
        async with PluginHost(home=home):
            pass
    assert caught.value.exit_code == 5
    with pytest.raises(LockInvalid):
        Host(home=home)


async def test_lock_that_is_a_broken_link_is_not_the_absence_of_one(locked, home):
    locked.file.symlink_to("nowhere")
    with pytest.raises(LockInvalid, match="cannot be read"):
        Host(home=home)


def test_unchanged_lock_is_read_once(locked):
    locked.write()
    lock = read_lock(str(locked.file))
    assert read_lock(str(locked.file)) is lock
    locked.write(settings={"agent": {"turns": 3}})
    assert read_lock(str(locked.file)).settings == {"agent": {"turns": 3}}


@pytest.mark.parametrize("state", ["missing", "failed", "denied"])
async def test_host_does_not_start_without_a_required_guard(site, home, state):
    if state != "missing":
        site.plugin("guard", "watch", "raise RuntimeError('broken')" if state == "failed" else GUARD)
    policy = {"guards": ["watch"], "deny": {"guard.watch": "unwanted"} if state == "denied" else {}}
    with pytest.raises(GuardMissing, match="the required guard `watch`") as caught:
        async with Host(home=home, settings={"policy": policy}):
            pass
    assert (caught.value.exit_code, caught.value.guard) == (5, "watch")


async def test_host_starts_with_a_required_guard(site, home):
    site.plugin("guard", "watch", GUARD)
    async with PluginHost(PluginPolicy(guards=frozenset({"watch"})), home=home) as plugins:
        assert plugins.active("guard", "watch")


@pytest.mark.parametrize(
    "options", [{}, {"autoload": False}, {"settings": {"policy": {"guards": [], "strict": False}}}]
)
async def test_guard_that_the_lock_requires_cannot_be_given_up(site, locked, home, options):
    site.plugin("guard", "watch", GUARD)
    locked.write("guard.watch", settings={"policy": {"guards": ["watch"]}})
    shutil.rmtree(site.folder / "test_watch-1.0.dist-info")
    fake = Plugin("guard", "watch", SimpleNamespace(sideband_guards=lambda: type("Guard", (), {})))
    with pytest.raises(GuardMissing, match="`watch`"):
        async with Host(home=home, plugins=[fake], **options):
            pass


POINTS = [EntryPoint(1, kind, name, f"m_{name}", f"d-{name}", "1") for kind in ("op", "hook") for name in "abcd"]


@given(st.permutations(POINTS), st.integers())
def test_decisions_and_order_do_not_depend_on_the_order_of_installation(points, seed):
    random.Random(seed).shuffle(points)
    expected = [(one.label, one.distribution, one.state) for one in decide(sorted(POINTS), (), PluginPolicy())]
    found = [(one.label, one.distribution, one.state) for one in decide(points, (), PluginPolicy())]
    assert found == expected


ORDER = """
import os
import sys
from pathlib import Path

import anyio
from sideband.plugins import PluginHost

scan = os.listdir
os.listdir = lambda *words: sorted(scan(*words), reverse=bool(int(sys.argv[2])))


async def main():
    async with PluginHost(home=Path(sys.argv[1])) as plugins:
        print([one.label for one in plugins.records if "order" in one.distribution])
        print([one.plugin for one in plugins.hooks.order("op_call") if one.plugin[1:].isdigit()])


anyio.run(main)
"""


def test_order_does_not_depend_on_installation_file_system_or_hash_seed(tmp_path):
    found = set()
    for seed, reverse in ((1, False), (2, True), (3, False)):
        folder = tmp_path / str(seed)
        names = [f"g{number}" for number in range(6)]
        random.Random(seed).shuffle(names)
        for name in names:
            info = folder / f"order_{name}-1.0.dist-info"
            info.mkdir(parents=True)
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: order-{name}\nVersion: 1.0\n")
            (info / "entry_points.txt").write_text(f"[sideband.v1.guard]\n{name} = order_{name}\n")
            (folder / f"order_{name}.py").write_text(dedent(GUARD))
        done = subprocess.run(
            [sys.executable, "-c", ORDER, folder / "home", str(int(reverse))],
            capture_output=True,
            text=True,
            check=False,
            env={"PYTHONPATH": str(folder), "PYTHONHASHSEED": str(seed)},
        )
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    (only,) = found
    assert only.splitlines()[1] == str([f"g{number}" for number in range(6)])


def test_lock_is_readable_without_an_environment(tmp_path):
    file = tmp_path / "sideband.lock"
    file.write_text("version = 1\nplugins = []\npackages = []\n")
    assert isinstance(read_lock(str(file)), Lock)
    assert Path(read_lock(str(file)).file) == file
