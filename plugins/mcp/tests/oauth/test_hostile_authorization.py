"""Authorization servers, and servers that name them, that do not keep to the rules."""

import socket
import threading
from ipaddress import ip_address

import anyio
import httpx2
import pytest
from sideband_mcp import McpLoginFailed, McpLoginNeeded, McpTooLarge, McpUnavailable, ServerConfig
from sideband_mcp._oauth._bearer import BearerAuth
from sideband_mcp._oauth._logins import Logins
from sideband_mcp._oauth._pending import PendingLogin
from sideband_mcp._transports import _guarded
from sideband_mcp._transports._failure import ConnectionFailure
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

pytestmark = pytest.mark.anyio

TOKEN = "a-token-that-is-kept-secret"


class Hostile:
    """A server and its authorization server, whose answers a test chooses.

    Attributes:
        answers: the answers of each path, beside those of an honest server.
        requests: the paths of the requests.
        held: the path whose requests wait for `release`, and set `arrived`.
    """

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.origin = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.answers, self.requests = {}, []
        self.held, self.arrived, self.release = "", threading.Event(), threading.Event()

    def app(self):
        return Starlette(routes=[Route("/{path:path}", self._answer, methods=["GET", "POST"])])

    async def _answer(self, request):
        path = request.url.path
        self.requests.append(path)
        if path == self.held:
            self.arrived.set()
            await anyio.to_thread.run_sync(self.release.wait)
        found = self.answers.get(path, self._honest(path))
        return found if isinstance(found, Response) else JSONResponse(found)

    def _honest(self, path):
        origin = self.origin
        match path:
            case "/.well-known/oauth-protected-resource/mcp":
                return {"resource": f"{origin}/mcp", "authorization_servers": [origin]}
            case "/.well-known/oauth-authorization-server":
                return self.metadata()
            case "/register":
                return JSONResponse({"client_id": "client", "redirect_uris": []}, status_code=201)
            case "/token":
                return {"access_token": TOKEN, "token_type": "Bearer", "refresh_token": f"{TOKEN}-refresh"}
            case "/mcp":
                return Response(status_code=401)
            case _:
                return Response(status_code=404)

    def metadata(self, **changes):
        origin = self.origin
        return {
            "issuer": origin,
            "authorization_endpoint": f"{origin}/authorize",
            "token_endpoint": f"{origin}/token",
            "registration_endpoint": f"{origin}/register",
            "code_challenge_methods_supported": ["S256"],
            **changes,
        }

    def changes(self, **changes):
        """Answer with other metadata."""
        self.answers["/.well-known/oauth-authorization-server"] = self.metadata(**changes)


@pytest.fixture(scope="module")
def served(serve):
    found = Hostile()
    serve(found.app(), found.socket)
    return found


@pytest.fixture
def hostile(served, things):
    served.answers.clear()
    served.requests.clear()
    served.held = ""
    things.settings["url"] = f"{served.origin}/mcp"
    return served


async def come_back(asked, **fields):
    """Let the browser come back as it would from an honest server, except for these fields."""
    state = httpx2.URL(asked["address"]).params["state"]
    async with httpx2.AsyncClient() as http:
        return await http.get(asked["redirect"], params={"code": "code", "state": state, **fields})


async def authorize(things, host):
    await come_back(await things.ask(host))
    return await host.op("mcp.login", {"server": "things"})


async def test_server_with_events_is_authorized(things, hostile):
    async with things.open(sse=True) as host:
        assert await authorize(things, host) == {"issuer": hostile.origin, "scope": ""}


async def test_server_of_the_oldest_protocol_is_authorized(things, hostile):
    hostile.answers["/.well-known/oauth-protected-resource/mcp"] = Response(status_code=404)
    async with things.open() as host:
        assert await authorize(things, host) == {"issuer": hostile.origin, "scope": ""}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"issuer": "https://login.example.org"}, "issuer mismatch"),
        ({"code_challenge_methods_supported": ["plain"]}, "does not support PKCE"),
        ({"code_challenge_methods_supported": None}, "does not support PKCE"),
        ({"authorization_endpoint": "https://bank.example.org@127.0.0.1/authorize"}, "contains a user name"),
        ({"token_endpoint": "https://bank.example.org@127.0.0.1/token"}, "contains a user name"),
        ({"authorization_endpoint": f"https://127.0.0.1/{'x' * 10_000}"}, "more than 8,192 characters"),
    ],
)
async def test_authorization_server_is_refused(things, hostile, changes, problem):
    hostile.changes(**changes)
    async with things.open() as host:
        with pytest.raises(McpLoginFailed, match=problem):
            await things.ask(host)


async def test_address_of_a_metadata_document_is_the_id_of_a_client(things, hostile):
    hostile.changes(client_id_metadata_document_supported=True)
    document = "https://sideband.example/client.json"
    async with things.open(oauth={"client_id": document}) as host:
        asked = await things.ask(host)
        assert httpx2.URL(asked["address"]).params["client_id"] == document
        await come_back(asked)
        await host.op("mcp.login", {"server": "things"})
    assert "/register" not in hostile.requests


async def test_metadata_of_another_resource_is_refused(things, hostile):
    resource = {"resource": "https://bank.example.org/mcp", "authorization_servers": [hostile.origin]}
    hostile.answers["/.well-known/oauth-protected-resource/mcp"] = resource
    async with things.open() as host:
        with pytest.raises(McpLoginFailed, match="does not match"):
            await things.ask(host)


async def test_redirect_of_another_issuer_is_refused(things, hostile):
    async with things.open() as host:
        await come_back(await things.ask(host), iss="https://login.example.org")
        with pytest.raises(McpLoginFailed, match="iss mismatch"):
            await host.op("mcp.login", {"server": "things"})
    assert "/token" not in hostile.requests


async def test_redirect_without_the_announced_issuer_is_refused(things, hostile):
    hostile.changes(authorization_response_iss_parameter_supported=True)
    async with things.open() as host:
        await come_back(await things.ask(host))
        with pytest.raises(McpLoginFailed, match="missing iss"):
            await host.op("mcp.login", {"server": "things"})


@pytest.mark.parametrize("path", ["/register", "/token"])
async def test_redirect_to_another_origin_is_not_followed(things, hostile, guarded, path):
    hostile.answers[path] = Response(status_code=307, headers={"location": guarded.url})
    guarded.requests.clear()
    async with things.open() as host:
        with pytest.raises(McpLoginFailed, match="answered 307"):
            await authorize(things, host)
    assert guarded.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        {"access_token": TOKEN, "expires_in": "soon"},
        {"token": TOKEN},
        {"access_token": TOKEN, "token_type": "mac"},
        {"access_token": f"{TOKEN}\r\nCookie: a=b", "token_type": "Bearer"},
        {"access_token": "", "token_type": "Bearer"},
    ],
)
async def test_invalid_answer_with_a_token_is_shown_nowhere(things, hostile, caplog, answer):
    caplog.set_level("DEBUG")
    hostile.answers["/token"] = answer
    async with things.open() as host:
        await come_back(await things.ask(host))
        with pytest.raises(McpLoginFailed, match="invalid answer") as caught:
            await host.op("mcp.login", {"server": "things"})
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(caught.getrepr(chain=True))


async def test_absurd_lifetime_of_a_token_does_not_end_the_host(things, hostile):
    hostile.answers["/token"] = {"access_token": TOKEN, "expires_in": 10**400}
    async with things.open() as host:
        with pytest.raises(McpLoginFailed, match="caused OverflowError"):
            await authorize(things, host)
        hostile.answers["/token"] = {"access_token": TOKEN, "expires_in": -(10**9), "scope": "\x1b[2J"}
        assert await authorize(things, host) == {"issuer": hostile.origin, "scope": ""}


async def test_authorization_server_that_fails_does_not_need_another_login(things, hostile):
    async with things.open() as host:
        await authorize(things, host)
        hostile.answers["/token"] = Response(status_code=503)
        with pytest.raises(McpUnavailable, match="answered 503"):
            await things.list(host)
        assert "mcp.things.refresh" in await things.secrets(host)


@pytest.mark.parametrize("changes", [{"token_type": "mac"}, {"access_token": "a\r\nCookie: b"}, {"access_token": "é"}])
async def test_renewal_with_an_invalid_token_changes_nothing(things, hostile, changes):
    async with things.open() as host:
        await authorize(things, host)
        hostile.answers["/token"] = {"access_token": TOKEN, "token_type": "Bearer", **changes}
        with pytest.raises(McpUnavailable, match="sent an invalid answer"):
            await things.list(host)
        assert "mcp.things.refresh" in await things.secrets(host)


async def test_error_of_an_authorization_server_is_a_word(things, hostile):
    hostile.answers["/token"] = JSONResponse({"error": f"\x1b[2J{TOKEN}"}, status_code=400)
    async with things.open() as host:
        await come_back(await things.ask(host))
        with pytest.raises(McpLoginFailed, match="400 `unknown`"):
            await host.op("mcp.login", {"server": "things"})


async def test_metadata_that_is_too_large_is_refused(things, hostile):
    hostile.changes(issuer="x" * 2_000_000)
    async with things.open() as host:
        with pytest.raises(McpTooLarge):
            await things.ask(host)


async def test_invalid_scopes_of_a_server_are_not_kept(things, hostile):
    async with things.open() as host:
        await authorize(things, host)
        challenge = 'Bearer error="insufficient_scope", scope="a\\\\b"'
        hostile.answers["/mcp"] = Response(status_code=403, headers={"www-authenticate": challenge})
        with pytest.raises(McpLoginNeeded, match="more scopes"):
            await things.list(host)


async def test_tokens_are_renewed_where_they_are_from(things, hostile, guarded):
    """The server may name another authorization server later, and must not get tokens of the first one by that."""
    async with things.open() as host:
        await authorize(things, host)
        resource = {"resource": f"{hostile.origin}/mcp", "authorization_servers": [guarded.url]}
        hostile.answers["/.well-known/oauth-protected-resource/mcp"] = resource
        hostile.changes(token_endpoint=guarded.url)
        guarded.requests.clear()
        with pytest.raises(McpLoginNeeded, match="refuses your authorization"):
            await things.list(host)
    assert guarded.requests == []


async def test_token_that_cannot_be_renewed_asks_for_a_login(things, hostile):
    hostile.answers["/token"] = {"access_token": TOKEN}
    async with things.open() as host:
        await authorize(things, host)
        with pytest.raises(McpLoginNeeded, match="has expired"):
            await things.list(host)
    assert hostile.requests.count("/token") == 1


async def test_second_login_replaces_one_that_waits(things, hostile):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with things.open(oauth={"redirect_port": port}) as host:
        first = await things.ask(host)
        second = await things.ask(host)
        assert (await come_back({**first, "redirect": second["redirect"]})).status_code == 400
        assert (await come_back(second)).status_code == 200
        await host.op("mcp.login", {"server": "things"})


async def test_port_in_use_is_named(things, hostile, guarded):
    port = guarded.socket.getsockname()[1]
    async with things.open(oauth={"redirect_port": port}) as host:
        with pytest.raises(McpLoginFailed, match="no port for the browser") as caught:
            await things.ask(host)
        assert "`redirect_port`" in caught.value.hint


async def test_cancelled_renewal_keeps_the_tokens_that_it_gets(things, hostile):
    async with things.open() as host:
        await authorize(things, host)
        access = (await host.broker.ops.plugin("mcp")).context.state.get("things").access
        hostile.answers["/token"] = {"access_token": "renewed", "refresh_token": "renewed-too"}
        hostile.held = "/token"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(access.after, TOKEN)
            await anyio.to_thread.run_sync(hostile.arrived.wait)
            tasks.cancel_scope.cancel()
            hostile.release.set()
        assert await things.secret(host, "refresh") == "renewed-too"


async def test_token_is_sent_to_its_server_only(things, hostile, guarded):
    async with things.open() as host:
        await authorize(things, host)
        server = (await host.broker.ops.plugin("mcp")).context.state.get("things")
        guarded.tokens.clear()
        async with httpx2.AsyncClient(auth=BearerAuth(server.access, ConnectionFailure())) as http:
            await http.get(guarded.url)
    assert guarded.tokens == []


@pytest.mark.parametrize(
    "other", ["127.0.0.2", "10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:127.0.0.1]", "[fd00::1]", "0x7f000002"]
)
async def test_metadata_cannot_name_a_private_address(things, hostile, monkeypatch, other):
    """This machine counts as public here, except for its other addresses."""

    is_public = _guarded.is_public
    monkeypatch.setattr(_guarded, "is_public", lambda one: one == ip_address("127.0.0.1") or is_public(one))
    challenge = f'Bearer resource_metadata="https://{other}/metadata"'
    hostile.answers["/mcp"] = Response(status_code=401, headers={"www-authenticate": challenge})
    settings = ServerConfig(url=f"{hostile.origin}/mcp", local=True, oauth=True).model_copy(update={"local": False})
    async with things.open() as host:
        pending = PendingLogin("things", settings, Logins((await host.broker.ops.plugin("mcp")).context))
        await pending.run()
        with pytest.raises(McpUnavailable, match="which is not public"):
            await pending.shown()
