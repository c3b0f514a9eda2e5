"""The import of httpx with the first request."""

import subprocess
import sys

COMMAND_LINE = {"httpx._main", "click", "pygments", "rich"}


def loaded(program):
    command = [sys.executable, "-c", f"import sys\n{program}\nprint(*sys.modules)"]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


def test_httpx_is_imported_without_its_command_line():
    assert "httpx._main" in loaded("import httpx")
    found = loaded("from sideband_model_client._httpx_import import import_httpx; import_httpx()")
    assert "httpx" in found
    assert not found & COMMAND_LINE


def test_httpx_that_is_already_imported_keeps_its_command_line():
    code = "import httpx; from sideband_model_client._httpx_import import import_httpx; import_httpx()"
    assert loaded(f"{code}; import httpx._main") >= COMMAND_LINE


def test_module_of_the_command_line_can_be_imported_later():
    assert (
        loaded("from sideband_model_client._httpx_import import import_httpx; import_httpx(); import httpx._main")
        >= COMMAND_LINE
    )


def test_first_connection_imports_httpx_without_its_command_line():
    found = loaded(
        "from sideband_model_client import ServiceConnections\n"
        "import anyio\n"
        "async def main(): return ServiceConnections().transports(None)\n"
        "anyio.run(main)"
    )
    assert "httpx" in found
    assert not found & COMMAND_LINE
