"""Who the host is to servers that ask, and that it is nobody to all others."""

import os
import ssl
from threading import Thread

import pytest
import trustme
from sideband.ops import Credential
from sideband_http import ClientCertificateInvalid

pytestmark = pytest.mark.anyio

PASSWORD = "s3cr3t-token-value"  # what the host's source of credentials knows


@pytest.fixture
def clients():
    """The authority of those who may come."""
    return trustme.CA()


@pytest.fixture
def asking(server_context, clients):
    """Makes the servers of this test ask for a certificate."""
    server_context.verify_mode = ssl.CERT_OPTIONAL
    clients.configure_trust(server_context)


@pytest.fixture
def files(tmp_path, clients):
    """Certificate and key, in two files."""
    mine = clients.issue_cert("me@example.org")
    certificate, key = tmp_path / "me.pem", tmp_path / "me.key"
    certificate.write_bytes(b"".join(one.bytes() for one in mine.cert_chain_pems))
    write_private(key, mine.private_key_pem.bytes())
    return certificate, key


def write_private(path, content):
    path.touch(mode=0o600)
    path.write_bytes(content)


def told(server, monkeypatch):
    """Let `/echo` say who came."""

    def who(handler):
        shown = handler.connection.getpeercert()
        handler.send(b"nobody" if not shown else dict(shown["subjectAltName"])["email"].encode())

    monkeypatch.setattr(server.RequestHandlerClass, "at_who", who, raising=False)


async def who(host, server):
    return (await host.op("http.get", {"url": server.url("/who")}))["body"]


def config(origin, certificate, key=None, **more):
    shown = {"certificate": str(certificate), **({"key": str(key)} if key else {}), **more}
    return {"client_certificates": {origin: shown}}


@pytest.fixture
def server_of(asking, tls_server, monkeypatch):
    told(tls_server, monkeypatch)
    return tls_server


async def test_a_certificate_is_shown_to_its_origin(open_host, server_of, ca_file, files):
    async with open_host(ca_file=str(ca_file), **config(server_of.origin, *files)) as host:
        assert await who(host, server_of) == "me@example.org"


async def test_key_and_certificate_may_be_one_file(open_host, server_of, ca_file, files, tmp_path):
    both = tmp_path / "both.pem"
    write_private(both, files[0].read_bytes() + files[1].read_bytes())
    async with open_host(ca_file=str(ca_file), **config(server_of.origin, both)) as host:
        assert await who(host, server_of) == "me@example.org"


async def test_nobody_else_is_shown_a_certificate(open_host, server_of, ca_file, files, credentials):
    async with open_host(ca_file=str(ca_file), **config("https://127.0.0.1", *files)) as host:
        assert await who(host, server_of) == "nobody"
        location = {"to": server_of.url("/who")}
        elsewhere = await host.op("http.get", {"url": server_of.url("/redirect"), "params": location})
    assert elsewhere["body"] == "nobody"


@pytest.mark.parametrize("first", [True, False])
async def test_two_servers_are_told_apart_whoever_comes_first(
    open_host, server_of, server_context, *, first, ca_file, files
):
    other = type(server_of)(server_context)
    thread = Thread(target=other.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        async with open_host(ca_file=str(ca_file), **config(server_of.origin, *files)) as host:
            order = [server_of, other] if first else [other, server_of]
            told = {one.origin: await who(host, one) for one in order}
    finally:
        other.shutdown()
        thread.join()
        other.server_close()
    assert told == {server_of.origin: "me@example.org", other.origin: "nobody"}


async def test_a_connection_with_a_certificate_serves_no_session_of_another_origin(
    open_host, server_of, ca_file, files
):
    async with open_host(ca_file=str(ca_file), **config(server_of.origin, *files)) as host:
        steps = [
            ("http.session_open", {}),
            ("http.session_request", {"session_id": "$session", "url": server_of.url("/who")}),
        ]
        answers = await host.op("flow.run", {"steps": steps})
    assert answers[1]["body"] == "me@example.org"


async def test_a_key_may_be_encrypted_with_a_secret(open_host, server_of, ca_file, files, credentials):
    write_private(files[1], encrypted(files[1].read_bytes()))
    settings = config(server_of.origin, *files, password="bearer")
    async with open_host(ca_file=str(ca_file), **settings) as host:
        assert await who(host, server_of) == "me@example.org"
        assert await who(host, server_of) == "me@example.org"
    assert credentials.asked == [("bearer", server_of.origin)]


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
            await host.op("http.get", {"url": server.url("/who")})
    assert caught.value.code == "http.client_certificate"
    assert "chmod 600" in caught.value.hint
    assert caught.value.nothing_happened
    assert server.seen == []
    return caught.value.message


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o660])
async def test_a_key_that_others_can_read_or_change_is_not_used(open_host, server_of, files, mode):
    files[1].chmod(mode)
    assert "by others" in await refused(open_host, server_of, config(server_of.origin, *files))


async def test_a_certificate_with_its_key_that_others_can_read_is_not_used(open_host, server_of, files, tmp_path):
    both = tmp_path / "both.pem"
    both.write_bytes(files[0].read_bytes() + files[1].read_bytes())
    both.chmod(0o644)
    assert "by others" in await refused(open_host, server_of, config(server_of.origin, both))


async def test_a_key_of_somebody_else_is_not_used(open_host, server_of, files, monkeypatch):
    if os.geteuid() == 0:
        os.chown(files[1], 12_345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    assert "somebody else" in await refused(open_host, server_of, config(server_of.origin, *files))


async def test_a_key_that_is_not_there(open_host, server_of, files, tmp_path):
    message = await refused(open_host, server_of, config(server_of.origin, files[0], tmp_path / "missing.key"))
    assert "No such file" in message


async def test_a_key_that_is_no_file(open_host, server_of, files, tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert "is no file" in await refused(open_host, server_of, config(server_of.origin, files[0], tmp_path / "pipe"))


async def test_a_certificate_that_is_no_file(open_host, server_of, files, tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert "is no file" in await refused(open_host, server_of, config(server_of.origin, tmp_path / "pipe", files[1]))


async def test_a_password_that_is_too_long_for_any_key(open_host, server_of, files, credentials):
    async def resolve(handle, audience, ctx):
        return Credential(handle, "long" * 1_000)

    credentials.resolve = resolve
    write_private(files[1], encrypted(files[1].read_bytes()))
    settings = config(server_of.origin, *files, password="bearer")
    assert "password is wrong" in await refused(open_host, server_of, settings)


async def test_a_key_that_does_not_fit(open_host, server_of, files, clients):
    write_private(files[1], clients.issue_cert("you@example.org").private_key_pem.bytes())
    assert "do not fit" in await refused(open_host, server_of, config(server_of.origin, *files))


async def test_a_key_that_is_encrypted_without_a_password_asks_nobody(open_host, server_of, files):
    write_private(files[1], encrypted(files[1].read_bytes()))
    assert "password is wrong" in await refused(open_host, server_of, config(server_of.origin, *files))


async def test_a_password_that_does_not_exist(open_host, server_of, files):
    settings = config(server_of.origin, *files, password="missing")
    async with open_host(**settings) as host:
        with pytest.raises(Exception, match="no such secret"):
            await host.op("http.get", {"url": server_of.url("/who")})


@pytest.mark.parametrize("origin", ["http://127.0.0.1", "https://h/path", "127.0.0.1", "https://me@h"])
async def test_an_origin_that_is_written_wrongly_is_a_problem_of_the_configuration(open_host, files, origin):
    async with open_host(**config(origin, *files)) as host:
        with pytest.raises(Exception, match="client_certificates") as caught:
            await host.op("http.get", {"url": "http://127.0.0.1:9/"})
    assert caught.value.exit_code == 5
