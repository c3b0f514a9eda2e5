"""The plugin passes the tests that every store passes."""

from sideband_testing.conformance import StoreConformance


class TestSqlite(StoreConformance):
    plugin = "store.sqlite"
    max_modules = 60
