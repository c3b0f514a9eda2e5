"""A host on a machine of its own, which uses keys and sessions that others use too until it is killed.

Usage: storm_host.py HOME ADDRESS SCHEMA URL SEED [KEY …]. With keys it uses them once and ends, else it goes on until
it is killed. It notes the entries of sessions that were acknowledged, and the keys that were refused.
"""

import os
import random
import sys
from pathlib import Path

import anyio
import sideband_http.plugin
import sideband_postgres.plugin
from sideband import Host, Plugin, SidebandError
from sideband.messages import UserMessage
from sideband_agent.sessions import MessageEntry, SessionLocked, Sessions

KEYS, SESSIONS, ENTRIES = 12, 3, 4
PLUGINS = (Plugin("op", "http", sideband_http.plugin), Plugin("store", "postgres", sideband_postgres.plugin))
GRANT = "http:host=127.0.0.1"


def note(home, name, text):
    """Append one line atomically."""
    descriptor = os.open(home / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{text}\n".encode())
    os.close(descriptor)


async def use_keys(host, home, url, dice, keys):
    for key in keys:
        try:
            await host.op("http.post", {"url": f"{url}/{key}"}, key=key, grants=[GRANT])
        except SidebandError as error:
            note(home, "refused", f"{key} {error.code}")
            await anyio.sleep(dice.uniform(0, 0.05))


async def converse(host, home, dice, number):
    name = f"session-{number}"
    sessions = Sessions(host.store, home)
    found = [one.id for one in await sessions.list() if one.channel == name]
    try:
        session = await (sessions.open(found[0]) if found else sessions.create(channel=name))
    except SessionLocked:
        return
    async with session:
        for _ in range(ENTRIES):
            text = f"{dice.getrandbits(64):016x}"
            await session.append(MessageEntry(message=UserMessage(content=text)))
            note(home, "acknowledged", f"{name} {text}")


async def main(home, address, schema, url, seed, *last_keys):
    home, dice = Path(home), random.Random(seed)
    table = {"address": address, "schema": schema, "grace_seconds": 0.5, "wait_seconds": 10}
    settings = {"plugins": {"postgres": table}}
    done = 0
    while not (last_keys and done):
        try:
            async with Host(home=home, settings=settings, plugins=PLUGINS, autoload=False) as host:
                while not (last_keys and done):
                    # Some keys of each round are new, so that many are claimed for the first time.
                    keys = list(last_keys) or [f"key{number}" for number in range(4 * done, 4 * done + KEYS)]
                    dice.shuffle(keys)
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(use_keys, host, home, url, dice, keys)
                        for number in range(SESSIONS):
                            tasks.start_soon(converse, host, home, dice, number)
                    done += 1
        except* SidebandError as group:
            for error in group.exceptions:
                note(home, "failures", repr(error))


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
