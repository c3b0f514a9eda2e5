import anyio
import pytest
from pydantic import ValidationError
from sideband.ops import OpDenied, OpParamsInvalid
from sideband_secrets import SecretBinary, SecretMissing
from sideband_secrets._models import SecretSetParams

pytestmark = pytest.mark.anyio

ORIGIN = "https://api.example.org"


@pytest.fixture(params=["memory", "encrypted", "keyring"])
def config(request):
    if request.param == "keyring":
        request.getfixturevalue("real_keyring")
    return {"backend": request.param}


@pytest.fixture
async def host(open_host, config):
    async with open_host(**config) as host:
        yield host


def store(host, name="token", value="s3cr3t-value", **more):
    return host.op("secrets.set", {"name": name, "value": value, "origins": [ORIGIN], **more})


async def is_stored(host, *arguments, **more):
    """Return whether the parameters are accepted."""
    try:
        await store(host, *arguments, **more)
    except OpParamsInvalid:
        return False
    return True


async def test_stored_value_is_read_back(host):
    await store(host)
    assert await host.op("secrets.read", {"name": "token"}) == "s3cr3t-value"


async def test_set_returns_the_secret_without_its_value(host, config):
    stored = await store(host, origins=["HTTPS://API.example.org:443/", "http://127.0.0.1:8080"])
    assert stored.pop("updated").endswith("Z")
    assert stored == {
        "name": "token",
        "origins": [ORIGIN, "http://127.0.0.1:8080"],
        "kind": "text",
        "version": 1,
        "source": config["backend"],
        "previous_until": None,
    }


async def test_set_replaces_value_and_origins(host):
    await store(host)
    await store(host, value="another-value", origins=[])
    assert await host.op("secrets.read", {"name": "token"}) == "another-value"
    assert [one["origins"] for one in (await host.op("secrets.list", {}))["items"]] == [[]]


async def test_list_is_sorted_and_contains_the_backend(host, config):
    await store(host, "b")
    await store(host, "a", b"\x00\xff\x80\x81")
    listed = await host.op("secrets.list", {})
    assert [(one["name"], one["kind"]) for one in listed["items"]] == [("a", "binary"), ("b", "text")]
    assert listed["backend"] == config["backend"]


async def test_text_round_trips(host):
    for value in ("grüß \n\t\"'\\ 日本 \x00", "x" * 65536, "a"):
        await store(host, value=value)
        assert await host.op("secrets.read", {"name": "token"}) == value
        assert await host.op("secrets.read_binary", {"name": "token"}) == value.encode()


async def test_bytes_round_trip(host):
    value = bytes(range(256)) * 256
    await store(host, value=value)
    assert await host.op("secrets.read_binary", {"name": "token"}) == value
    with pytest.raises(SecretBinary):
        await host.op("secrets.read", {"name": "token"})


async def test_deleted_secret_is_missing(host):
    await store(host)
    await host.op("secrets.delete", {"name": "token"})
    for op, command in (("secrets.read", "set token"), ("secrets.delete", "list")):
        with pytest.raises(SecretMissing) as caught:
            await host.op(op, {"name": "token"})
        assert caught.value.code == "secrets.missing"
        assert f"sideband secrets {command}" in caught.value.hint
    assert (await host.op("secrets.list", {}))["items"] == []


async def test_concurrent_sets_are_all_stored(host):
    async with anyio.create_task_group() as tasks:
        for number in range(12):
            tasks.start_soon(store, host, f"token-{number}", f"value-{number}")
    assert len((await host.op("secrets.list", {}))["items"]) == 12


class TestInMemory:
    @pytest.fixture
    def config(self):
        return {"backend": "memory"}

    async def test_empty_or_oversized_value_is_rejected(self, host):
        for value in ("", b"", "x" * 65537, b"x" * 65537, "ü" * 32769):
            with pytest.raises(OpParamsInvalid) as caught:
                await store(host, value=value)
            assert "xxx" not in caught.value.message

    def test_validation_error_omits_the_value(self):
        with pytest.raises(ValidationError) as caught:
            SecretSetParams.model_validate({"name": "A", "value": ["s3cr3t-value"], "more": "s3cr3t-value"})
        assert "s3cr3t-value" not in str(caught.value)

    async def test_invalid_name_is_rejected(self, host):
        names = ["", "A", "-a", ".a", "a/b", "a b", "a" * 65, ":index", "ä", "a\n"]
        assert [name for name in names if await is_stored(host, name)] == []

    async def test_invalid_origin_is_rejected(self, host):
        origins = [
            "", "example.org", "https://", "https://*.example.org", "https://u:p@example.org", "https://example.org/path",
            "https://example.org?q", "https://example.org#f", "https://exämple.org", "https://example.org:0",
            "https://example.org:99999", "postgres://db", "https://a b", "https://example.org\n", "https://[::1%25eth0]",
            "https://example.org.",
        ]  # fmt: skip
        assert [origin for origin in origins if await is_stored(host, origins=[origin])] == []

    async def test_invalid_header_is_rejected(self, host):
        headers = [
            {"Host": "{value}"},
            {"A b": "{value}"},
            {"X": "none"},
            {"X": "{other} {value}"},
            {"X": "{value}\r\nY: 1"},
        ]
        assert [one for one in headers if await is_stored(host, headers=one)] == []

    async def test_read_needs_a_reveal_grant(self, host):
        await store(host)
        for grants in (
            [],
            ["secrets"],
            ["secrets:name=token"],
            ["secrets:name=token,mode=use"],
            ["secrets:name=other,mode=reveal"],
        ):
            for op in ("secrets.read", "secrets.read_binary"):
                with pytest.raises(OpDenied):
                    await host.op(op, {"name": "token"}, grants=grants)
        assert await host.op("secrets.read", {"name": "token"}, grants=["secrets:name=token,mode=reveal"])

    async def test_set_and_delete_need_a_write_grant(self, host):
        await store(host)
        params = {"name": "token", "value": "mine now"}
        for grants in (["secrets"], ["secrets:name=token"], ["secrets:name=token,mode=reveal|use"]):
            with pytest.raises(OpDenied):
                await host.op("secrets.set", params, grants=grants)
            with pytest.raises(OpDenied):
                await host.op("secrets.delete", {"name": "token"}, grants=grants)
        await host.op("secrets.set", params, grants=["secrets:name=token,mode=write"])

    async def test_list_contains_only_granted_secrets(self, host):
        for name in ("a", "b", "c"):
            await store(host, name)
        listed = await host.op("secrets.list", {}, grants=["secrets:name=a", "secrets:name=c,mode=write"])
        assert [one["name"] for one in listed["items"]] == ["a", "c"]
        with pytest.raises(OpDenied):
            await host.op("secrets.list", {}, grants=["probe"])

    async def test_memory_backend_forgets_secrets_when_the_host_closes(self, open_host, config, home):
        async with open_host(**config) as host:
            await store(host)
        async with open_host(**config) as host:
            assert (await host.op("secrets.list", {}))["items"] == []
        assert not (home / "secrets").exists()
