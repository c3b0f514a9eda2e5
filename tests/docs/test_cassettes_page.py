"""The examples of the page on cassettes work, in their order."""

import pytest

pytestmark = pytest.mark.anyio

PAGE = "docs/cassettes.md"


async def test_examples_record_and_replay(tmp_path, page, walk, monkeypatch):
    variables = {"SIDEBAND_HOME": str(tmp_path / "home"), "SIDEBAND_POLICY__ISOLATION": "none"}
    walk(PAGE, tmp_path, **variables)
    monkeypatch.chdir(tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    issued = page(PAGE).module("async def issued").issued
    recorded = (tmp_path / "voucher.json").read_text()
    voucher = await issued("replay")
    assert voucher.rpartition(" ")[2] not in recorded  # only the bytes that the code is made of
    assert (tmp_path / "voucher.json").read_text() == recorded
