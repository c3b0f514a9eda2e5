"""The page about containers: its program creates a filter, and it names the same system calls as the hints."""

import errno
import json
import re
import subprocess
import sys

import pytest
from sideband_sandbox._workers._remedies import NamespaceFacts, namespace_remedy

PAGE = "docs/containers.md"


@pytest.fixture
def converted(page, tmp_path):
    """Return a function that adds the system calls to a filter."""
    (program,) = page(PAGE).examples("python")

    def convert(rules):
        file = tmp_path / "default.json"
        file.write_text(json.dumps({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": rules}))
        done = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    return convert


def test_program_allows_the_system_calls_that_the_hint_names(converted):
    remedy = namespace_remedy(errno.EPERM, NamespaceFacts(filtered=True))
    named = re.search(r"that allows (.+?) \(", remedy)[1].replace(" and ", ", ").split(", ")
    (rule,) = converted([])["syscalls"]
    assert rule["action"] == "SCMP_ACT_ALLOW"
    assert sorted(rule["names"]) == sorted(named)


def test_program_removes_the_system_calls_from_rules_that_refuse_them(converted):
    allowing = {"names": ["read", "mount"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}}
    refusing = {"names": ["bpf", "sethostname"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}
    first, second, _ = converted([allowing, refusing])["syscalls"]
    assert (first, second["names"]) == (allowing, ["bpf"])


def test_page_names_the_flags_of_the_hints(page):
    text = page(PAGE).text
    for facts in (NamespaceFacts(filtered=True, profile="docker-default"), NamespaceFacts(root=True)):
        for flag in re.findall(r"--[a-z-]+(?: [a-z]+(?==)| [A-Z_]+)?", namespace_remedy(errno.EPERM, facts)):
            assert flag in text
