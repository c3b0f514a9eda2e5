"""A local file is a plugin only with the content that the user trusts."""

import os
import py_compile
import struct
import sys
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import anyio
import pytest
from sideband import ConfigurationError
from sideband.hooks import Context, ToolCall, Verdict
from sideband.ops import Level
from sideband.plugins import (
    PluginConflict,
    PluginDenied,
    PluginFileInvalid,
    PluginHost,
    PluginImportFailed,
    PluginInvalid,
    PluginPolicy,
    PluginReloadFailed,
    PluginUntrusted,
    State,
    StrictPluginError,
)
from sideband.settings import distrust_plugins, trust_plugins

pytestmark = pytest.mark.anyio

ECHO = """
    from pydantic import BaseModel
    from sideband.ops import OpFamily, op

    class Params(BaseModel):
        text: str = "{text}"

    @op("echo.say")
    async def say(params: Params, ctx) -> str:
        return params.text

    def sideband_ops():
        return OpFamily(name="echo", ops=(say,))
"""
GUARD = """
    from sideband.hooks import hookimpl

    class Guard:
        @hookimpl
        def tool_call(self, event):
            return None

    def sideband_guards():
        return Guard
"""
NOTES = """
    from sideband.hooks import hookimpl

    @hookimpl
    def context(event):
        return (*event.messages, "{text}")
"""


class File:
    """A local file that is a plugin of a host."""

    def __init__(self, home, path, label):
        self.home, self.path, self.label = home, path, label
        path.parent.mkdir(exist_ok=True)

    def write(self, source, text="one", *, trusted=True):
        self.path.write_text(dedent(source).replace("{text}", text))
        if trusted:
            trust_plugins(self.home, [self.path])

    def opened(self, **policy):
        return PluginHost(PluginPolicy(files={self.label: str(self.path)}, **policy), home=self.home, autoload=False)

    def modules(self):
        return [name for name, one in sys.modules.items() if getattr(one, "__file__", "") == str(self.path)]


@pytest.fixture
def file(home, tmp_path):
    """Return a function that makes the file of a plugin."""
    made = []

    def make(label, name="one.py"):
        made.append(File(home, tmp_path / "project" / name, label))
        return made[-1]

    yield make
    for one in made:
        for module in one.modules():
            del sys.modules[module]


async def text_of(plugins):
    (op,) = (await plugins.load("op", "echo")).contribution.ops
    return op.params().text


async def test_trusted_file_is_a_plugin(file):
    echo = file("op.echo")
    echo.write(ECHO)
    async with echo.opened() as plugins:
        assert await text_of(plugins) == "one"
        (record,) = plugins.records
    assert (record.state, record.distribution, record.file) == (State.ACTIVE, str(echo.path), str(echo.path))
    assert record.digest.startswith(record.version)
    assert record.claim == f"the file {echo.path}"


async def test_untrusted_file_is_not_run(file, tmp_path):
    echo = file("op.echo")
    echo.write(f"open({str(tmp_path / 'ran')!r}, 'w')", trusted=False)
    async with echo.opened() as plugins:
        with pytest.raises(PluginUntrusted, match="is not trusted; read it, and run `sideband plugins trust") as caught:
            await plugins.load("op", "echo")
        (record,) = plugins.records
    assert (record.state, record.decided_by, caught.value.code) == (State.FAILED, "trust", "plugin.untrusted")
    assert not (tmp_path / "ran").exists()


async def test_changed_file_must_be_trusted_again(file):
    echo = file("op.echo")
    echo.write(ECHO)
    echo.write(ECHO, "two", trusted=False)
    async with echo.opened() as plugins:
        with pytest.raises(PluginUntrusted, match="has changed since it was trusted"):
            await plugins.load("op", "echo")
    trust_plugins(echo.home, [echo.path])
    async with echo.opened() as plugins:
        assert await text_of(plugins) == "two"


async def test_hosts_in_one_process_have_the_content_that_each_has_checked(file):
    echo = file("op.echo")
    echo.write(ECHO)
    async with echo.opened() as before:
        assert await text_of(before) == "one"
        echo.write(ECHO, "two")
        async with echo.opened() as after:
            assert (await text_of(after), await text_of(before)) == ("two", "one")


async def test_import_of_a_file_leaves_no_finder_behind(file):
    echo = file("op.echo")
    finders = list(sys.meta_path)
    for source in (ECHO, "import missing"):
        echo.write(source)
        async with echo.opened() as plugins:
            with suppress(PluginImportFailed):
                await plugins.load("op", "echo")
    assert sys.meta_path == finders


async def test_file_that_changes_between_check_and_import_is_not_run(file, tmp_path):
    echo = file("op.echo")
    echo.write(ECHO)
    async with echo.opened() as plugins:
        echo.write(f"open({str(tmp_path / 'ran')!r}, 'w')", trusted=False)
        with pytest.raises(PluginFileInvalid, match="it has changed since the host has checked"):
            await plugins.load("op", "echo")
    assert not (tmp_path / "ran").exists()


def let_it_seem_current(compiled, path):
    """Write the time and size of a source file into bytecode, by which Python finds that it is current."""
    content, status = compiled.read_bytes(), path.stat()
    compiled.write_bytes(content[:8] + struct.pack("<II", int(status.st_mtime), status.st_size) + content[16:])


async def test_bytecode_beside_a_trusted_file_is_not_run(file, tmp_path):
    echo = file("op.echo")
    echo.write(f"open({str(tmp_path / 'ran')!r}, 'w')", trusted=False)
    compiled = Path(py_compile.compile(str(echo.path)))
    echo.write(ECHO)
    let_it_seem_current(compiled, echo.path)
    async with echo.opened() as plugins:
        assert await text_of(plugins) == "one"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["one.py", "__init__.py"])
async def test_file_cannot_import_its_neighbors(file, name):
    echo = file("op.echo", name)
    (echo.path.parent / "neighbor.py").write_text("")
    for statement in ("import neighbor", "from . import neighbor", "from .neighbor import x"):
        echo.write(statement)
        async with echo.opened() as plugins:
            with pytest.raises(PluginImportFailed, match=r"cannot be imported: (ModuleNotFound|Import)Error") as caught:
                await plugins.load("op", "echo")
        assert f"correct {echo.path}, and trust it again" in caught.value.hint
    assert echo.modules() == []


async def test_invalid_file_is_corrected_by_the_user(file):
    echo = file("op.echo")
    echo.write("")
    async with echo.opened() as plugins:
        with pytest.raises(PluginInvalid) as caught:
            await plugins.load("op", "echo")
    assert caught.value.hint == f"correct {echo.path}, and trust it again"


def write_pipe(path):
    os.mkfifo(path)


def write_large(path):
    path.write_bytes(b"#" * ((1 << 20) + 1))


@pytest.mark.parametrize(
    ("write", "problem"),
    [
        (lambda path: None, "it cannot be read: No such file or directory"),
        (lambda path: path.mkdir(), "it cannot be read: Is a directory"),
        (write_pipe, "it is not a regular file"),
        (write_large, "it has more than 1 MiB"),
    ],
)
async def test_unusable_file_is_neither_trusted_nor_read_to_its_end(file, write, problem):
    echo = file("op.echo")
    write(echo.path)
    with pytest.raises(PluginFileInvalid, match=problem):
        trust_plugins(echo.home, [echo.path])
    async with echo.opened() as plugins:
        with pytest.raises(PluginFileInvalid, match=problem):
            await plugins.load("op", "echo")
    with pytest.raises(StrictPluginError, match=problem):
        async with echo.opened(strict=True):
            pass


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"# coding: utf-7\n#+AAo-print()", "it declares the encoding utf-7, and must be UTF-8"),
        (b"# coding: no-such\n", "it is not UTF-8"),
        (b"x = '\xff'", "it is not UTF-8"),
        ("\n# \u202e".encode(), r"line 2 contains the invisible character U\+202E"),
        (b"# a comment\rprint()", r"line 1 contains the invisible character U\+000D"),
        (b"x = 1 # \x08", r"line 1 contains the invisible character U\+0008"),
    ],
)
async def test_file_that_may_look_like_other_code_is_not_trusted(file, content, problem):
    echo = file("op.echo")
    echo.path.write_bytes(content)
    with pytest.raises(PluginFileInvalid, match=problem):
        trust_plugins(echo.home, [echo.path])


async def test_text_in_any_language_and_line_ends_of_windows_are_trusted(file):
    echo = file("op.echo")
    echo.path.write_bytes(
        b"\xef\xbb\xbf# -*- coding: utf-8 -*-\r\n" + dedent(ECHO).replace("{text}", "日本 🚀").encode()
    )
    trust_plugins(echo.home, [echo.path])
    async with echo.opened() as plugins:
        assert await text_of(plugins) == "日本 🚀"


async def test_code_for_workers_beside_a_file_is_refused(file):
    echo = file("op.echo")
    (echo.path.parent / "_sdk.py").write_text("")
    source = dedent(ECHO).replace("ops=(say,)", "ops=(say,), sdk=Path(__file__).with_name('_sdk.py')")
    echo.write("from pathlib import Path\n" + source)
    async with echo.opened() as plugins:
        with pytest.raises(PluginInvalid, match="a local file has no `sdk`, since only this file is trusted"):
            await plugins.load("op", "echo")


@pytest.mark.parametrize("name", ["proj 🚀", 'a "quoted" \\ name', "tab\tand\x7f"])
async def test_file_with_any_path_is_trusted(home, tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    echo = File(home, folder / "echo.py", "op.echo")
    echo.write(ECHO)
    async with echo.opened() as plugins:
        assert await text_of(plugins) == "one"


async def test_path_that_cannot_be_stored_changes_nothing(file, tmp_path):
    echo = file("op.echo")
    echo.write(ECHO)
    unreadable = File(echo.home, tmp_path / "project" / os.fsdecode(b"bad\xff.py"), "op.bad")
    with pytest.raises(ConfigurationError, match="its path is not UTF-8"):
        unreadable.write(ECHO)
    async with echo.opened() as plugins:
        assert await text_of(plugins) == "one"


async def test_no_file_is_trusted_if_one_of_them_cannot_be(file):
    echo = file("op.echo")
    echo.write(ECHO, trusted=False)
    with pytest.raises(PluginFileInvalid):
        trust_plugins(echo.home, [echo.path, echo.path.with_name("missing.py")])
    async with echo.opened() as plugins:
        with pytest.raises(PluginUntrusted):
            await plugins.load("op", "echo")


async def test_parent_of_a_linked_folder_is_that_of_its_target(file, tmp_path):
    echo = file("op.echo", "z.py")
    echo.write(ECHO, trusted=False)
    (echo.path.parent / "sub").mkdir()
    (tmp_path / "link").symlink_to(echo.path.parent / "sub")
    (tmp_path / "z.py").write_text("raise SystemExit")
    (path,) = trust_plugins(echo.home, [tmp_path / "link" / ".." / "z.py"])
    assert path == str(echo.path)


async def test_refusal_of_a_hook_file_that_decides_names_its_right_place(file):
    notes = file("hook.notes")
    notes.write(
        NOTES
        + """
    @hookimpl
    def op_call(event):
        return None
    """
    )
    async with notes.opened() as plugins:
        (record,) = plugins.records
    assert "declare that class as `guard.notes` under [policy.files]" in record.reason


@pytest.mark.parametrize("change", ["untrusted", "changed", "missing", "damaged trust"])
async def test_guard_that_is_not_trusted_denies(file, change):
    guard = file("guard.night")
    guard.write(GUARD, trusted=change != "untrusted")
    if change == "changed":
        guard.write(GUARD + "\n    # more", trusted=False)
    if change == "missing":
        guard.path.unlink()
    if change == "damaged trust":
        (guard.home / "trust.toml").write_text("plugins = 5")
    async with guard.opened() as plugins:
        event = ToolCall("1", "notes", {}, level=Level.SAFE)
        decision = await plugins.hooks.decide(event)
    assert decision.verdict is Verdict.DENY
    assert "the guard `night` " in decision.reason


async def test_trusted_guard_decides(file):
    guard = file("guard.night")
    guard.write(GUARD)
    async with guard.opened() as plugins:
        event = ToolCall("1", "notes", {}, level=Level.SAFE)
        assert (await plugins.hooks.decide(event)).verdict is Verdict.ALLOW


async def test_damaged_trust_is_a_problem_of_the_host(file):
    echo = file("op.echo")
    echo.write(ECHO)
    (echo.home / "trust.toml").write_text("plugins = 5")
    async with echo.opened() as plugins:
        assert "`plugins` " in plugins.problems[0]
        assert "expected a table" in plugins.problems[0]
        with pytest.raises(PluginUntrusted):
            await plugins.load("op", "echo")


async def test_distrusted_file_is_not_loaded(file):
    echo = file("op.echo")
    echo.write(ECHO)
    assert distrust_plugins(echo.home, [echo.path]) == {str(echo.path): True}
    assert distrust_plugins(echo.home, [echo.path]) == {str(echo.path): False}
    async with echo.opened() as plugins:
        with pytest.raises(PluginUntrusted, match="the file is not trusted"):
            await plugins.load("op", "echo")


@pytest.mark.parametrize("policy", [{"deny": {"op.echo": "no"}}, {"only": frozenset({"store.*"})}])
async def test_policy_denies_a_trusted_file(file, policy):
    echo = file("op.echo")
    echo.write(ECHO)
    async with echo.opened(**policy) as plugins:
        with pytest.raises(PluginDenied):
            await plugins.load("op", "echo")


async def test_name_of_an_installed_plugin_is_a_conflict_that_the_configuration_resolves(file, site, home):
    site.echo("echo")
    echo = file("op.echo")
    echo.write(ECHO)
    files = {"op.echo": str(echo.path)}
    async with PluginHost(PluginPolicy(files=files), home=home) as plugins:
        with pytest.raises(PluginConflict, match=f"and by the file {echo.path}|by the file {echo.path} and"):
            await plugins.load("op", "echo")
    chosen = PluginPolicy(files=files, conflicts={"op.echo": str(echo.path)})
    async with PluginHost(chosen, home=home) as plugins:
        assert await text_of(plugins) == "one"


async def test_two_plugins_in_one_file_share_its_module(file, home):
    both = file("op.echo")
    both.write(dedent(ECHO) + dedent(NOTES))
    files = {"op.echo": str(both.path), "hook.echo": str(both.path)}
    async with PluginHost(PluginPolicy(files=files), home=home, autoload=False) as plugins:
        await text_of(plugins)
        assert (await plugins.hooks.update(Context(()))).messages == ("one",)
        assert len(both.modules()) == 1


async def test_reload_takes_the_content_that_was_trusted_meanwhile(file):
    echo = file("op.echo")
    echo.write(ECHO)
    async with echo.opened() as plugins:
        assert await text_of(plugins) == "one"
        echo.write(ECHO, "two")
        (record,) = await plugins.reload("echo")
        assert (await text_of(plugins), record.state) == ("two", State.ACTIVE)


async def test_guard_that_was_trusted_meanwhile_decides_after_a_reload(file):
    guard = file("guard.night")
    guard.write(GUARD, trusted=False)
    async with guard.opened() as plugins:
        event = ToolCall("1", "notes", {}, level=Level.SAFE)
        assert (await plugins.hooks.decide(event)).verdict is Verdict.DENY
        trust_plugins(guard.home, [guard.path])
        await plugins.reload("night")
        assert (await plugins.hooks.decide(event)).verdict is Verdict.ALLOW


async def test_reload_of_a_file_that_is_not_trusted_changes_nothing(file):
    echo = file("op.echo")
    echo.write(ECHO)
    async with echo.opened() as plugins:
        assert await text_of(plugins) == "one"
        echo.write(ECHO, "two", trusted=False)
        with pytest.raises(PluginReloadFailed, match="was not reloaded: the file has changed since") as caught:
            await plugins.reload("op.echo")
        assert caught.value.hint.startswith("correct and trust its file, and reload it again")
        assert await text_of(plugins) == "one"


async def test_reloaded_file_leaves_no_module_behind(file):
    notes = file("hook.notes")
    notes.write(NOTES)
    async with notes.opened() as plugins:
        for number in range(5):
            notes.write(NOTES, str(number))
            await plugins.reload("notes")
            assert (await plugins.hooks.update(Context(()))).messages == (str(number),)
        with anyio.fail_after(10):
            while len(notes.modules()) > 1:
                await anyio.lowlevel.checkpoint()


async def test_trusting_at_the_same_time_keeps_each_file(home, tmp_path):
    paths = [tmp_path / f"{number}.py" for number in range(20)]
    async with anyio.create_task_group() as tasks:
        for path in paths:
            path.write_text("")
            tasks.start_soon(anyio.to_thread.run_sync, trust_plugins, home, [path])
    text = (home / "trust.toml").read_text()
    assert all(str(path) in text for path in paths)
