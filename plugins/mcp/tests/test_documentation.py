"""The examples and the table in the documentation hold."""

import re
import tomllib
from pathlib import Path

import pytest
from sideband_mcp import Config, ServerConfig

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "docs" / "mcp.md", ROOT / "plugins" / "mcp" / "README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_are_valid(page):
    blocks = re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL)
    tables = [tomllib.loads(block).get("plugins", {}).get("mcp") for block in blocks]
    assert any(Config.model_validate(table).servers for table in tables if table is not None)


def test_table_of_limits_has_the_defaults():
    rows = re.findall(
        r"^\| [^|]+ \| ([\d,]+)( s| MiB)? \| `(\w+)`( of the server)? \|$", PAGES[0].read_text(), re.MULTILINE
    )
    shown = {name: int(value.replace(",", "")) * (1 << 20 if unit == " MiB" else 1) for value, unit, name, _ in rows}
    of_server = ServerConfig(url="https://example.org/mcp").call_seconds
    limits = {name for name in Config.model_fields if name.endswith("_seconds") or name.startswith("max_")}
    assert shown == {"call_seconds": of_server, **{name: getattr(Config(), name) for name in limits}}
