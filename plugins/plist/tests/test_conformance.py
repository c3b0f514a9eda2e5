"""The op family passes the tests that every op family passes."""

from sideband_testing.conformance import Example, OpFamilyConformance

DOCUMENT = "<plist><dict><key>a</key><integer>1</integer></dict></plist>"


class TestPlist(OpFamilyConformance):
    plugin = "op.plist"
    max_modules = 60
    examples = (
        Example("plist.parse", {"data": DOCUMENT}, result={"a": 1}),
        Example("plist.parse", {"data": "<plist><array>" + "<true/>" * 6_000 + "</array></plist>"}),
        Example("plist.parse", {"data": "<plist>"}, error="plist.syntax"),
        Example("plist.dump", {"value": {"a": 1}}),
    )
