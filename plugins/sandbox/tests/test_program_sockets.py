"""Unix sockets of programs: services in a place are out of reach, unless the request allows sockets."""

import base64
import os
import socket
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import evolve
from sideband.workers import Place, ProgramRequest
from sideband_sandbox._machine._landlock import CONNECT_UNIX
from sideband_sandbox._programs._filter import program_filter
from sideband_sandbox._programs._launcher import ProgramLauncher
from sideband_sandbox._programs._plan import ProgramVariant, program_plan

pytestmark = pytest.mark.anyio

CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
# Perl needs no place, since it is one of the machine's programs.
PERL = """
use Socket;
my ($kind, $name) = @ARGV;
$name = "\\0$name" if $kind eq "abstract";
socket(my $one, AF_UNIX, SOCK_STREAM, 0) or die "socket: $!";
if ($kind eq "own") {
    bind($one, pack_sockaddr_un("$ENV{TMPDIR}/own")) && listen($one, 1) or die "listen: $!";
    socket(my $other, AF_UNIX, SOCK_STREAM, 0) or die "socket: $!";
    our $listening = $one;
    ($one, $name) = ($other, "$ENV{TMPDIR}/own");
}
connect($one, pack_sockaddr_un($name)) or die "connect: $!";
print "connected";
"""


@contextmanager
def service(address):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        yield listening


@pytest.fixture
def place(area, tmp_path):
    folder = area / tmp_path.name
    folder.mkdir()
    with service(str(folder / "agent.sock")):
        yield folder


@pytest.mark.parametrize("writable", [False, True])
async def test_program_cannot_connect_to_a_service_in_its_place(run_python, place, writable):
    places = (Place(place, writable),)
    code, _, errors = await run_python(CONNECT, str(place / "agent.sock"), places=places)
    assert (code, "Address family not supported" in errors) == (1, True), errors


async def test_program_with_a_single_file_as_its_place_has_no_unix_sockets(run_python, place):
    (place / "file").touch()
    code, _, _ = await run_python("import socket; socket.socket(socket.AF_UNIX)", places=(Place(place / "file"),))
    assert code == 1


async def test_program_may_connect_to_services_in_its_place_only_if_others_are_hidden(run_python, place, tier):
    places = (Place(place),)
    code, _, errors = await run_python(CONNECT, str(place / "agent.sock"), places=places, sockets=True)
    assert code == (0 if tier == "full" else 1), errors


async def test_program_without_a_place_has_unix_sockets_only_in_its_own_file_system(run, tier):
    code, output, errors = await run("/usr/bin/perl", "-e", PERL, "own")
    assert (code == 0, output) == ((True, "connected") if tier == "full" else (False, "")), errors


async def test_program_with_network_has_unix_sockets_only_if_abstract_names_are_hidden(launcher, finish, place):
    platform = launcher._platform
    without_scopes = evolve(platform.machine, landlock=evolve(platform.machine.landlock, scopes=0))
    older = ProgramLauncher(evolve(platform, machine=without_scopes), launcher._isolation)
    older._variant = launcher._variant
    name = f"sideband-{place.name}-{os.getpid()}"
    request = ProgramRequest(("/usr/bin/perl", "-e", PERL, "abstract", name), Path("/tmp"), network=True, sockets=True)
    with service(f"\0{name}"):
        assert (await finish(await older.launch(request)))[1] == ""


def plan_of(machine, landlock, **options):
    request = ProgramRequest(("/bin/true",), Path("/tmp"), **options)
    machine = evolve(machine, landlock=evolve(machine.landlock, **landlock))
    return program_plan(machine, ProgramVariant(), request, uid=0, temporary=Path("/tmp"))


def has_sockets(machine, plan):
    allowed = program_filter(machine.architecture, network=False, own_sockets=True, own_ipc=False)
    return plan["seccomp"]["code"] == base64.b64encode(allowed.code).decode()


async def test_program_has_unix_sockets_if_the_kernel_can_restrict_all_of_them(machine, place):
    both = {"files": machine.landlock.files | CONNECT_UNIX, "scopes": 0b11}
    places = (Place(place),)
    assert has_sockets(machine, plan_of(machine, both, places=places))
    assert not has_sockets(machine, plan_of(machine, {**both, "scopes": 0}, places=places))
    assert not has_sockets(machine, plan_of(machine, {**both, "files": 0xFFFF}, places=places))


async def test_kernel_is_asked_to_allow_sockets_only_in_places_of_a_request_with_sockets(machine, place):
    both = {"files": machine.landlock.files | CONNECT_UNIX, "scopes": 0b11}
    (place / "file").touch()
    places = (Place(place), Place(place / "file"))
    for sockets, expected in ((False, []), (True, [str(place)])):
        plan = plan_of(machine, both, places=places, sockets=sockets)
        assert [path for rights, path in plan["rules"] if rights & CONNECT_UNIX] == expected
    older = plan_of(machine, {"files": 0xFFFF}, places=places, sockets=True)
    assert not any(rights & CONNECT_UNIX for rights, _ in older["rules"])
