"""Attempts to signal other processes, or to change their limits, priority and scheduling."""

HOSTILE = {
    "to the host": "os.kill(facts.host, 0)",
    "to another process": "import signal; os.kill(facts.victim, signal.SIGCONT)",
    "to the neighbor": "os.kill(facts.neighbor, 0)",
    "to the process that started the neighbor": "os.kill(facts.parent, 0)",
    "to its parent": "os.kill(os.getppid() or facts.parent, 0)",
    "to process 1": "os.kill(facts.parent if os.getpid() == 1 else 1, 0)",
    "to all processes": "os.kill(-1, 0)",
    "to its own group": "os.kill(0, 0)",
    "to the host's group": "os.killpg(facts.host_group, 0)",
    "to another group": "os.kill(-facts.victim, 0)",
    "to any process": """
        for pid in range(1, 400):
            if pid != os.getpid() and libc.kill(pid, 0) == 0:
                return
        raise OSError('no process')
    """,
    "to a thread": "demand(call('tkill', facts.host, 0))",
    "to a thread of the host": "demand(call('tgkill', facts.host, facts.host, 0))",
    "to a thread of the neighbor": "demand(call('tgkill', facts.neighbor, facts.neighbor, 0))",
    "with a value": "reach(call('rt_sigqueueinfo', facts.victim, 0, 0))",
    "with a value, to a thread": "reach(call('rt_tgsigqueueinfo', facts.victim, facts.victim, 0, 0))",
    "with a pidfd": """
        handle = os.pidfd_open(facts.victim)
        demand(call('pidfd_send_signal', handle, 0, 0, 0))
        os.close(handle)
    """,
    "with an invalid pidfd": "reach(call('pidfd_send_signal', -1, 0, 0, 0))",
    "with a socket owned by the host": """
        import fcntl
        left, right = pair()
        fcntl.fcntl(left, fcntl.F_SETOWN, facts.host)
    """,
    "with a socket owned by the host's group": """
        import fcntl, struct
        left, right = pair()
        fcntl.ioctl(left, 0x8901, struct.pack('=i', -facts.host_group))
    """,
    "with a pipe owned by a thread": """
        import fcntl, struct
        reading, writing = os.pipe()
        fcntl.fcntl(reading, 15, struct.pack('=ii', 0, facts.victim))
    """,
    "with another signal than SIGIO": """
        import fcntl
        reading, writing = os.pipe()
        fcntl.fcntl(reading, 10, 12)
    """,
    "with asynchronous input": """
        import fcntl
        left, right = pair()
        fcntl.ioctl(left, 0x5452, (1).to_bytes(4, sys.byteorder))
    """,
    "with an invalid interval timer": "reach(call('setitimer', 99, 0, 0))",
    "with a POSIX timer": "reach(call('timer_create', 99, 0, 0))",
    "with an interval timer": "import signal; signal.setitimer(signal.ITIMER_REAL, 0)",
    "at the exit of its parent": "demand(libc.prctl(1, 0, 0, 0, 0))",
    "as a child subreaper": "demand(libc.prctl(36, 0, 0, 0, 0))",
    "the group of the host": "os.getpgid(facts.host)",
    "the session of the host": "os.getsid(facts.host)",
    "the limits of the host": "import resource; resource.prlimit(facts.host, resource.RLIMIT_NOFILE)",
    "the limits of another process": """
        import resource
        resource.prlimit(facts.victim, resource.RLIMIT_CORE, (0, 0))
    """,
    "the limits of the neighbor": "import resource; resource.prlimit(facts.neighbor, resource.RLIMIT_AS)",
    "its own limits": """
        import resource
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))
        except ValueError as error:
            raise OSError(error)
    """,
    "its own limits, by its process ID": """
        import resource
        resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))
    """,
    "the priority of the host": """
        os.setpriority(os.PRIO_PROCESS, facts.host, os.getpriority(os.PRIO_PROCESS, facts.host))
    """,
    "the priority of another process": "os.setpriority(os.PRIO_PROCESS, facts.victim, 19)",
    "its own priority": "os.nice(0)",
    "its I/O priority": "reach(call('ioprio_set', 9, 0, 0))",
    "the CPU affinity of the host": "os.sched_setaffinity(facts.host, os.sched_getaffinity(0))",
    "the CPU affinity of another process": "os.sched_setaffinity(facts.victim, os.sched_getaffinity(0))",
    "its own CPU affinity": "os.sched_setaffinity(0, os.sched_getaffinity(0))",
    "the scheduling of the host": "os.sched_setscheduler(facts.host, os.SCHED_OTHER, os.sched_param(0))",
    "its own scheduling": "reach(call('sched_setattr', 0, 0, 0))",
    "its controlling terminal": "reach(libc.ioctl(0, ctypes.c_ulong(0x5412), b'x'))",
}
NEEDS_ROOT = {"to process 1", "to any process"}
