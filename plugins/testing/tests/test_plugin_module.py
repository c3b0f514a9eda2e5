"""The module that pytest loads: it costs almost nothing, and does not hide the author's package from coverage."""

import subprocess
import sys
from textwrap import dedent


def run_pytest(folder, *options):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_session_that_uses_no_fixture_imports_nothing_of_sideband(pytester):
    pytester.makepyfile("""
        import sys

        def test_it():
            ours = {name for name in sys.modules if name.partition(".")[0].startswith("sideband")}
            assert ours == {"sideband_testing", "sideband_testing._version", "sideband_testing.plugin"}
            assert not {"attrs", "pydantic", "importlib_metadata", "pluggy.sideband"} & sys.modules.keys()
    """)
    options = ("-p", "no:anyio", "-p", "no:hypothesispytest", "-p", "no:time_machine", "-p", "no:llmock")
    done = run_pytest(pytester.path, *options)
    assert done.returncode == 0, done.stdout


def test_coverage_of_the_authors_package_is_complete(pytester):
    pytester.makepyfile(
        acme=dedent("""
            from types import SimpleNamespace
            from sideband import OpFamily

            def sideband_ops():
                return OpFamily(name="acme", ops=())
        """),
        test_acme="""
            import pytest
            from sideband import Plugin
            import acme

            @pytest.mark.anyio
            async def test_it(sideband_host, anyio_backend_name):
                async with sideband_host(Plugin("op", "acme", acme)) as host:
                    assert host.plugins.names("op") == ("acme",)
                    acme.sideband_ops()
        """,
    )
    command = [sys.executable, "-m", "coverage", "run", "--include", "acme.py", "-m", "pytest", "-q", "-p", "no:xdist"]
    done = subprocess.run(command, cwd=pytester.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    report = [sys.executable, "-m", "coverage", "report", "--fail-under", "100"]
    done = subprocess.run(report, cwd=pytester.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
