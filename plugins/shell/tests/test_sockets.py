"""Services that listen at a unix socket in a place, and grants with `sockets=yes`."""

import os
import socket
import sys

import pytest
from sideband.ops import OpDenied

pytestmark = pytest.mark.anyio

PYTHON = os.path.realpath(sys.executable)
CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print('connected')"


@pytest.fixture
def service(place):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place / "docker.sock"))
        listening.listen()
        yield str(place / "docker.sock")


@pytest.fixture
def connect(run_python, service, place, python_places):
    """Return a function that connects to the service with these capabilities, and returns whether it could."""

    async def connect(*capabilities, **params):
        places = "|".join([str(place), *python_places])
        grants = [f"shell:binary={PYTHON},runs=any,{each.format(places=places)}" for each in capabilities]
        request = {"read": [str(place)], **params}
        return (await run_python(CONNECT, service, grants=grants, **request))["stdout"] == "connected\n"

    return connect


async def test_program_connects_to_a_service_in_its_place_only_if_the_grant_names_sockets(connect):
    assert not await connect("place={places}")
    assert not await connect("place={places},sockets=no")
    assert await connect("place={places},sockets=yes")


async def test_sockets_of_another_capability_do_not_apply_to_a_place(connect, python_places, place):
    others = "|".join([*python_places, "/none"])
    assert not await connect(f"place={others},sockets=yes", f"place={place}")
    assert not await connect("place={places}", "sockets=yes")


async def test_grant_of_sockets_does_not_include_writing_or_the_network(connect, place):
    with pytest.raises(OpDenied, match="mode=write"):
        await connect("place={places},sockets=yes", write=[str(place)])
    with pytest.raises(OpDenied, match="network=yes"):
        await connect("place={places},sockets=yes", network=True)


async def test_writable_place_with_sockets_may_be_granted(connect, place):
    capability = "place={places},mode=read|write,sockets=yes"
    assert await connect(capability, read=[], write=[str(place)])
    assert not await connect("place={places},mode=read|write", read=[], write=[str(place)])
