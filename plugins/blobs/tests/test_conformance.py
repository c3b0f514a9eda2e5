"""The op family passes the tests that every op family passes."""

from hashlib import sha256

from sideband_testing.conformance import Example, OpFamilyConformance

HELLO = sha256(b"hello").hexdigest()


class TestBlobs(OpFamilyConformance):
    plugin = "op.blobs"
    max_modules = 60
    examples = (
        Example("blobs.put", {"content": "hello"}),
        Example("blobs.get", {"sha256": HELLO, "kind": "text"}),
        Example("blobs.get", {"sha256": "0" * 64}, error="blob.missing"),
        Example("blobs.stat", {"sha256": HELLO}),
        Example("blobs.list", {}),
        Example("blobs.delete", {"sha256": HELLO}),
    )

    remains_after_undo = {"blobs.delete": "the content of a blob that was deleted is kept nowhere"}

    async def prepare_host(self, host, example):
        if example.name != "blobs.put":
            await host.op("blobs.put", {"content": "hello"})
        elif await host.blobs.find(HELLO) is not None:
            await host.op("blobs.delete", {"sha256": HELLO})

    def observe(self, folder, home):
        return sorted(path.name for path in (home / "blobs").rglob("*") if len(path.name) == len(HELLO))
