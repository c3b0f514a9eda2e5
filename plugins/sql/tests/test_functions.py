import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sideband_sql._sqlite._functions import install

_text = st.text(alphabet="ab ü0.\t-", max_size=8)
_hexadecimal = st.one_of(st.none(), st.text(alphabet="aF0 ü-", max_size=6))
_values = st.one_of(st.none(), st.integers(-5, 5), st.sampled_from([0.5, 1.0, -2.25, 1e20, 1e-7]), _text)


@pytest.fixture(scope="module")
def connections():
    plain, replaced = apsw.Connection(":memory:"), apsw.Connection(":memory:")
    install(replaced, 1_000_000)
    yield plain, replaced
    plain.close()
    replaced.close()


_CALLS = [*(f"{name}({given})" for name in ("trim", "ltrim", "rtrim") for given in (":x", ":x, :y")),
    "instr(:x, :y)", "unhex(:h, :y)", "replace(:x, :y, :z)"]  # fmt: skip


@pytest.mark.parametrize("call", _CALLS)
def test_replacements_return_the_same_as_sqlite(connections, call):
    plain, replaced = connections

    @settings(max_examples=50)
    @given(_values, _values, _values, _hexadecimal)
    def same(x, y, z, h):
        values = {"x": x, "y": y, "z": z, "h": h}
        sql = f"SELECT {call} AS v, typeof({call}) AS t"
        assert replaced.execute(sql, values).fetchone() == plain.execute(sql, values).fetchone()

    same()


def test_instr_counts_bytes_in_a_blob(connections):
    for connection in connections:
        assert connection.execute("SELECT instr(x'c3bc61', x'61'), instr('üa', 'a')").fetchone() == (3, 2)
