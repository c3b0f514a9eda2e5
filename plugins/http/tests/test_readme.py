"""The table of addresses in the README matches the code."""

import re
from ipaddress import ip_network
from pathlib import Path

from sideband_http import AddressClass
from sideband_http._addresses._classes import BLOCKS, FORBIDDEN, METADATA, literal

README = Path(__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([a-z-]+)` \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)
TABLE = README.partition("| `network` |")[2].partition("\n\n")[0]
ROWS = {kind: (who, text) for kind, who, text in ROW.findall(TABLE)}
# Classified by the embedded address, as the text below the table explains.
EMBEDDING = {ip_network(one) for one in ("::ffff:0:0/96", "64:ff9b::/96", "2001::/32", "2002::/16", "2000::/3")}


def addresses(kind):
    return {one.strip() for one in ROWS[kind][1].split(",")} - {""}


def test_each_class_has_a_row():
    assert list(ROWS) == [kind.value for kind in AddressClass]
    assert {kind for kind, (who, _) in ROWS.items() if "always refused" in who} == FORBIDDEN


def test_each_block_is_in_the_row_of_its_class():
    for kind in set(AddressClass) - {AddressClass.PUBLIC, AddressClass.METADATA}:
        listed = {one for one in addresses(kind) if "/" in one and " " not in one}
        assert listed == {str(block.network) for block in BLOCKS if block.kind is kind}, kind
    assert {block.network for block in BLOCKS if block.kind is AddressClass.PUBLIC} == EMBEDDING


def test_each_metadata_address_is_listed():
    assert {literal(one) for one in addresses("metadata")} == set(METADATA)
