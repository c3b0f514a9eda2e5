import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import BaseModel
from sideband.ops._sdk import write_sdk
from sideband.state import FolderFailed


class EchoParams(BaseModel):
    text: str


SKILL = "async def dispatch(op, params):\n    return [op, params]\n"


@pytest.fixture
def runtime(tmp_path):
    folder = tmp_path / "runtime"
    folder.mkdir()
    (folder / "skill.py").write_text(SKILL)
    (folder / "empty.py").write_text("")
    return {"sideband/skill.py": folder / "skill.py", "sideband/__init__.py": folder / "empty.py"}


def test_written_sdk_works_without_site_packages(tmp_path, runtime, make_family, import_folder):
    sdk = write_sdk(tmp_path / "sdk", [make_family(EchoParams)], runtime)
    code = "import asyncio\nfrom sideband_sdk import sample\nprint(asyncio.run(sample.send('x')))"
    assert import_folder(sdk, code).stdout == "['sample.send', {'text': 'x'}]\n"


def test_extra_functions_can_use_generated_ones(tmp_path, runtime, make_family, import_folder):
    extra = tmp_path / "_sdk.py"
    extra.write_text(
        "from sideband_sdk.sample import send\n\nasync def twice(text):\n    return await send(text * 2)\n"
    )
    sdk = write_sdk(tmp_path / "sdk", [make_family(EchoParams, sdk=extra)], runtime)
    code = "import asyncio\nfrom sideband_sdk import sample\nprint(asyncio.run(sample.twice('x')))"
    assert import_folder(sdk, code).stdout == "['sample.send', {'text': 'xx'}]\n"


def test_importing_a_failed_family_raises_its_reason(tmp_path, runtime, import_folder):
    reason = 'it raised "no\nway" at import'
    sdk = write_sdk(tmp_path / "sdk", [], runtime, reasons={"sql": reason})
    code = "try:\n    import sideband_sdk.sql\nexcept ImportError as error:\n    print(type(error).__name__, error)"
    assert import_folder(sdk, code).stdout == f"ImportError `sql` is not available: {reason}\n"


def test_equal_families_share_a_folder(tmp_path, runtime, make_family):
    first = write_sdk(tmp_path / "sdk", [make_family(EchoParams)], runtime)
    assert write_sdk(tmp_path / "sdk", [make_family(EchoParams)], runtime) == first
    assert [path.name for path in (tmp_path / "sdk").iterdir()] == [first.name]


def test_changed_runtime_gets_another_folder(tmp_path, runtime, make_family):
    first = write_sdk(tmp_path / "sdk", [make_family(EchoParams)], runtime)
    runtime["sideband/skill.py"].write_text(SKILL + "\n")
    assert write_sdk(tmp_path / "sdk", [make_family(EchoParams)], runtime) != first


def test_concurrent_writers_share_a_folder(tmp_path, runtime, make_family):
    with ThreadPoolExecutor(8) as threads:
        folders = set(threads.map(lambda _: write_sdk(tmp_path / "sdk", [make_family(EchoParams)], runtime), range(16)))
    assert [path.name for path in (tmp_path / "sdk").iterdir()] == [folders.pop().name]
    assert not folders


def test_tampered_sdk_is_rejected(tmp_path, runtime, make_family):
    sdk = write_sdk(tmp_path / "sdk", [make_family(EchoParams)], runtime)
    module = sdk / "sideband_sdk" / "sample.py"
    module.chmod(0o644)
    module.write_text("import os\n")
    with pytest.raises(FolderFailed) as caught:
        write_sdk(tmp_path / "sdk", [make_family(EchoParams)], runtime)
    assert caught.value.code == "folder.tampered"


@pytest.mark.parametrize("path", ["../out.py", "/out.py", "a/../../out.py", "", "a//b.py"])
def test_runtime_file_outside_the_folder_is_rejected(tmp_path, runtime, path):
    with pytest.raises(FolderFailed, match="invalid path"):
        write_sdk(tmp_path / "sdk", [], {path: runtime["sideband/skill.py"]})
    assert not (tmp_path / "out.py").exists()


def test_unwritable_folder_is_reported(tmp_path, runtime):
    (tmp_path / "sdk").write_text("a file")
    with pytest.raises(FolderFailed, match="File exists"):
        write_sdk(tmp_path / "sdk", [], runtime)


def test_files_are_readable_by_other_users(tmp_path, runtime, make_family):
    before = os.umask(0o077)
    try:
        sdk = write_sdk(tmp_path / "sdk", [make_family(EchoParams)], runtime)
    finally:
        os.umask(before)
    assert sdk.stat().st_mode & 0o777 == 0o755
    assert (sdk / "sideband" / "skill.py").stat().st_mode & 0o777 == 0o644
    assert Path(sdk / "sideband").stat().st_mode & 0o777 == 0o755
