"""The fixture `make_plugin`."""

SOURCES = """
from sideband_testing import ArgumentInvalid, KitError

ECHO = '''
    from pydantic import BaseModel
    from sideband import OpFamily, op

    class Params(BaseModel):
        text: str = ""

    @op("made.say")
    async def say(params: Params, ctx) -> str:
        return "ONE " + params.text

    def sideband_ops():
        return OpFamily(name="made", ops=(say,))
'''
"""


def test_made_plugin_is_found_and_imported_like_an_installed_one(run_tests):
    result = run_tests(f"""{SOURCES}
from base64 import urlsafe_b64encode
from hashlib import sha256
from importlib.metadata import distribution

async def test_it(make_plugin, sideband_host):
    made = make_plugin("op", "made", ECHO, version="1.5", requires=["sideband-core>=0.1"], distribution="acme-made")
    installed = distribution("acme-made")
    assert installed.requires == ["sideband-core>=0.1"]
    hashed = [file for file in installed.files if file.hash]
    assert [file.name for file in hashed] == ["__init__.py", "plugin.py", "METADATA", "INSTALLER", "entry_points.txt"]
    for file in hashed:
        digest = urlsafe_b64encode(sha256(file.read_binary()).digest()).decode().rstrip("=")
        assert (file.hash.value, file.size) == (digest, len(file.read_binary()))
    async with sideband_host(made.plugin) as host:
        assert await host.op("made.say", {{"text": "hi"}}) == "ONE hi"
        (record,) = host.plugins.why("made")
        assert (record.distribution, record.version, record.installer) == ("acme-made", "1.5", "sideband-testing")
""")
    result.assert_outcomes(passed=1)


def test_made_plugin_is_upgraded_reloaded_and_removed(run_tests):
    result = run_tests(f"""{SOURCES}
async def test_it(make_plugin, sideband_host):
    made = make_plugin("op", "made", ECHO)
    async with sideband_host(made.plugin) as host:
        assert await host.op("made.say", {{}}) == "ONE "
        made.upgrade("from ._two import *", version="2.0", modules={{"_two": ECHO.replace("ONE", "TWO")}})
        assert await host.op("made.say", {{}}) == "ONE "
        (record,) = await host.reload("made")
        assert (record.version, await host.op("made.say", {{}})) == ("2.0", "TWO ")
    made.remove()
    with pytest.raises(ArgumentInvalid, match="no plugin `op.made` is installed"):
        sideband_host(made.plugin)
""")
    result.assert_outcomes(passed=1)


def test_skill_package_is_made(run_tests):
    result = run_tests("""
        async def test_it(make_plugin, sideband_host):
            manifest = "---\\nname: sums\\ndescription: Adds.\\n---\\n"
            tool = "from sideband.skill import tool\\n@tool\\nasync def add(a: int, b: int) -> int: return a + b\\n"
            made = make_plugin("skill", "sums", manifest, modules={"tools": tool})
            async with sideband_host(made.plugin, "loader.skills") as host:
                assert await host.call("sums.add", a=1, b=2) == 3
    """)
    result.assert_outcomes(passed=1)


def test_made_plugin_runs_in_a_process_of_its_own(run_tests, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_USER", "x")
    result = run_tests("""
        import os

        def test_it(make_plugin):
            made = make_plugin("op", "made", "LOADED = True")
            code = f'''
                import os, sys
                import {made.package}.plugin as plugin
                print(plugin.LOADED, "pytest" in sys.modules, "SECRET_OF_THE_USER" in os.environ, sys.argv[1])
                print(os.path.expanduser("~") == os.getcwd())
            '''
            assert made.run(code, "given") == "True False False given\\nTrue\\n"

        def test_failure(make_plugin):
            from sideband_testing import KitError

            try:
                make_plugin("op", "made", "").run("raise ValueError('the reason')")
            except KitError as error:
                assert error.code == "testing.failed"
                raise

        def test_hang(make_plugin):
            make_plugin("op", "made", "").run("import time; time.sleep(60)", timeout=0.05)
    """)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*the code ended with exit code 1: correct its errors*", "*ValueError: the reason"])
    result.stdout.fnmatch_lines(["*the code did not end within 0.05 s: end its loops, or pass a longer `timeout`"])


def test_made_plugins_and_their_modules_are_removed_after_the_test(run_tests):
    result = run_tests("""
        import os
        import sys
        from importlib.metadata import entry_points
        from importlib import import_module

        def test_first(make_plugin):
            import_module(make_plugin("op", "made", "").package + ".plugin")
            before = make_plugin.folder.stat()
            second = make_plugin("op", "other", "")
            os.utime(make_plugin.folder, ns=(before.st_atime_ns, before.st_mtime_ns))  # as if in the same moment
            import_module(second.package)

        def test_second():
            assert not [name for name in sys.modules if name.startswith("made_op")]
            assert "made" not in entry_points(group="sideband.v1.op").names
    """)
    result.assert_outcomes(passed=2)


def test_invalid_arguments_are_reported_with_the_remedy(run_tests):
    result = run_tests("""
        def test_kind(make_plugin):
            make_plugin("opp", "made", "")

        def test_name(make_plugin):
            make_plugin("op", "a = b\\n[console_scripts]", "")

        def test_distribution(make_plugin):
            make_plugin("op", "one", "", distribution="acme")
            make_plugin("op", "two", "", distribution="acme")
    """)
    result.assert_outcomes(failed=3)
    for line in (
        "*`make_plugin`: `kind`: unknown kind of plugin 'opp' (did you mean `op`?): use a kind such as*",
        "*`make_plugin`: `name`: 'a = b?n?console_scripts?' is not a name of letters*: choose another name",
        "*`make_plugin`: `distribution`: `acme` is already installed, with `op.one`: pass another `distribution`*",
    ):
        result.stdout.fnmatch_lines([line])
