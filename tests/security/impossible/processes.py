"""Attempts to start processes and programs, with every interface of Python, C and the kernel."""

import platform

# The child exits at once, so it needs no memory of the parent.
NATIVE = {
    # mov eax, NUMBER; syscall; test rax, rax; jnz behind; mov eax, 60; xor edi, edi; syscall; behind: ret
    "x86_64": {
        "fork": "b8390000000f054885c07509b83c00000031ff0f05c3",
        "vfork": "b83a0000000f054885c07509b83c00000031ff0f05c3",
    },
    # mov x8, 220; mov x0, FLAGS; mov x1-x4, 0; svc; cbnz x0, behind; mov x8, 93; svc; behind: ret
    "aarch64": {
        "fork": "881b80d2200280d2010080d2020080d2030080d2040080d2010000d4600000b5a80b80d2010000d4c0035fd6",
        "vfork": "881b80d2202288d2010080d2020080d2030080d2040080d2010000d4600000b5a80b80d2010000d4c0035fd6",
    },
}[platform.machine()]


def machine_code(name):
    return f"""
        pid = run_machine_code(bytes.fromhex('{NATIVE[name]}'))
        if pid < 0:
            raise OSError(-pid, 'machine code')
        os.waitpid(pid, 0)
    """


HOSTILE = {
    "fork": "reap(os.fork())",
    "fork with the C library": "reap(demand(libc.fork()))",
    "fork with a system call": "reap(demand(call('clone', 17, 0, 0, 0, 0)))",
    "fork with machine code": machine_code("fork"),
    "vfork with machine code": machine_code("vfork"),
    "fork in a thread": "await asyncio.to_thread(lambda: reap(os.fork()))",
    "fork in a finalizer": """
        pids = []
        class Last:
            def __del__(self):
                pids.append(os.fork())
                if pids[0] == 0:
                    os._exit(0)
        sys.unraisablehook = lambda _: None
        Last()
        os.waitpid(insist(pids)[0], 0)
    """,
    "fork in a signal handler": """
        import signal
        pids = []
        def handler(*_):
            pids.append(os.fork())
            if pids[0] == 0:
                os._exit(0)
        signal.signal(signal.SIGUSR1, handler)
        signal.raise_signal(signal.SIGUSR1)
        os.waitpid(pids[0], 0)
    """,
    "fork and leave the session": """
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os._exit(0)
        insist(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0)
    """,
    "a process that shares memory": "reach(call('clone', 0x100 | 0x200 | 0x10000000, 0, 0, 0, 0))",
    "a thread with its own signal handlers": "reach(call('clone', 0x100 | 0x10000, 0, 0, 0, 0))",
    "clone3": "reach(call('clone3', bytes(88), 0))",
    "a child with a pseudo-terminal": """
        import pty
        pid, descriptor = pty.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        os.close(descriptor)
    """,
    "posix_spawn": "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)",
    "spawnv": "insist(os.spawnv(os.P_WAIT, '/bin/true', ['true']) == 0)",
    "subprocess": "import subprocess; subprocess.run(['/bin/true'], check=True)",
    "subprocess with a shell": "import subprocess; subprocess.check_output('echo out', shell=True)",
    "posix_spawn with the C library": """
        pid = ctypes.c_int()
        words = (ctypes.c_char_p * 2)(b'true', None)
        ctypes.set_errno(libc.posix_spawn(ctypes.byref(pid), b'/bin/true', None, None, words, None))
        demand(-1 if ctypes.get_errno() else 0)
        os.waitpid(pid.value, 0)
    """,
    "asyncio's subprocess": """
        process = await asyncio.create_subprocess_exec('/bin/true')
        await process.wait()
    """,
    "os.system": "insist(os.system('true') == 0)",
    "system with the C library": "insist(libc.system(b'true') == 0)",
    "popen": "insist(os.popen('echo out').read())",
    "popen with the C library": """
        libc.popen.restype = ctypes.c_void_p
        stream = insist(libc.popen(b'true', b'r'))
        libc.pclose(ctypes.c_void_p(stream))
    """,
    "multiprocessing, forked": """
        import multiprocessing
        process = multiprocessing.get_context('fork').Process(target=os._exit, args=(0,))
        process.start()
        process.join()
        insist(process.exitcode == 0)
    """,
    "multiprocessing, spawned": """
        import multiprocessing
        process = multiprocessing.get_context('spawn').Process(target=os.getpid)
        process.start()
        process.kill()
        process.join()
    """,
    "a pool of processes": """
        import multiprocessing
        with multiprocessing.get_context('fork').Pool(1) as pool:
            pool.apply(os.getpid)
    """,
    "a program that replaces the worker": """
        try:
            os.execv('/sideband-no-such-program', ['none'])
        except FileNotFoundError:
            pass
    """,
    "a descriptor as the program": "reach(call('execveat', os.open(own_file, os.O_RDONLY), b'', 0, 0, 0x1000))",
    "a file in memory as the program": """
        descriptor = demand(call('memfd_create', b'program', 0))
        os.write(descriptor, b'invalid')
        reach(call('execveat', descriptor, b'', 0, 0, 0x1000))
        os.close(descriptor)
    """,
    "a pickle that runs a program": """
        import pickle
        insist(pickle.loads(b"cposix\\nsystem\\n(S'true'\\ntR.") == 0)
    """,
    "a pickle that forks": """
        import pickle
        reap(pickle.loads(b"cposix\\nfork\\n(tR."))
    """,
    "a module found through all classes": """
        for kind in object.__subclasses__():
            if kind.__name__ == '_wrap_close':
                insist(kind.__init__.__globals__['system']('true') == 0)
                break
        else:
            raise OSError('not found')
    """,
    "a second copy of a built-in module": """
        from importlib.machinery import BuiltinImporter, ModuleSpec
        posix = BuiltinImporter.create_module(ModuleSpec('posix', BuiltinImporter, origin='built-in'))
        BuiltinImporter.exec_module(posix)
        reap(posix.fork())
    """,
    "a module from sys.modules": "reap(sys.modules['posix'].fork())",
    "a module reloaded from its source": """
        import importlib
        reap(importlib.reload(os).fork())
    """,
    "a function with the code of another one": """
        import types
        reap(types.FunctionType((lambda: fork()).__code__, {'fork': os.fork})())
    """,
    "a mount namespace": "reach(call('unshare', 0x20000))",
    "a user namespace": "reach(call('unshare', 0x10000000))",
    "a process in a user namespace": "reap(demand(call('clone', 0x10000000 | 17, 0, 0, 0, 0)))",
    "entering a namespace": "reach(call('setns', 0, 0))",
}

# These kill the worker, so each has a skill of its own.
DEADLY = {
    "a system call through i386": """
        # mov eax, 20 (getpid); int 0x80; ret
        insist(run_machine_code(bytes.fromhex('b814000000cd80c3')))
    """,
    "a fork through i386": """
        # push rbx; mov eax, 2; int 0x80; test eax, eax; jnz; mov eax, 1; xor ebx, ebx; int 0x80; pop rbx; ret
        pid = run_machine_code(bytes.fromhex('53b802000000cd8085c07509b80100000031dbcd805bc3'))
        os.waitpid(pid & 0xFFFFFFFF, 0)
    """,
    "a socket through i386": """
        # socket(AF_INET, SOCK_STREAM, 0): push rbx; mov eax, 359; mov ebx, 2; mov ecx, 1; xor edx, edx; int 0x80
        insist(run_machine_code(bytes.fromhex('53b867010000bb02000000b90100000031d2cd805bc3')) & 0x80000000 == 0)
    """,
    "a system call through x32": "libc.syscall(ctypes.c_long(0x40000000 + 39))",
    "opening a file through x32": "libc.syscall(ctypes.c_long(0x40000000 + 2), b'/etc/passwd', 0)",
}
if platform.machine() == "x86_64":
    HOSTILE |= DEADLY
else:
    DEADLY = {}

NEEDS_ROOT = {"a mount namespace"}
