"""`sideband.skill` outside a worker, and the files of the SDK folder."""

import asyncio
import subprocess
import sys

import pytest
from sideband import skill
from sideband.workers import WORKER_FILE, runtime_files


def test_tool_decorator_returns_the_function_itself():
    @skill.tool
    async def bare():
        """Bare."""

    @skill.tool(timeout=5)
    async def timed():
        """Timed."""

    assert bare.__sideband_tool__ == {"timeout": None}
    assert timed.__sideband_tool__ == {"timeout": 5}
    assert asyncio.iscoroutinefunction(bare)


def test_op_outside_a_worker_raises_with_a_remedy():
    with pytest.raises(RuntimeError, match=r"`http.get` requires a host.*sideband call --skill-dir"):
        asyncio.run(skill.http.get(url="https://example.org"))


def test_private_names_are_not_families():
    with pytest.raises(AttributeError):
        skill._http  # noqa: B018


def test_copied_files_import_only_the_standard_library(sdk):
    check = (
        f"import sys; sys.path.insert(0, {str(sdk)!r}); import sideband.skill, sideband.worker\n"
        "other = {name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names\n"
        "print(sorted(other - {'__main__', 'sideband'}))"
    )
    found = subprocess.run([sys.executable, "-I", "-S", "-c", check], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_runtime_files_have_their_import_paths():
    files = runtime_files()
    assert files[WORKER_FILE].name == "worker.py"
    assert all(source.is_file() for source in files.values())
    assert {"sideband/__init__.py", "sideband/skill.py", "sideband/workers/runtime/__init__.py"} <= set(files)


@pytest.mark.parametrize("use", [skill.now, skill.uuid, lambda: skill.random.choice([1])])
def test_values_of_a_call_outside_a_call_raise_with_a_remedy(use):
    with pytest.raises(RuntimeError, match="only be used inside a call"):
        use()
