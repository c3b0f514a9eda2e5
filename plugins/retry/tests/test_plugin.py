from pathlib import Path

import pytest
import sideband_retry.plugin
import sideband_store_sqlite.plugin
from pydantic import ValidationError
from sideband import Host, Plugin
from sideband.hooks import GiveUp, Retry
from sideband_retry._readme_table import render


@pytest.mark.anyio
async def test_host_calls_the_plugin_with_its_configuration(tmp_path, make_event):
    plugins = [
        Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
        Plugin(kind="hook", name="retry", value=sideband_retry.plugin),
    ]
    settings = {"plugins": {"retry": {"attempts": 1, "base": 0}}}
    async with Host(home=tmp_path, plugins=plugins, autoload=False, settings=settings) as host:
        assert await host.hooks.first(make_event(503)) == Retry(0, "overloaded", "retry")
        answer = await host.hooks.first(make_event(503, attempt=2))
        assert (type(answer), answer.plugin) == (GiveUp, "retry")


@pytest.mark.parametrize("config", [{"attempts": -1}, {"base": float("nan")}, {"deadline": 0}, {"jitter": True}])
def test_invalid_configuration_is_rejected(config):
    with pytest.raises(ValidationError):
        sideband_retry.plugin.Config(**config)


def test_readme_contains_the_table_of_classes():
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    table = readme.partition("<!-- table -->\n")[2].partition("\n<!-- /table -->")[0]
    assert table == render(), "python -m sideband_retry._readme_table prints it"
