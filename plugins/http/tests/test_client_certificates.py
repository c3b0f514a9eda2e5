"""Client certificates: they are sent to their own origin only."""

import os
import ssl

import pytest
import trustme
from sideband.ops import Credential
from sideband_http import ClientCertificateInvalid

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

PASSWORD = "s3cr3t-token-value"  # the value in `Credentials`


@pytest.fixture
def clients():
    """Return the certificate authority of the clients."""
    return trustme.CA()


@pytest.fixture
def requesting(server_context, clients):
    """Make the servers of this test request a client certificate."""
    server_context.verify_mode = ssl.CERT_OPTIONAL
    clients.configure_trust(server_context)


@pytest.fixture
def files(tmp_path, clients):
    """Return the paths of a certificate and its key."""
    mine = clients.issue_cert("me@example.org")
    certificate, key = tmp_path / "me.pem", tmp_path / "me.key"
    certificate.write_bytes(b"".join(one.bytes() for one in mine.cert_chain_pems))
    write_private(key, mine.private_key_pem.bytes())
    return certificate, key


def write_private(path, content):
    path.touch(mode=0o600)
    path.write_bytes(content)


def add_identity_path(server):
    """Let `/identity` return the name in the client certificate."""

    def answer(exchange):
        certificate = exchange.connection.getpeercert()
        name = dict(certificate["subjectAltName"])["email"] if certificate else "anonymous"
        return exchange.respond(name.encode())

    server.answer(answer, path="/identity")


async def identity(host, server):
    return (await host.op("http.get", {"url": server.url("/identity")}))["body"]


def config(origin, certificate, key=None, **more):
    table = {"certificate": str(certificate), **({"key": str(key)} if key else {}), **more}
    return {"client_certificates": {origin: table}}


@pytest.fixture
def server_of(requesting, tls_server):
    add_identity_path(tls_server)
    return tls_server


@BOTH_BACKENDS
async def test_certificate_is_sent_to_its_origin(open_host, server_of, ca_file, files):
    async with open_host(ca_file=str(ca_file), **config(server_of.origin, *files)) as host:
        assert await identity(host, server_of) == "me@example.org"


async def test_key_and_certificate_may_be_in_one_file(open_host, server_of, ca_file, files, tmp_path):
    both = tmp_path / "both.pem"
    write_private(both, files[0].read_bytes() + files[1].read_bytes())
    async with open_host(ca_file=str(ca_file), **config(server_of.origin, both)) as host:
        assert await identity(host, server_of) == "me@example.org"


@BOTH_BACKENDS
async def test_certificate_is_not_sent_to_another_origin(open_host, server_of, ca_file, files, credentials):
    async with open_host(ca_file=str(ca_file), **config("https://127.0.0.1", *files)) as host:
        assert await identity(host, server_of) == "anonymous"
        location = {"to": server_of.url("/identity")}
        elsewhere = await host.op("http.get", {"url": server_of.url("/redirect"), "params": location})
    assert elsewhere["body"] == "anonymous"


@BOTH_BACKENDS
@pytest.mark.parametrize("first", [True, False])
async def test_certificate_is_not_sent_to_another_server_in_either_order(
    open_host, server_of, server_context, *, first, ca_file, files
):
    other = server_of.another(tls=server_context)
    add_identity_path(other)
    async with open_host(ca_file=str(ca_file), **config(server_of.origin, *files)) as host:
        order = [server_of, other] if first else [other, server_of]
        identities = {one.origin: await identity(host, one) for one in order}
    assert identities == {server_of.origin: "me@example.org", other.origin: "anonymous"}


async def test_certificate_is_sent_in_a_session(open_host, server_of, ca_file, files):
    async with open_host(ca_file=str(ca_file), **config(server_of.origin, *files)) as host:
        steps = [
            ("http.session_open", {}),
            ("http.session_request", {"session_id": "$session", "url": server_of.url("/identity")}),
        ]
        answers = await host.op("flow.run", {"steps": steps})
    assert answers[1]["body"] == "me@example.org"


async def test_key_may_be_encrypted_with_a_secret(open_host, server_of, ca_file, files, credentials):
    write_private(files[1], encrypted(files[1].read_bytes()))
    settings = config(server_of.origin, *files, password="bearer")
    async with open_host(ca_file=str(ca_file), **settings) as host:
        assert await identity(host, server_of) == "me@example.org"
        assert await identity(host, server_of) == "me@example.org"
    assert credentials.resolved == [("bearer", server_of.origin)]


def encrypted(pem):
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(pem, None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(PASSWORD.encode()),
    )


async def refused(open_host, server, settings):
    async with open_host(**settings) as host:
        with pytest.raises(ClientCertificateInvalid) as caught:
            await host.op("http.get", {"url": server.url("/identity")})
    assert caught.value.code == "http.client_certificate"
    assert "chmod 600" in caught.value.hint
    assert caught.value.nothing_happened
    assert server.requests == []
    return caught.value.message


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o660])
async def test_key_accessible_to_others_is_rejected(open_host, server_of, files, mode):
    files[1].chmod(mode)
    assert "accessible to other users" in await refused(open_host, server_of, config(server_of.origin, *files))


async def test_file_with_certificate_and_key_accessible_to_others_is_rejected(open_host, server_of, files, tmp_path):
    both = tmp_path / "both.pem"
    both.write_bytes(files[0].read_bytes() + files[1].read_bytes())
    both.chmod(0o644)
    assert "accessible to other users" in await refused(open_host, server_of, config(server_of.origin, both))


async def test_key_of_another_user_is_rejected(open_host, server_of, files, monkeypatch):
    if os.geteuid() == 0:
        os.chown(files[1], 12_345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    assert "another user" in await refused(open_host, server_of, config(server_of.origin, *files))


async def test_missing_key_is_rejected(open_host, server_of, files, tmp_path):
    message = await refused(open_host, server_of, config(server_of.origin, files[0], tmp_path / "missing.key"))
    assert "No such file" in message


async def test_key_that_is_a_pipe_is_rejected(open_host, server_of, files, tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert "not a regular file" in await refused(
        open_host, server_of, config(server_of.origin, files[0], tmp_path / "pipe")
    )


async def test_certificate_that_is_a_pipe_is_rejected(open_host, server_of, files, tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert "not a regular file" in await refused(
        open_host, server_of, config(server_of.origin, tmp_path / "pipe", files[1])
    )


async def test_overlong_password_is_rejected(open_host, server_of, files, credentials):
    async def resolve(handle, audience, ctx):
        return Credential(handle, "long" * 1_000)

    credentials.resolve = resolve
    write_private(files[1], encrypted(files[1].read_bytes()))
    settings = config(server_of.origin, *files, password="bearer")
    assert "password is wrong" in await refused(open_host, server_of, settings)


async def test_key_of_another_certificate_is_rejected(open_host, server_of, files, clients):
    write_private(files[1], clients.issue_cert("you@example.org").private_key_pem.bytes())
    assert "do not match" in await refused(open_host, server_of, config(server_of.origin, *files))


async def test_encrypted_key_without_a_password_does_not_prompt(open_host, server_of, files):
    write_private(files[1], encrypted(files[1].read_bytes()))
    assert "password is wrong" in await refused(open_host, server_of, config(server_of.origin, *files))


async def test_missing_password_is_an_error(open_host, server_of, files):
    settings = config(server_of.origin, *files, password="missing")
    async with open_host(**settings) as host:
        with pytest.raises(Exception, match="the secret `missing` does not exist"):
            await host.op("http.get", {"url": server_of.url("/identity")})


@pytest.mark.parametrize("origin", ["http://127.0.0.1", "https://h/path", "127.0.0.1", "https://me@h"])
async def test_invalid_origin_is_a_configuration_error(open_host, files, origin):
    async with open_host(**config(origin, *files)) as host:
        with pytest.raises(Exception, match="client_certificates") as caught:
            await host.op("http.get", {"url": "http://127.0.0.1:9/"})
    assert caught.value.exit_code == 5
