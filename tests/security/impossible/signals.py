"""Signals to others, and what else one process may do to another without touching its memory."""

HOSTILE = {
    "to the host": "os.kill(facts.host, 0)",
    "to a stranger": "import signal; os.kill(facts.victim, signal.SIGCONT)",
    "to the neighbour": "os.kill(facts.neighbour, 0)",
    "to the process that started the neighbour": "os.kill(facts.parent, 0)",
    "to its parent": "os.kill(os.getppid() or facts.parent, 0)",
    "to the first process": "os.kill(facts.parent if os.getpid() == 1 else 1, 0)",
    "to everybody": "os.kill(-1, 0)",
    "to its own group": "os.kill(0, 0)",
    "to the host's group": "os.killpg(facts.host_group, 0)",
    "to a stranger's group": "os.kill(-facts.victim, 0)",
    "to whoever there is": """
        for pid in range(1, 400):
            if pid != os.getpid() and libc.kill(pid, 0) == 0:
                return
        raise OSError('nobody')
    """,
    "to a thread": "demand(call('tkill', facts.host, 0))",
    "to a thread of the host": "demand(call('tgkill', facts.host, facts.host, 0))",
    "to a thread of the neighbour": "demand(call('tgkill', facts.neighbour, facts.neighbour, 0))",
    "with a value": "reach(call('rt_sigqueueinfo', facts.victim, 0, 0))",
    "with a value, to a thread": "reach(call('rt_tgsigqueueinfo', facts.victim, facts.victim, 0, 0))",
    "by a descriptor": """
        handle = os.pidfd_open(facts.victim)
        demand(call('pidfd_send_signal', handle, 0, 0, 0))
        os.close(handle)
    """,
    "by a descriptor that it made up": "reach(call('pidfd_send_signal', -1, 0, 0, 0))",
    "by a socket that belongs to the host": """
        import fcntl
        left, right = pair()
        fcntl.fcntl(left, fcntl.F_SETOWN, facts.host)
    """,
    "by a socket that belongs to the host's group": """
        import fcntl, struct
        left, right = pair()
        fcntl.ioctl(left, 0x8901, struct.pack('=i', -facts.host_group))
    """,
    "by a pipe that belongs to a thread": """
        import fcntl, struct
        reading, writing = os.pipe()
        fcntl.fcntl(reading, 15, struct.pack('=ii', 0, facts.victim))
    """,
    "another one than is usual": """
        import fcntl
        reading, writing = os.pipe()
        fcntl.fcntl(reading, 10, 12)
    """,
    "by asynchronous input": """
        import fcntl
        left, right = pair()
        fcntl.ioctl(left, 0x5452, (1).to_bytes(4, sys.byteorder))
    """,
    "by a timer": "reach(call('setitimer', 99, 0, 0))",
    "by a timer of its own making": "reach(call('timer_create', 99, 0, 0))",
    "by an alarm": "import signal; signal.setitimer(signal.ITIMER_REAL, 0)",
    "at its parent's end": "demand(libc.prctl(1, 0, 0, 0, 0))",
    "as the heir of processes": "demand(libc.prctl(36, 0, 0, 0, 0))",
    "the group of another": "os.getpgid(facts.host)",
    "the session of another": "os.getsid(facts.host)",
    "limits of the host": "import resource; resource.prlimit(facts.host, resource.RLIMIT_NOFILE)",
    "lower limits for a stranger": """
        import resource
        resource.prlimit(facts.victim, resource.RLIMIT_CORE, (0, 0))
    """,
    "limits of the neighbour": "import resource; resource.prlimit(facts.neighbour, resource.RLIMIT_AS)",
    "its own limits, to raise": """
        import resource
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))
        except ValueError as error:
            raise OSError(error)
    """,
    "its own limits by its own number": """
        import resource
        resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))
    """,
    "the priority of the host": """
        os.setpriority(os.PRIO_PROCESS, facts.host, os.getpriority(os.PRIO_PROCESS, facts.host))
    """,
    "the priority of a stranger": "os.setpriority(os.PRIO_PROCESS, facts.victim, 19)",
    "its own priority": "os.nice(0)",
    "the priority of input and output": "reach(call('ioprio_set', 9, 0, 0))",
    "the processors of the host": "os.sched_setaffinity(facts.host, os.sched_getaffinity(0))",
    "the processors of a stranger": "os.sched_setaffinity(facts.victim, os.sched_getaffinity(0))",
    "its own processors": "os.sched_setaffinity(0, os.sched_getaffinity(0))",
    "the scheduling of the host": "os.sched_setscheduler(facts.host, os.SCHED_OTHER, os.sched_param(0))",
    "its own scheduling": "reach(call('sched_setattr', 0, 0, 0))",
    "its controlling terminal": "reach(libc.ioctl(0, ctypes.c_ulong(0x5412), b'x'))",
}
NEEDS_ROOT = {"to the first process", "to whoever there is"}
