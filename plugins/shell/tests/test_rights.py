"""The requests that a grant covers, field by field."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.ops import Capability, CapabilityInvalid, EgressRefused, OpDenied
from sideband_shell import ShellRunParams, ShellScope
from sideband_shell._known_programs import runs_code, runs_others

pytestmark = pytest.mark.anyio


def allowed(capability, binary="git", *args, **params):
    """Return whether one capability covers a request."""
    fitted = Capability.parse(capability).fit(ShellScope)
    scopes = ShellRunParams(binary=binary, args=list(args), **params).scopes()
    return all(fitted.allows(scope.fields(), known_later=ShellScope.known_later) for scope in scopes)


ALLOWED = [
    ("shell:runs=any", "git", "log"),
    ("shell:runs=any,binary=git", "git"),
    ("shell:runs=any,binary=git", "git", "log", "--output=x"),
    ("shell:runs=any,binary=git,sub=log", "git", "log", "main"),
    ("shell:runs=any,binary=git,sub=log,options=*", "git", "log", "--oneline"),
    ("shell:runs=any,binary=git,sub=log,options=--oneline", "git", "log", "--oneline"),
    ("shell:runs=any,binary=git,args=log%20--oneline", "git", "log", "--oneline"),
    ("shell:runs=any,binary=git,args=log%20*", "git", "log", "main", "other"),
    ("shell:runs=any,binary=git,args=log%20--oneline%20*", "git", "log", "--oneline", "main"),
    ("shell:runs=any,binary=bash", "bash", "-c", "id"),
    ("shell:runs=any,binary=bash|env", "env"),
    ("shell:runs=any,code=yes", "python3", "-c", "1"),
    ("shell:runs=any", "cat"),
    ("shell:runs=*,code=yes|no", "bash"),
    ("shell:runs=none", "cat"),
    ("shell:binary=cat", "cat"),
    ("shell:runs=any|none", "make"),
]
REFUSED = [
    ("shell", "git", "log"),
    ("shell:binary=git", "git", "-c", "alias.x=!id", "x"),
    ("shell:binary=git", "git", "--exec-path=/srv", "x"),
    ("shell:binary=git,sub=log", "git", "log"),
    ("shell:binary=git,runs=none", "git"),
    ("shell:binary=/usr/bin/git", "/usr/bin/git"),
    ("shell:binary=find", "find", ".", "-exec", "id", ";"),
    ("shell:binary=tar", "tar", "--to-command=id", "-xf", "x"),
    ("shell:binary=ssh", "ssh", "-oProxyCommand=id", "x"),
    ("shell:binary=make", "make"),
    ("shell:binary=env", "env", "id"),
    ("shell:binary=xargs", "xargs", "id"),
    ("shell:binary=bash", "bash", "-c", "id"),
    ("shell:binary=vim.basic", "vim.basic", "-c", ":!id"),
    ("shell:binary=sort", "sort", "--compress-program=id"),
    ("shell:code=yes", "python3", "-c", "1"),
    ("shell:runs=any", "bash", "-c", "id"),
    ("shell:runs=any,binary=b*", "bash"),
    ("shell:runs=any,binary=git", "gitk"),
    ("shell:runs=any,binary=git", "/usr/bin/git"),
    ("shell:runs=any,binary=git,sub=log", "git"),
    ("shell:runs=any,binary=git,sub=log", "git", "push"),
    ("shell:runs=any,binary=git,sub=log", "git", "-c", "core.pager=id", "log"),
    ("shell:runs=any,binary=git,sub=log", "git", "log", "--output=x"),
    ("shell:runs=any,binary=git,sub=log", "git", "log", "--", "-x"),
    ("shell:runs=any,binary=git,sub=log,options=--oneline", "git", "log", "--oneline", "--output=x"),
    ("shell:runs=any,binary=git,args=log", "git", "log", "main"),
    ("shell:runs=any,binary=git,args=log%20*", "git", "log", "--output=x"),
    ("shell:runs=any,binary=git,args=log%20*", "git", "log"),
    ("shell:runs=any,binary=git,args=log%20*", "git", "log main"),
    ("shell:runs=any,binary=git,args=log%20*", "git", "log\nmain"),
    ("shell:runs=any,binary=git,args=log%20main", "git", "log main"),
    ("shell:runs=any,binary=git,args=log%20--oneline%20*", "git", "log", "--oneline", "--output=x"),
    ("shell", "bash", "-c", "id"),
    ("shell:binary=*", "env", "id"),
    ("shell:binary=b*", "bash"),
    ("shell:runs=any,binary=git|b*", "bash"),
    ("shell:runs=any,binary=git", "bash"),
]


@pytest.mark.parametrize(("capability", "request_"), [(case[0], case[1:]) for case in ALLOWED])
async def test_grant_covers_the_request(capability, request_):
    assert allowed(capability, *request_)


@pytest.mark.parametrize(("capability", "request_"), [(case[0], case[1:]) for case in REFUSED])
async def test_grant_does_not_cover_the_request(capability, request_):
    assert not allowed(capability, *request_)


async def test_network_requires_an_explicit_grant():
    assert not allowed("shell:binary=curl", "curl", network=True)
    assert allowed("shell:binary=curl,network=yes", "curl", network=True)
    assert not allowed("shell:binary=curl,network=yes", "curl")
    assert allowed("shell:binary=curl,network=yes|no", "curl")


async def test_variable_requires_an_explicit_grant():
    assert not allowed("shell:runs=any,binary=git", env={"GIT_DIR": "x"})
    assert not allowed("shell:runs=any,binary=git,env=GIT_DIR", env={"GIT_DIR": "x", "GIT_SSH_COMMAND": "id"})
    assert allowed("shell:runs=any,binary=git,env=GIT_DIR", env={"GIT_DIR": "x"})
    assert allowed("shell:runs=any,binary=git,env=GIT_DIR")


async def test_place_requires_an_explicit_grant_and_is_read_only_by_default(place):
    other = place.parent
    assert not allowed("shell:runs=any,binary=git", read=[str(place)])
    assert not allowed("shell:runs=any,binary=git", cwd=str(place))
    assert allowed(f"shell:runs=any,binary=git,place={place}", cwd=str(place))
    assert not allowed(f"shell:runs=any,binary=git,place={place}", write=[str(place)])
    assert allowed(f"shell:runs=any,binary=git,place={place},mode=write", write=[str(place)])
    assert not allowed(f"shell:runs=any,binary=git,place={place}", read=[str(other)])
    assert not allowed(f"shell:runs=any,binary=git,place={place}", read=[str(place)], cwd=str(other))
    assert allowed(f"shell:runs=any,binary=git,place={place}")


async def test_execution_of_files_in_a_writable_place_requires_an_explicit_grant(place):
    assert not allowed(f"shell:runs=any,binary=make,place={place},mode=read|write", "make", execute=[str(place)])
    assert allowed(f"shell:runs=any,binary=make,place={place},mode=execute", "make", execute=[str(place)])
    assert not allowed(f"shell:runs=any,binary=make,place={place},mode=execute", "make", write=[str(place)])
    assert "execute files that they create" in ShellScope.explain({"mode": ("write", "execute")})


async def test_grant_covers_place_and_variable_together(place):
    capability = f"shell:runs=any,binary=git,place={place},env=GIT_DIR"
    assert allowed(capability, cwd=str(place), env={"GIT_DIR": "x"})
    assert not allowed(capability, cwd=str(place), env={"OTHER": "x"})


@pytest.mark.parametrize("name", ["none/", "..", "../x", "a/../b", "a//b", "./a", "", "a\0b"])
async def test_invalid_place_is_rejected(name):
    with pytest.raises(ValueError, match="path"):
        ShellRunParams(binary="git", read=[name])


@pytest.mark.parametrize("name", ["..", "a/b", "-x", "", "a b", "a\nb", "a;b", "$(id)", "a\0b"])
async def test_invalid_program_name_is_rejected(name):
    with pytest.raises(ValueError, match="binary"):
        ShellRunParams(binary=name)


async def test_argument_with_nul_is_rejected():
    with pytest.raises(ValueError, match="NUL"):
        ShellRunParams(binary="git", args=["a\0b"])


@pytest.mark.parametrize("pattern", ["log*", "log%20--out*", "'log%20*"])
async def test_pattern_that_ends_within_an_argument_is_rejected(pattern):
    with pytest.raises(CapabilityInvalid, match="within an argument"):
        Capability.parse(f"shell:runs=any,binary=git,args={pattern}").fit(ShellScope)


@pytest.mark.parametrize(
    "name",
    ["sh", "bash", "zsh", "fish", "dash", "env", "xargs", "busybox", "python", "python3", "python3.11", "perl5.36.0",
     "/usr/bin/bash", "tclsh8.6", "ld-linux-x86-64.so.2", "lua5.4", "sudo", "Rscript", "BASH", "nodejs",
     "perl5.36-x86_64-linux-gnu", "perl5.38-aarch64-linux-gnu", "python3.11d", "python3.13t", "python3.12-intel64",
     "x86_64-linux-gnu-python3.11", "python3-dbg", ".python3.11-wrapped", "pypy3.10-c", "ruby3.1", "node20",
     "node-v20.1", "php-cgi8.2", "luajit-2.1.0-beta3", "guile-3.0", "gawk-5.2.1", "bash-5.2", "zsh5-static",
     "sh.distrib", "java-17", "original-awk", "gdb-multiarch", "R", "R-4.2", "deploy.sh", "busybox.static", "run0",
     "pydoc3", "pydoc3.11", "pdb3", "prove", "phar8.2.phar", "graalpy", "pyston3", "jython", "idle-python3.11", "mono",
     "mono-sgen", "janet", "hy3", "gforth-fast", "csi", "chezscheme9.5", "chez", "gst", "luatex", "texlua", "bpftrace",
     "stap", "gdbserver", "expectk", "oksh", "tcc", "wine64", "uwsgi-core", "gunicorn3", "flask"],
)  # fmt: skip
async def test_program_that_executes_code_is_recognized_by_name(name):
    assert runs_code(name)


@pytest.mark.parametrize("name", ["git", "ls", "cat", "shred", "7z", "gcc-12", "x86_64-linux-gnu-gcc", "envsubst"])
async def test_ordinary_program_is_not_treated_as_executing_code(name):
    assert not runs_code(name)


@pytest.mark.parametrize(
    "name",
    ["git", "git-2.43", "find", "gfind-find", "tar", "ssh", "make", "env", "xargs", "vim.basic", "nvim", "less",
     "gcc-12", "x86_64-linux-gnu-gcc", "rsync", "sqlite3", "m4-1.4", "w3m.real", "c++-12", "docker-compose",
     "systemd-nspawn", "/opt/bin/cargo-clippy", "wget", "g++", "clang++-15", "/usr/lib/git-core/git-shell", "pip3",
     "perlthanks", "perlbug5.36"],
)  # fmt: skip
async def test_program_that_runs_others_is_recognized_by_name(name):
    assert runs_others(name)


@pytest.mark.parametrize(
    "name",
    ["cat", "ls", "grep", "shred", "7z", "envsubst", "sha256sum", "jq", "head", "touch", "seq", "bzip2"],
)
async def test_ordinary_program_is_not_treated_as_running_others(name):
    assert not runs_others(name)


words = st.lists(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8), min_size=1, max_size=5
)


@given(first=words, second=words)
def test_quoted_arguments_are_equal_only_for_equal_arguments(first, second):
    one, other = (next(ShellRunParams(binary="git", args=args).scopes()).args for args in (first, second))
    assert (one == other) == (first == second)


@given(fixed=words, args=words)
def test_pattern_matches_only_whole_arguments_without_options(fixed, args):
    from urllib.parse import quote

    text = quote(shlex.join(fixed), safe="")
    if allowed(f"shell:runs=any,binary=git,args={text}%20*", "git", *args):
        assert args[: len(fixed)] == fixed
        assert len(args) > len(fixed)
        assert not any(word.startswith("-") for word in args[len(fixed) :])


async def test_host_refuses_a_request_without_a_grant(run):
    with pytest.raises(OpDenied):
        await run("bash", "-c", "id", grants=["shell"])
    with pytest.raises(OpDenied):
        await run("git", "status", grants=["shell:binary=ls"])


@pytest.mark.parametrize(
    "params",
    [
        {"args": ["--token=hunter2hunter2"]},
        {"args": ["aHVudGVyMmh1bnRlcjI="]},
        {"args": ["hunter2", "hunter2"]},
        {"env": {"TOKEN": "hunter2hunter2"}},
        {"input": "password: hunter2hunter2"},
        {"input": b"hunter2hunter2"},
    ],
)
async def test_known_secret_in_a_request_is_refused(host, run, params):
    host.redactor.protect("hunter2hunter2", "login")
    with pytest.raises(EgressRefused, match="login"):
        await run("cat", *params.pop("args", ()), **params)
