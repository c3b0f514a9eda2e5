"""The skill of the README, in a real worker."""

import plistlib
import re
from pathlib import Path

import pytest
import sideband_plist.plugin
import sideband_sandbox.plugin
import sideband_skills.plugin
import sideband_store_sqlite.plugin
from sideband import CallRequest, Host, Plugin
from sideband_plist import Config

README = (Path(__file__).parents[1] / "README.md").read_text()


@pytest.mark.anyio
async def test_readme_skill_reads_a_property_list(tmp_path):
    folder = tmp_path / "skills" / "apps"
    folder.mkdir(parents=True)
    about = "---\nname: apps\ndescription: Reads.\nmetadata:\n  sideband.capabilities: plist\n---\nReads.\n"
    (folder / "SKILL.md").write_text(about)
    (code,) = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    (folder / "apps.py").write_text(code)
    plugins = [
        Plugin("op", "plist", sideband_plist.plugin),
        Plugin("loader", "skills", sideband_skills.plugin),
        Plugin("sandbox", "sandbox", sideband_sandbox.plugin),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
    ]
    document = plistlib.dumps({"CFBundleShortVersionString": "1.2"}, fmt=plistlib.FMT_BINARY)
    async with Host(home=tmp_path / "home", plugins=plugins, autoload=False, skill_dirs=[folder.parent]) as host:
        result = await host.run(CallRequest("apps.version", {"info": document}, grants=["plist"]))
    assert result.output == "1.2"


def test_readme_lists_the_default_configuration():
    shown = dict(re.findall(r"^    (\w+) = (\d+)", README, re.MULTILINE))
    assert {name: int(value) for name, value in shown.items()} == Config().model_dump()
