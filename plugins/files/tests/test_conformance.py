"""The op family passes the tests that every op family passes."""

from hashlib import sha256

from sideband_testing.conformance import Example, OpFamilyConformance

A, B = "{folder}/a.txt", "{folder}/b.txt"


class TestFiles(OpFamilyConformance):
    plugin = "op.files"
    max_modules = 80
    max_steps = 6
    examples = (
        Example("files.read", {"path": A}),
        Example("files.read", {"path": B}, error="file.missing"),
        Example("files.lines", {"path": A, "first": 1}),
        Example("files.list", {"path": "{folder}"}),
        Example("files.find", {"path": "{folder}", "pattern": "*.txt"}),
        Example("files.search", {"path": "{folder}", "pattern": "o"}),
        Example("files.stat", {"path": A, "digest": True}),
        Example("files.write", {"path": A, "content": "new", "overwrite": True}),
        Example("files.write", {"path": B, "content": "new"}),
        Example("files.copy", {"path": A, "target": B}),
        Example("files.move", {"path": A, "target": B}),
        Example("files.delete", {"path": A}),
        Example("files.make_folder", {"path": "{folder}/new"}),
        Example("files.restore", {"path": A, "expected": sha256(b"old").hexdigest()}),
    )

    def prepare(self, folder):
        (folder / "a.txt").write_text("old")
