"""A server whose tools need an authorization, authorization servers, and a person with a browser."""

import json
import re
import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest
import sideband_mcp.plugin
import sideband_secrets.plugin
import sideband_store_sqlite.plugin
import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from sideband import Host, Plugin

RUN_CANAILLE = Path(__file__).with_name("run_canaille.py")


@pytest.fixture(scope="session")
def canaille():
    """The address of Canaille, an authorization server of another maker."""
    command = [sys.executable, "-W", "ignore", str(RUN_CANAILLE)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        yield process.stdout.readline().strip()
        process.stdin.close()


@pytest.fixture(scope="session")
def serve():
    """Return a function that serves an application at its socket, in a thread."""
    served = []

    def run(app, at):
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, lifespan="auto"))
        thread = threading.Thread(target=server.run, args=([at],))
        thread.start()
        served.append((server, thread))

    yield run
    for server, _ in served:
        server.should_exit = True
    for _, thread in served:
        thread.join()


class Guarded:
    """A server of the official SDK whose tools need a token of an authorization server.

    Attributes:
        tokens: the tokens of all requests so far, without repetitions.
        requests: the paths of all requests.
        needs: a scope that calls need, which no token has.
    """

    def __init__(self, issuer):
        self.issuer, self.tokens, self.requests, self.needs = issuer, [], [], ""
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/mcp"

    async def verify_token(self, token):
        """Ask the authorization server about a token."""
        async with httpx2.AsyncClient() as http:
            found = await http.get(f"{self.issuer}/oauth/userinfo", headers={"Authorization": f"Bearer {token}"})
        if found.status_code != 200:
            return None
        return AccessToken(token=token, client_id="unknown", scopes=["openid"])

    def app(self):
        settings = AuthSettings(
            issuer_url=self.issuer,
            resource_server_url=self.url,
            required_scopes=["openid"],
            validate_token_resource=False,
        )
        server = MCPServer("things", token_verifier=self, auth=settings)

        @server.tool()
        def add(a: int, b: int = 1) -> int:
            """Add two numbers."""
            return a + b

        app = server.streamable_http_app()

        async def noting(scope, receive, send):
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            self.requests.append(scope["path"])
            headers = dict(scope["headers"])
            token = headers.get(b"authorization", b"").decode().removeprefix("Bearer ")
            if token and token not in self.tokens:
                self.tokens.append(token)
            if self.needs and scope["method"] == "POST":
                message = await receive()
                if json.loads(message["body"])["method"] == "tools/call":
                    challenge = f'Bearer error="insufficient_scope", scope="{self.needs}"'
                    start = {"type": "http.response.start", "status": 403}
                    await send({**start, "headers": [(b"www-authenticate", challenge.encode())]})
                    await send({"type": "http.response.body"})
                    return

                async def again(first=[message]):  # noqa: B006  it is taken once
                    return first.pop() if first else await receive()

                await app(scope, again, send)
                return
            await app(scope, receive, send)

        return noting


@pytest.fixture(scope="session")
def served_with_tokens(canaille, serve):
    found = Guarded(canaille)
    serve(found.app(), found.socket)
    return found


@pytest.fixture
def guarded(served_with_tokens):
    served_with_tokens.tokens.clear()
    yield served_with_tokens
    served_with_tokens.needs = ""


class Browser:
    """A person who authorizes in a browser, by the pages of Canaille.

    Attributes:
        refuses: whether it is a person who does not give the access.
    """

    refuses = False

    async def read(self, address):
        """Open an address, log in, answer, and return where the browser is sent at the end."""
        async with httpx2.AsyncClient() as http:
            response = await http.get(address)
            for _ in range(20):
                if response.is_redirect:
                    if "/callback?" in response.headers["location"]:
                        return response.headers["location"]
                    response = await http.send(response.next_request)
                else:
                    (token,) = set(re.findall(r'name="csrf_token"[^>]*value="([^"]*)"', response.text))
                    user, answer = ("other", "deny") if self.refuses else ("person", "accept")
                    form = {"login": user, "password": "correct horse", "answer": answer}
                    response = await http.post(response.url, data={**form, "csrf_token": token})
        raise AssertionError("too many pages")

    async def open(self, address):
        """Open an address, log in, answer, and follow the browser back to this machine."""
        await visit(await self.read(address))


async def visit(address, **headers):
    """Return the response to a browser."""
    async with httpx2.AsyncClient() as http:
        return await http.get(address, headers=headers)


@pytest.fixture
def browser():
    return Browser()


class Things:
    """A configured server, and what a person does with it.

    Attributes:
        guarded: the server.
        browser: the browser of the person.
        settings: the table of the server.
    """

    def __init__(self, guarded, browser, folder, sandboxes):
        self.guarded, self.browser = guarded, browser
        self._folder, self._sandboxes = folder, sandboxes
        self.settings = {"url": guarded.url, "local": True, "oauth": True}

    def open(self, *, secrets=sideband_secrets.plugin, **settings):
        """Make a host as the command line does."""
        server = {**self.settings, **settings}
        found = [
            Plugin("op", "mcp", sideband_mcp.plugin),
            Plugin("sandbox", "sandbox", self._sandboxes),
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
        ]
        tables = {"mcp": {"servers": {"things": server}}}
        if secrets is not None:
            found += [Plugin("op", "secrets", secrets), Plugin("secrets", "secrets", secrets)]
            tables["secrets"] = {"backend": "encrypted", "key": "file"}
        return Host(home=self._folder / "home", settings={"plugins": tables}, plugins=found, autoload=False)

    async def ask(self, host):
        """Begin a login, and return what the person sees."""
        return await host.op("mcp.authorize", {"server": "things"})

    async def log_in(self, host):
        """Log in, and return the fields of the address that the browser opened."""
        asked = await self.ask(host)
        await self.browser.open(asked["address"])
        await host.op("mcp.login", {"server": "things"})
        return httpx2.URL(asked["address"]).params

    async def list(self, host):
        """Connect to the server."""
        return await host.op("mcp.list", {"server": "things"})

    async def add(self, host, **arguments):
        """Accept the tools of the server, and call one."""
        listed = await self.list(host)
        request = {"server": "things", "catalog": listed["offered"]}
        if listed["changes"]:
            await host.op("mcp.accept", {**request, "changes": listed["changes"]})
        found = await host.op("mcp.call", {**request, "tool": "add", "arguments": arguments})
        return found["content"][0]["text"]

    async def secret(self, host, kind):
        """Reveal a token."""
        return await host.op("secrets.read", {"name": f"mcp.things.{kind}"})

    async def secrets(self, host):
        """Return the origins of each token."""
        return {one["name"]: one["origins"] for one in (await host.op("secrets.list", {}))["items"]}

    async def revoke(self, host, client):
        """End the authorization at the authorization server, as the account of the person allows."""
        form, auth = {"token": await self.secret(host, "refresh")}, (client, await self.secret(host, "client"))
        async with httpx2.AsyncClient() as http:
            found = await http.post(f"{self.guarded.issuer}/oauth/revoke", data=form, auth=auth)
        assert found.status_code == 200


@pytest.fixture
def things(guarded, browser, tmp_path, sandboxes):
    return Things(guarded, browser, tmp_path, sandboxes)


@pytest.fixture
def now(clock, tmp_path):
    """A clock of this process that begins at the time of the authorization server, which has another one."""
    clock.set(datetime.fromtimestamp(tmp_path.stat().st_mtime, UTC))
    return clock
