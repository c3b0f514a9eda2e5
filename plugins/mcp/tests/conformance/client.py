"""Use a server of the official conformance suite as a host does, with its ops and an agent's tools.

Usage: client.py URL. The suite names the scenario in the environment, and its credentials.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import anyio
import httpx2
import sideband_mcp.plugin
import sideband_secrets.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.approvals import Approval
from sideband.asking import UserAnswer
from sideband_agent import Agent
from sideband_mcp import McpLoginNeeded

SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
CREDENTIALS = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
MOST_LOGINS = 3
DOCUMENT = "https://conformance-test.local/client-metadata.json"


def client_of():
    """Return how the server is authorized: with a client that the suite knows, where it has one."""
    if "client_id" in CREDENTIALS:
        return {"client_id": CREDENTIALS["client_id"], "client_secret": "suite"}
    return {"client_id": DOCUMENT} if SCENARIO == "auth/basic-cimd" else True


def open_host(folder, url):
    """Make a host with the server."""
    server = {"url": url, "local": True}
    if SCENARIO.startswith("auth/"):
        server["oauth"] = client_of()
    tables = {
        "mcp": {"servers": {"suite": server}},
        "secrets": {"backend": "encrypted", "key": "file"},
    }
    plugins = [
        Plugin("op", "mcp", sideband_mcp.plugin),
        Plugin("tool", "mcp", sideband_mcp.plugin.servers),
        Plugin("op", "secrets", sideband_secrets.plugin),
        Plugin("secrets", "secrets", sideband_secrets.plugin),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
    ]
    return Host(home=folder, settings={"plugins": tables}, plugins=plugins, autoload=False)


async def allow(request):
    return Approval("allow", "session")


async def log_in(host):
    """Authorize the server with a browser that agrees at once."""
    asked = await host.op("mcp.authorize", {"server": "suite"})
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        await browser.get(asked["address"])
    await host.op("mcp.login", {"server": "suite"})


async def with_logins(host, use):
    """Use the server, and log in each time that it asks for it."""
    for _ in range(MOST_LOGINS):
        try:
            return await use()
        except McpLoginNeeded:
            await log_in(host)
    return await use()


async def answer(questions, origin):
    """Leave all fields open, and send the defaults."""
    return [UserAnswer(("yes",) if one.text.startswith("Send the defaults") else ()) for one in questions]


async def call_all(host, folder):
    """Accept and call all tools of the server, as an agent does."""
    listed = await host.op("mcp.list", {"server": "suite"})
    if listed["changes"]:
        changes = {"catalog": listed["offered"], "changes": listed["changes"]}
        await host.op("mcp.accept", {"server": "suite", **changes})
    async with Agent(host, model="none:none", folder=folder, approver=allow, asker=answer) as agent:
        await agent.wait_for_sources()
        async with agent.tool_calls() as calls:
            for name in [one.model_name for one in agent.tools.tools if one.model_name.startswith("suite__")]:
                arguments = {"a": 2, "b": 3} if name == "suite__add_numbers" else {}
                result = await calls.start(name, arguments).answer()
                if "sideband mcp login" in result.text:
                    raise McpLoginNeeded("suite", result.text)


async def keep_secret(host, url):
    """Keep the secret of the registered client for the authorization server, as its user does."""
    async with httpx2.AsyncClient() as http:
        found = (await http.get(httpx2.URL(url).join("/.well-known/oauth-protected-resource/mcp"))).json()
    origins = [one.rstrip("/") for one in found["authorization_servers"]]
    await host.op("secrets.set", {"name": "suite", "value": CREDENTIALS["client_secret"], "origins": origins})


async def main():
    with tempfile.TemporaryDirectory() as folder:
        async with open_host(Path(folder) / "home", sys.argv[1]) as host:
            if "client_secret" in CREDENTIALS:
                await keep_secret(host, sys.argv[1])
            await with_logins(host, lambda: call_all(host, Path(folder)))


anyio.run(main)
