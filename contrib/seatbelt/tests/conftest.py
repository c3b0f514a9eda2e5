import shutil

import pytest
from sideband.workers import LaunchRequest, runtime_files


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def request_for_worker(tmp_path):
    """Return the request for a skill and its SDK, in the layout of the host."""
    sdk, snapshot = tmp_path / "sdk", tmp_path / "skill"
    for name, source in runtime_files().items():
        (sdk / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, sdk / name)
    snapshot.mkdir()
    (snapshot / "skill.py").write_text("async def answer():\n    return 42\n")
    return LaunchRequest(snapshot=snapshot, sdk=sdk)
