"""The examples and the table in the documentation hold."""

import json
import re
from pathlib import Path

from sideband_acp._limits import AcpLimits
from sideband_agent import LARGEST_ATTACHMENT

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "acp.md").read_text()


def test_settings_of_editors_start_the_command():
    blocks = re.findall(r"```json.*?\n(.*?)```", PAGE, re.DOTALL)
    servers = [json.loads(block)["agent_servers"]["sideband"] for block in blocks]
    assert len(servers) == 2
    assert all(one["command"].endswith("sideband") and one["args"] == ["acp"] for one in servers)


def test_table_of_limits_has_the_defaults():
    rows = dict(re.findall(r"^\| ([^|]+?) \| (\d+)(?: MiB| s)? \|$", PAGE, re.MULTILINE))
    limits = AcpLimits()
    assert {name: int(value) for name, value in rows.items()} == {
        "open sessions": limits.sessions,
        "prompts of a session in progress": 1,
        "requests in progress": limits.requests,
        "size of a message": limits.message >> 20,
        "parts of a prompt": limits.parts,
        "MCP servers of a session": limits.servers,
        "attachments of a prompt": LARGEST_ATTACHMENT >> 20,
        "time for a run to end, when the editor leaves": limits.seconds,
    }
