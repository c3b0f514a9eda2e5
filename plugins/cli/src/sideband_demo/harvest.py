"""The demo skill. Every effect in this module is a request to the host."""

import asyncio

from sideband.skill import OpError, demo, http, progress, secrets, sql, tool

DATABASE = "demo.db"
CREDENTIAL = "sideband-demo"


@tool
async def harvest(pages: int = 6) -> dict:
    """Fetch pages about planets, store them in a database, and read them back.

    Args:
        pages: the number of planets to fetch, 1 to 8.
    """
    service = await demo.service()
    await progress.report(message=f"fetching {pages} pages concurrently", current=0, total=pages)
    answers = await asyncio.gather(*(fetch(service["url"], number) for number in range(1, pages + 1)))
    await store(answers)
    await progress.report(message="reading the pages back", current=pages, total=pages)
    rows = await sql.query("SELECT name, moons, day_hours FROM planets ORDER BY position", db=DATABASE)
    return {"planets": rows["rows"], "refused": await request_ungranted_secret()}


async def fetch(url: str, number: int) -> dict:
    answer = await http.get(f"{url}/planets/{number}", auth=CREDENTIAL)
    if not answer["ok"]:
        raise LookupError(f"cannot fetch planet {number}: the service answered {answer['status']}")
    await progress.report(message=f"fetched {answer['json']['name']}")
    return answer["json"]


async def store(planets: list[dict]) -> None:
    await sql.execute(
        "CREATE TABLE IF NOT EXISTS planets (position INTEGER PRIMARY KEY, name TEXT, moons INTEGER, day_hours REAL)",
        db=DATABASE,
    )
    await sql.executemany(
        "INSERT OR REPLACE INTO planets VALUES (:position, :name, :moons, :day_hours)", db=DATABASE, rows=planets
    )


async def request_ungranted_secret() -> dict:
    """Request the value of the credential, which the grant does not allow, and return the error."""
    try:
        await secrets.read(CREDENTIAL)
    except OpError as error:
        return {"op": error.op, "code": error.code, "message": str(error)}
    return {}
