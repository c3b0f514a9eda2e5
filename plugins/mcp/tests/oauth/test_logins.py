"""The whole way of an authorization, with an authorization server of another maker."""

import socket

import httpx2
import pytest
from sideband import SidebandError
from sideband_mcp import McpLoginFailed, McpLoginNeeded, McpUnavailable

pytestmark = pytest.mark.anyio


async def test_person_authorizes_a_server_whose_tools_are_then_called(things):
    async with things.open() as host:
        await things.log_in(host)
        assert await things.add(host, a=2) == "3"


async def test_request_for_an_authorization_has_a_challenge_and_names_the_resource(things):
    async with things.open() as host:
        asked = await things.log_in(host)
        assert asked["code_challenge_method"] == "S256"
        assert asked["resource"] == things.guarded.url


async def test_server_without_a_login_is_not_asked(things):
    async with things.open() as host:
        with pytest.raises(McpLoginNeeded) as caught:
            await things.list(host)
        assert caught.value.hint == "run `sideband mcp login things`"


async def test_tokens_survive_the_host(things):
    async with things.open() as host:
        await things.log_in(host)
    async with things.open() as host:
        assert await things.add(host, a=2) == "3"


async def test_tokens_are_in_no_file_and_no_message(things, tmp_path, caplog):
    caplog.set_level("DEBUG")
    async with things.open() as host:
        await things.log_in(host)
        await things.add(host, a=1)
        tokens = [await things.secret(host, kind) for kind in ("access", "refresh", "client")]
    kept = b"".join([one.read_bytes() for one in (tmp_path / "home").rglob("*") if one.is_file()])
    said = "\n".join([*caplog.messages, caplog.text])
    assert [one for one in tokens if one.encode() in kept or one in said] == []


async def test_token_in_the_result_of_a_later_host_is_redacted(things):
    async with things.open() as host:
        await things.log_in(host)
        token = await things.secret(host, "access")
    async with things.open() as host:
        assert token not in str(host.redactor.data({"text": f"it is {token}"}))


async def test_tokens_are_bound_to_their_servers(things, canaille):
    async with things.open() as host:
        await things.log_in(host)
        origins = await things.secrets(host)
    server = things.guarded.url.removesuffix("/mcp")
    assert origins == {
        "mcp.things.access": [server],
        "mcp.things.client": [canaille],
        "mcp.things.refresh": [canaille],
    }


async def test_token_is_not_used_for_another_address_of_the_server(things):
    async with things.open() as host:
        await things.log_in(host)
    things.guarded.tokens.clear()
    for other in (things.guarded.url.replace("127.0.0.1", "localhost"), f"{things.guarded.url}/other"):
        async with things.open(url=other) as host:
            with pytest.raises(McpLoginNeeded):
                await things.list(host)
    assert things.guarded.tokens == []


async def test_person_who_refuses_ends_the_login(things):
    things.browser.refuses = True
    async with things.open() as host:
        with pytest.raises(McpLoginFailed, match="`access_denied`"):
            await things.log_in(host)


async def test_failed_login_leaves_the_earlier_one(things):
    async with things.open() as host:
        await things.log_in(host)
        things.browser.refuses = True
        with pytest.raises(McpLoginFailed):
            await things.log_in(host)
        assert await things.add(host, a=2) == "3"


async def test_pasted_address_is_as_good_as_a_browser(things):
    async with things.open() as host:
        asked = await things.ask(host)
        pasted = await things.browser.read(asked["address"])
        wrong = str(httpx2.URL(pasted).copy_set_param("state", "wrong"))
        with pytest.raises(McpLoginFailed, match="does not belong to this login"):
            await host.op("mcp.login", {"server": "things", "redirect": wrong})
        await host.op("mcp.login", {"server": "things", "redirect": pasted})
        assert await things.add(host, a=2) == "3"


async def test_logout_revokes_and_deletes_the_tokens(things, canaille):
    async with things.open() as host:
        await things.log_in(host)
        token = await things.secret(host, "access")
        assert await host.op("mcp.logout", {"server": "things"}) == {"deleted": True, "revoked": True}
        assert await things.secrets(host) == {}
        with pytest.raises(McpLoginNeeded):
            await things.list(host)
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http:
        assert (await http.get(f"{canaille}/oauth/userinfo")).status_code == 401


async def test_logout_without_a_login_deletes_nothing(things):
    async with things.open() as host:
        assert await host.op("mcp.logout", {"server": "things"}) == {"deleted": False, "revoked": False}


async def test_call_that_needs_more_scopes_asks_for_a_login_that_asks_for_them(things):
    async with things.open() as host:
        await things.log_in(host)
        assert await things.add(host, a=2) == "3"
        things.guarded.needs = "profile"
        with pytest.raises(McpLoginNeeded, match="`profile`"):
            await things.add(host, a=2)
        things.guarded.needs = ""
        things.guarded.requests.clear()
        assert await things.add(host, a=2) == "3"
        assert len(things.guarded.requests) == 1  # the connection is still open
        asked = await things.log_in(host)
        assert set(asked["scope"].split()) == {"openid", "profile"}


async def test_configured_scopes_are_asked_for(things):
    async with things.open(oauth={"scopes": ["openid", "profile"]}) as host:
        assert (await things.log_in(host))["scope"] == "openid profile"
        assert await things.add(host, a=2) == "3"


async def test_configured_client_is_used_with_its_secret(things, canaille):
    port = _free_port()
    request = {"redirect_uris": [f"http://127.0.0.1:{port}/callback"], "scope": "openid", "client_name": "mine"}
    request |= {"grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"]}
    async with httpx2.AsyncClient() as http:
        client = (await http.post(f"{canaille}/oauth/register", json=request)).json()
    oauth = {"client_id": client["client_id"], "client_secret": "mine", "redirect_port": port}
    async with things.open(oauth=oauth) as host:
        await host.op("secrets.set", {"name": "mine", "value": client["client_secret"], "origins": [canaille]})
        assert (await things.log_in(host))["client_id"] == client["client_id"]
        assert await things.add(host, a=2) == "3"


async def test_secret_of_a_client_is_sent_to_its_origin_only(things):
    oauth = {"client_id": "client", "client_secret": "mine"}
    async with things.open(oauth=oauth) as host:
        request = {"name": "mine", "value": "a secret of the client", "origins": ["https://login.example.org"]}
        await host.op("secrets.set", request)
        with pytest.raises(SidebandError, match=r"https://login\.example\.org"):
            await things.ask(host)


async def test_server_that_asks_for_an_authorization_is_explained(things):
    async with things.open(oauth=False) as host:
        with pytest.raises(McpUnavailable, match="asks for authorization") as caught:
            await things.list(host)
        assert "`oauth = true`" in caught.value.hint


async def test_login_without_a_place_for_its_tokens_does_not_begin(things):
    async with things.open(secrets=None) as host:
        with pytest.raises(SidebandError, match="secrets"):
            await things.ask(host)


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]
