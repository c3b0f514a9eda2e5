"""A host on a machine of its own, which uses keys and sessions that others use too until it is killed.

Usage: storm_host.py HOME PLUGIN TABLE URL SEED [KEY …]. TABLE is that of the store plugin, in JSON. With keys it uses
them once and ends, else it goes on until it is killed. It notes the entries of sessions that were acknowledged, and the
keys that were refused.
"""

import json
import os
import random
import sys
from importlib import import_module
from pathlib import Path

import anyio
import sideband_http.plugin
from sideband import Host, Plugin, SidebandError
from sideband.messages import UserMessage
from sideband_agent.sessions import MessageEntry, SessionLocked, Sessions

KEYS, SESSIONS, ENTRIES = 12, 3, 4
GRANT = "http:host=127.0.0.1"


def open_host(home, plugin, table):
    store = Plugin("store", plugin, import_module(f"sideband_{plugin}.plugin"))
    plugins = (Plugin("op", "http", sideband_http.plugin), store)
    return Host(home=home, settings={"plugins": {plugin: table}}, plugins=plugins, autoload=False)


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


async def main(home, plugin, table, url, seed, *last_keys):
    home, dice = Path(home), random.Random(seed)
    done = 0
    while not (last_keys and done):
        try:
            async with open_host(home, plugin, json.loads(table)) as host:
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
