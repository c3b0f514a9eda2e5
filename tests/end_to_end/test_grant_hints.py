"""The options in the hint of a refusal: pasted into a shell, they allow the refused request and nothing else."""

import re
import shlex
from functools import partial
from types import SimpleNamespace

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from sideband import Host, Plugin, hookimpl
from sideband.hooks import Deny
from sideband.ops import CapabilityInvalid, OpDenied, OpError

WORDS = ["", "a", "a b", "it's", "*", "log*", "100%", "ü", "x|y", "x,y=z", "--oneline", "-n", "\n", "$HOME", "`id`"]
NAMES = ["a", "a b", "it's", "x*", "100%41", "ü", "x|y,z=1", ".hidden"]


def requests_of(**params):
    fixed = {name: value if isinstance(value, st.SearchStrategy) else st.just(value) for name, value in params.items()}
    return st.fixed_dictionaries(fixed)


def op(name, /, **params):
    return st.tuples(st.just(name), requests_of(**params))


places = st.lists(st.sampled_from(["/srv/a", "/srv/it's here", "notes/ü*"]), max_size=2, unique=True)
urls = st.builds(
    "{}://{}/{}".format,
    st.sampled_from(["http", "https"]),
    st.sampled_from(["a.test", "b.test:81", "127.0.0.1", "[::1]"]),
    st.sampled_from(["", "a%20b", "it's", "*", "x,y=z|w", "100%25", "%C3%BC?q=1"]),
)
names = st.sampled_from(NAMES)
databases = st.sampled_from(["notes.db", "a.db", "/srv/it's.db", "/srv/a b*.db", "/srv/x|y,z=1.db"])
FAMILIES = {
    "blobs": st.one_of(op("blobs.put", content=b"x"), op("blobs.list"), op("blobs.get", sha256="0" * 64)),
    "crypto": st.one_of(
        op("crypto.hash", data="x"),
        op("crypto.random", length=2),
        op("crypto.sign", data="x", algorithm="ed25519", handle=st.sampled_from(["release", "other"])),
    ),
    "files": st.one_of(
        op("files.read", path=names),
        op("files.write", path=names, content="x"),
        op("files.list", path=names),
        op("files.move", path=names, target=names),
        op("files.read", path=names.map("/srv/{}".format)),
    ),
    "http": st.one_of(
        op("http.get", url=urls),
        op("http.request", url=urls, method=st.sampled_from(["GET", "PUT", "PURGE"])),
        op("http.download", url=urls, path=names),
    ),
    "llm": op("llm.generate", model=names.map("test:{}".format), messages=[{"role": "user", "content": "hi"}]),
    "secrets": st.one_of(
        op("secrets.read", name=st.sampled_from(["a", "b"])),
        op("secrets.delete", name=st.sampled_from(["a", "b"])),
        op("secrets.list"),
    ),
    "shell": op(
        "shell.run",
        binary=st.sampled_from(["git", "ls", "bash", "/bin/it's"]),
        args=st.lists(st.sampled_from(WORDS), max_size=3),
        read=places,
        write=places,
        env=st.sampled_from([{}, {"A": "1"}, {"A": "1", "B": "2"}]),
        network=st.booleans(),
    ),
    "sql": st.one_of(
        op("sql.query", sql="SELECT 1", db=databases),
        op("sql.execute", sql="CREATE TABLE t (a)", db=databases),
    ),
}


class Stop:
    """A guard that denies each effect that the grant allows, so that nothing happens."""

    @hookimpl
    def op_call(self, event):
        return Deny("stop")


def granted_by(hint):
    """Return the capabilities that a shell passes to the command if the options in a hint are pasted."""
    words = shlex.split(" ".join(re.findall(r"--grant '(?:[^']|'\"'\"')*'", hint)))
    return [word for word in words if word != "--grant"]


@pytest.fixture(scope="module")
def request_op(tmp_path_factory):
    """Return a function that requests an op."""
    stop = Plugin("guard", "stop", SimpleNamespace(sideband_guards=lambda: [Stop]))
    host = Host(home=tmp_path_factory.mktemp("home"), plugins=[stop])
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(host):
        yield lambda name, params, grants: portal.call(partial(host.op, name, params, grants=grants))


@pytest.fixture(scope="module")
def refusal(request_op):
    """Return a function that requests an op and returns its refusal."""

    def request(name, params, grants):
        with pytest.raises(OpError) as caught:
            request_op(name, params, grants)
        if not isinstance(caught.value, OpDenied):
            reject()  # the parameters are invalid
        return caught.value

    return request


@pytest.mark.parametrize("family", FAMILIES)
def test_pasted_hint_allows_exactly_the_refused_request(refusal, family):
    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(FAMILIES[family], FAMILIES[family])
    def check(request, other):
        refused = refusal(*request, [])
        options = granted_by(refused.hint)
        assert options, refused.hint
        assert refusal(*request, options).plugin == "stop"
        if refusal(*other, options).plugin == "stop":
            # Each field of the other request has a value that the refused request has too.
            mine = [set(re.split("[:,]", option)) for option in options]
            for option in granted_by(refusal(*other, []).hint):
                assert any(set(re.split("[:,]", option)) <= one for one in mine), (request, other)

    check()


def test_hint_that_would_be_cut_offers_no_option(refusal):
    params = {"binary": "ls", "args": ["x" * 1_500]}
    refused = refusal("shell.run", params, [])
    assert "--grant" not in refused.hint
    assert "request less at once" in refused.hint


@pytest.mark.parametrize(
    "capability",
    [
        *("blobs:mode=foo", "crypto:op=sgin", "files:mode=foo", "files:place=foo", "files:hidden=maybe"),
        *("http:network=foo", "http:scheme=ftp", "secrets:mode=foo", "sql:mode=foo", "sql:mode=read|foo"),
        *("shell:code=foo", "shell:runs=foo", "shell:network=foo", "shell:sockets=foo", "shell:mode=foo"),
    ],
)
def test_value_that_no_request_has_is_invalid(request_op, capability):
    with pytest.raises(CapabilityInvalid, match="valid values: "):
        request_op("sql.query", {"sql": "SELECT 1", "db": "a.db"}, [capability])
