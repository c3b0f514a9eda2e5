"""The skill of the README, in a real worker, with the grants that the README names."""

import re
from pathlib import Path

import pytest
import sideband_crypto.plugin
import sideband_sandbox.plugin
import sideband_secrets.plugin
import sideband_skills.plugin
import sideband_store_sqlite.plugin
from sideband import CallRequest, Host, Plugin
from sideband_crypto import Config

pytestmark = pytest.mark.anyio

README = (Path(__file__).parents[1] / "README.md").read_text()
GRANTS = ["crypto:key=release", "crypto:key=-", "secrets:name=release,mode=write", "secrets:name=release"]


@pytest.fixture
def skill(tmp_path):
    folder = tmp_path / "skills" / "signer"
    folder.mkdir(parents=True)
    about = (
        f"---\nname: signer\ndescription: Signs.\nmetadata:\n  sideband.capabilities: {' '.join(GRANTS)}\n---\nSigns.\n"
    )
    (folder / "SKILL.md").write_text(about)
    (code,) = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    (folder / "signer.py").write_text(code)
    return folder.parent


async def test_readme_skill_signs_with_a_stored_key(skill, tmp_path):
    assert all(f"`{grant}`" in README for grant in GRANTS)
    plugins = [
        Plugin("op", "crypto", sideband_crypto.plugin),
        Plugin("op", "secrets", sideband_secrets.plugin),
        Plugin("loader", "skills", sideband_skills.plugin),
        Plugin("sandbox", "sandbox", sideband_sandbox.plugin),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
    ]
    settings = {"plugins": {"secrets": {"backend": "memory"}}}
    paths = {"home": tmp_path / "home", "skill_dirs": [skill]}
    async with Host(settings=settings, plugins=plugins, autoload=False, **paths) as host:
        result = await host.run(CallRequest("signer.release", {"version": "1.0"}, grants=GRANTS))
    assert result.output is True
    assert "PRIVATE KEY" not in str(result)


def test_readme_lists_the_default_configuration():
    shown = dict(re.findall(r"^    (\w+) = (\d+)", README, re.MULTILINE))
    assert {name: int(value) for name, value in shown.items()} == Config().model_dump()
