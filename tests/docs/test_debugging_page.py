"""The examples of the page on what plugins do work, in their order."""

import pytest

PAGE = "docs/plugins/debugging.md"

pytestmark = pytest.mark.anyio


async def test_examples_show_what_plugins_do(tmp_path, page, walk, monkeypatch):
    walk(PAGE, tmp_path)
    monkeypatch.chdir(tmp_path)
    found = await page(PAGE).module("async def slow_hooks").slow_hooks(tmp_path / "other")
    assert [one.ms for one in found] == sorted((one.ms for one in found), reverse=True)
    assert ("op_call", "guard-limits", "kept") in {(one.hook, one.plugin, one.result) for one in found}
