"""SDK calls of a skill in a real worker."""

import re
from pathlib import Path
from textwrap import dedent

import pytest
import sideband_skills.plugin
import sideband_sql.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin

pytestmark = pytest.mark.anyio

SKILL = '''
    from sideband.skill import sql, tool


    @tool
    async def total(batch: int, most: int) -> list:
        """Add up numbers.

        Args:
            batch: how many rows to fetch at once
            most: the maximum number of rows
        """
        found = []
        async for row in sql.rows("SELECT a FROM t WHERE a > :low", db="a.db", params={"low": 5}, batch=batch):
            found.append(row["a"])
            if len(found) == most:
                break
        return [len(found), sum(found)]
'''


@pytest.mark.parametrize(("batch", "most", "expected"), [(100, 9999, [995, 500485]), (7, 10, [10, 105])])
async def test_skill_iterates_over_rows_in_batches(tmp_path, batch, most, expected):
    folder = tmp_path / "skills" / "adder"
    folder.mkdir(parents=True)
    folder.joinpath("SKILL.md").write_text(
        "---\nname: adder\ndescription: Adds.\nmetadata:\n  sideband.capabilities: sql:path=a.db,mode=read\n---\n"
    )
    folder.joinpath("tools.py").write_text(dedent(SKILL))
    plugins = [
        Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
        Plugin(kind="loader", name="skills", value=sideband_skills.plugin),
        Plugin(kind="op", name="sql", value=sideband_sql.plugin),
    ]
    settings = {"policy": {"isolation": "none"}, "grants": {"adder": ["sql:path=a.db,mode=read"]}}
    async with Host(
        home=tmp_path / "home", settings=settings, plugins=plugins, autoload=False, skill_dirs=[folder.parent]
    ) as host:
        await host.op("sql.execute", {"db": "a.db", "sql": "CREATE TABLE t (a)"})
        rows = [[number] for number in range(1, 1001)]
        await host.op("sql.executemany", {"db": "a.db", "sql": "INSERT INTO t VALUES (?)", "rows": rows})
        assert await host.call("adder.total", batch=batch, most=most) == expected


async def test_readme_example_works(tmp_path):
    readme = (Path(sideband_sql.plugin.__file__).parents[2] / "README.md").read_text()
    (code,) = re.findall(r"^```python\n(from sideband.skill.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    folder = tmp_path / "skills" / "lab"
    folder.mkdir(parents=True)
    folder.joinpath("SKILL.md").write_text(
        "---\nname: lab\ndescription: Measures.\nmetadata:\n  sideband.capabilities: sql:path=lab.db\n---\n"
    )
    folder.joinpath("tools.py").write_text(code)
    plugins = [
        Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
        Plugin(kind="loader", name="skills", value=sideband_skills.plugin),
        Plugin(kind="op", name="sql", value=sideband_sql.plugin),
    ]
    settings = {"policy": {"isolation": "none"}, "grants": {"lab": ["sql:path=lab.db"]}}
    async with Host(
        home=tmp_path / "home", settings=settings, plugins=plugins, autoload=False, skill_dirs=[folder.parent]
    ) as host:
        sql = "CREATE TABLE measurements (day TEXT, value REAL)"
        await host.op("sql.execute", {"db": "lab.db", "sql": sql})
        await host.call("lab.keep", day="monday", values=[1.5, 2.5, -1.0])
        assert await host.call("lab.total", day="monday") == 3.0
