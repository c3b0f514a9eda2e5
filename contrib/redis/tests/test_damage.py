"""What another client has written under the keys of the store: a typed error, and nothing is changed."""

import socket

import pytest
from sideband_redis import RedisDamaged, open_redis

pytestmark = pytest.mark.anyio

DOCUMENTS = {
    "empty": b"",
    "without a version": b'{"n":1}',
    "a text": b"x",
    "a negative version": b"-1:{}",
    "a huge version": b"9" * 400 + b":{}",
}
VALUES = {
    "cut": b'{"n":1',
    "no object": b"[1]",
    "nested deeply": b"[" * 100_000,
    "a huge number": b'{"n":' + b"1" * 5_000 + b"}",
    "not in UTF-8": b'{"n":"\xff"}',
}


def send(server, *words):
    """Send a command whose words may be bytes that are not in UTF-8."""
    parts = [one if isinstance(one, bytes) else one.encode() for one in words]
    with socket.create_connection(("127.0.0.1", server.port), 5) as connection:
        connection.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(one), one) for one in parts))
        return connection.recv(1_000)


async def in_transaction(store, operation, *arguments):
    async with store.transaction() as transaction:
        await getattr(transaction, operation)(*arguments)


def name(prefix, end):
    return f"{{{prefix}}}:{end}"


@pytest.mark.parametrize("text", DOCUMENTS.values(), ids=DOCUMENTS)
async def test_document_without_a_version_is_a_typed_error_and_not_changed(server, config, prefix, text):
    async with open_redis(config()) as store:
        await store.put("a\r\nb", {})
        send(server, "HSET", name(prefix, "documents"), "a\r\nb", text)
        for use in (
            store.get("a\r\nb"),
            store.put("a\r\nb", {}),
            store.put("a\r\nb", {}, version=0),
            store.delete("a\r\nb"),
            in_transaction(store, "put", "a\r\nb", {}),
        ):
            with pytest.raises(RedisDamaged, match=r"at 'a\\r\\nb': a document has no version") as caught:
                await use
            assert caught.value.code == "redis.damaged"
            assert "restore the data" in caught.value.hint
        assert send(server, "HGET", name(prefix, "documents"), "a\r\nb") == b"$%d\r\n%s\r\n" % (len(text), text)
        assert await store.put("b", {}) == 1


@pytest.mark.parametrize("text", VALUES.values(), ids=VALUES)
async def test_value_that_is_not_an_object_of_json_is_a_typed_error(server, config, prefix, text):
    async with open_redis(config()) as store:
        await store.put("a", {})
        send(server, "HSET", name(prefix, "documents"), "a", b"1:" + text)
        send(server, "RPUSH", name(prefix, "stream:s"), text)
        for use in (
            store.get("a"),
            store.read("s"),
            in_transaction(store, "get", "a"),
            in_transaction(store, "read", "s"),
        ):
            with pytest.raises(RedisDamaged, match=r"at '[as]'"):
                await use
        assert await store.put("a", {"n": 2}) == 2


async def test_key_that_is_not_a_text_is_a_typed_error(server, config, prefix):
    async with open_redis(config()) as store:
        send(server, "ZADD", name(prefix, "index"), "0", b"a\xff")
        for use in (store.keys(), in_transaction(store, "keys")):
            with pytest.raises(RedisDamaged, match="UTF-8"):
                await use
        assert await store.keys("b") == ()


async def test_lock_without_a_holder_is_a_typed_error(server, config, prefix):
    async with open_redis(config()) as store:
        for text in ("", "x"):
            send(server, "HSET", name(prefix, "locks"), "session", text)
            with pytest.raises(RedisDamaged, match="at 'session': a lock has no holder"):
                await store.try_lock("session")
        send(server, "HDEL", name(prefix, "locks"), "session")
        assert await store.try_lock("session")
