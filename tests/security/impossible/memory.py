"""Attempts to access the memory, descriptors and identity of other processes, and related kernel interfaces."""

HOSTILE = {
    "the host's memory": "steal(facts.host, facts.address)",
    "the host's memory, to write": "forge(facts.host, facts.address)",
    "the host's memory as a file": """
        with open(f'/proc/{facts.host}/mem', 'rb') as stream:
            insist(os.pread(stream.fileno(), 6, facts.address) == b'canary')
    """,
    "the neighbor's memory": "steal(facts.neighbor, facts.neighbor_address)",
    "the neighbor's memory, to write": "forge(facts.neighbor, facts.neighbor_address)",
    "the neighbor's memory as a file": """
        with open(f'/proc/{facts.neighbor}/mem', 'r+b', buffering=0) as stream:
            os.pwrite(stream.fileno(), b'canary', facts.neighbor_address)
    """,
    "its parent's memory": "os.close(os.open(f'/proc/{facts.parent}/mem', os.O_RDWR))",
    "the memory of any process": """
        for pid in (*range(1, 400), facts.host, facts.victim, facts.neighbor, facts.parent):
            if pid != os.getpid():
                copy('process_vm_readv', pid, 0, ctypes.c_byte())
                if ctypes.get_errno() == errno.EFAULT:
                    return
        raise OSError('no process')
    """,
    "its own memory as a file": "os.close(os.open('/proc/self/mem', os.O_RDWR))",
    "the pages of another process": "reach(call('move_pages', facts.victim, 0, 0, 0, 0, 0))",
    "migrating the pages of another process": "reach(call('migrate_pages', facts.victim, 0, 0, 0))",
    "advice on the memory of another process": "reach(call('process_madvise', -1, 0, 0, 0, 0))",
    "the futex list of another process": "demand(call('get_robust_list', facts.victim, bytes(8), bytes(8)))",
    "comparing kernel objects with the host": "demand(call('kcmp', os.getpid(), facts.host, 1, 0, 0))",
    "a pidfd of the host": "os.close(os.pidfd_open(facts.host))",
    "a pidfd of the peer of its channel": """
        left = socket.socket(fileno=os.dup(3))
        handle = int.from_bytes(left.getsockopt(socket.SOL_SOCKET, 77, 4), sys.byteorder)
        os.close(handle)
    """,
    "a descriptor of the host": """
        host = os.pidfd_open(facts.host)
        stolen = demand(call('pidfd_getfd', host, facts.descriptor, 0))
        insist(os.pread(stolen, 6, 0) == b'canary')
        os.close(stolen)
        os.close(host)
    """,
    "tracing the neighbor": "demand(call('ptrace', 0x4206, facts.neighbor, 0, 0))",
    "tracing another process": "demand(call('ptrace', 0x4206, facts.victim, 0, 0))",
    "shared memory": "reach(call('shmget', 0, 4096, 0o1600))",
    "shared memory with a name": """
        import _posixshmem
        os.close(_posixshmem.shm_open('/sideband-hostile', os.O_CREAT | os.O_RDWR, mode=0o600))
        _posixshmem.shm_unlink('/sideband-hostile')
    """,
    "shared memory without a name": "os.close(os.memfd_create('shared'))",
    "semaphores": "reach(call('semget', 1, 1, 0))",
    "a semaphore with a name": """
        import _multiprocessing
        _multiprocessing.SemLock(1, 1, 1, '/sideband-hostile', True)
    """,
    "a message queue": "reach(call('msgget', 1, 0))",
    "a message queue with a name": "reach(call('mq_open', b'sideband-none', 0, 0, 0))",
    "the keyring": "reach(call('keyctl', 0, -3, 0))",
    "adding a key": "reach(call('add_key', b'none', b'x', b'y', 1, -3))",
    "requesting a key": "reach(call('request_key', b'none', b'x', 0, 0))",
    "io_uring": "reach(call('io_uring_setup', 1, 0))",
    "asynchronous I/O": "reach(call('io_setup', 0, 0))",
    "bpf": "reach(call('bpf', 9_999, 0, 0))",
    "performance counters": "reach(call('perf_event_open', 0, 0, -1, -1, 0))",
    "userfaultfd": "reach(call('userfaultfd', 1))",
    "becoming dumpable": "demand(libc.prctl(4, 1, 0, 0, 0))",
    "permitting any tracer": "reach(libc.prctl(0x59616D61, ctypes.c_ulong(-1 & (1 << 64) - 1), 0, 0, 0))",
    "capabilities": """
        header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        libc.capget(header, sets)
        demand(libc.capset(header, sets))
    """,
    "the bounding set": "reach(libc.prctl(24, 9_999, 0, 0, 0))",
    "another user": "os.setresuid(os.getuid(), os.geteuid(), os.getuid())",
    "root": "os.setuid(0)",
    "another group": "os.setgid(os.getgid())",
    "more groups": "os.setgroups(os.getgroups())",
    "another personality": "demand(call('personality', 0xFFFFFFFF))",
    "its own seccomp filter": "reach(call('seccomp', 99, 0, 0))",
    "its own seccomp filter, with prctl": "reach(libc.prctl(22, 99, 0, 0, 0))",
    "its own Landlock ruleset": """
        reach(libc.syscall(ctypes.c_long(444), None, ctypes.c_long(0), ctypes.c_long(1)))
    """,
    "the host name": "reach(libc.sethostname(b'x', ctypes.c_long(-1)))",
    "the time of day": "reach(call('settimeofday', 1, 0))",
    "another clock": "reach(call('clock_settime', 99, 0))",
    "the frequency of the clock": "reach(call('adjtimex', 0))",
    "a reboot": "reach(call('reboot', 0, 0, 0, 0))",
}
NEEDS_ROOT = {
    "root",
    "more groups",
    "a reboot",
    "the host name",
    "the bounding set",
}
