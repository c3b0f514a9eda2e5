"""Attempts to change anything that outlives the worker."""

HOSTILE = {
    "a file in its own folder": "write(here + '/written')",
    "its own code": "os.close(os.open(here + '/tools.py', os.O_WRONLY))",
    "its own compiled code": """
        import py_compile
        py_compile.compile(here + '/tools.py', cfile=here + '/compiled.pyc', doraise=True)
    """,
    "the SDK": "write(sys.path[0] + '/written.py')",
    "the runtime": "os.close(os.open(sys.modules['sideband.workers.runtime'].__file__, os.O_WRONLY))",
    "the standard library": "os.close(os.open(os.__file__, os.O_WRONLY))",
    "the folder of the neighbor": "write(facts.neighbor_snapshot + '/written')",
    "the skills of the host": "write(facts.home + '/skills/written')",
    "the grants": "write(facts.home + '/grants.toml', os.O_APPEND)",
    "the ledger": "os.close(os.open(facts.ledger, os.O_WRONLY | os.O_APPEND))",
    "the store": "os.close(os.open(facts.store, os.O_RDWR))",
    "/tmp": "write('/tmp/sideband-written'); os.unlink('/tmp/sideband-written')",
    "/var/tmp": "write('/var/tmp/sideband-written'); os.unlink('/var/tmp/sideband-written')",
    "/dev/shm": "write('/dev/shm/sideband-written'); os.unlink('/dev/shm/sideband-written')",
    "a world-writable folder": "write(facts.open + '/written')",
    "a world-writable folder, after chdir": """
        os.chdir(facts.open)
        try:
            write('within')
        finally:
            os.chdir('/')
    """,
    "a world-writable folder, with its descriptor": """
        folder = os.open(facts.open, os.O_PATH)
        os.close(os.open('described', os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folder))
    """,
    "a world-writable folder, through the root of the host": "write(f'/proc/{facts.host}/root{facts.open}/through')",
    "a new file, with O_EXCL": "write(facts.open + '/exclusive', os.O_EXCL)",
    "an existing file": "os.close(os.open(facts.open + '/known', os.O_WRONLY))",
    "an existing file, with O_RDWR": "os.close(os.open(facts.open + '/known', os.O_RDWR))",
    "an existing file, with O_APPEND": "write(facts.open + '/known', os.O_APPEND)",
    "a file without a name, with O_TMPFILE": "os.close(os.open(facts.open, os.O_TMPFILE | os.O_RDWR, 0o600))",
    "a file, with openat2": """
        import struct
        how = struct.pack('=QQQ', os.O_WRONLY | os.O_CREAT, 0o600, 0)
        os.close(demand(call('openat2', -100, os.fsencode(facts.open + '/raw'), how, 24)))
    """,
    "a file, with the C library": """
        libc.fopen.restype = ctypes.c_void_p
        libc.fclose(ctypes.c_void_p(insist(libc.fopen(os.fsencode(facts.open + '/stream'), b'w'))))
    """,
    "a database": """
        import sqlite3
        try:
            with sqlite3.connect(facts.open + '/data.db') as database:
                database.execute('CREATE TABLE t (a)')
        except sqlite3.OperationalError as error:
            raise OSError(error)
        database.close()
    """,
    "a log": """
        import logging
        logging.FileHandler(facts.open + '/log').close()
    """,
    "a temporary file": "import tempfile; tempfile.TemporaryFile().close()",
    "a temporary file with a name": "import tempfile; tempfile.NamedTemporaryFile(dir=facts.open).close()",
    "a temporary folder": "import tempfile; os.rmdir(tempfile.mkdtemp(dir=facts.open))",
    "a folder": "os.mkdir(facts.open + '/folder')",
    "renaming a file": "os.rename(facts.open + '/moved', facts.open + '/elsewhere')",
    "renaming its own file": """
        os.rename(own_file, here + '/renamed.txt')
        os.rename(here + '/renamed.txt', own_file)
    """,
    "removing a file": "os.unlink(facts.open + '/removed')",
    "removing its own file": "os.unlink(here + '/spare.txt')",
    "a symbolic link": "os.symlink('/etc', facts.open + '/symbolic')",
    "a hard link to its own file": "os.link(own_file, facts.open + '/own')",
    "the length of a file": "os.truncate(facts.open + '/shortened', 1)",
    "the length of a file, with its descriptor": """
        with open(facts.open + '/shortened', 'r+b') as stream:
            stream.truncate(0)
    """,
    "the length of a file, with O_RDONLY and O_TRUNC": """
        os.close(os.open(facts.open + '/shortened', os.O_RDONLY | os.O_TRUNC))
    """,
    "the length of its own file": "os.truncate(here + '/short.txt', 0)",
    "the allocation of a file": """
        with open(facts.open + '/known', 'r+b') as stream:
            os.posix_fallocate(stream.fileno(), 0, 4096)
    """,
    "the mode of a file": "os.chmod(facts.open + '/known', 0o666)",
    "the mode of its own file": "os.chmod(own_file, 0o644)",
    "the mode of its own file, with its descriptor": "os.fchmod(os.open(own_file, os.O_RDONLY), 0o644)",
    "the mode of a file, with fchmodat2": "reach(call('fchmodat2', -100, b'/none', 0o644, 0x1000))",
    "the owner of a file": "os.chown(facts.open + '/known', os.getuid(), os.getgid())",
    "the owner of its own file, with its descriptor": """
        os.fchown(os.open(own_file, os.O_RDONLY), os.getuid(), os.getgid())
    """,
    "the owner of a link": "os.lchown(own_file, os.getuid(), os.getgid())",
    "the times of a file": "os.utime(facts.open + '/known')",
    "the times of its own file, with its descriptor": "os.utime(os.open(own_file, os.O_RDONLY))",
    "an attribute of a file": "demand(libc.setxattr(os.fsencode(facts.open + '/known'), b'user.note', b'x', 1, 0))",
    "an attribute of its own file": "os.setxattr(os.open(own_file, os.O_RDONLY), 'user.note', b'x')",
    "the flags of its own file": """
        reach(libc.ioctl(os.open(own_file, os.O_RDONLY), ctypes.c_ulong(0x80086601), bytes(8)))
    """,
    "a lock on its own file": "import fcntl; fcntl.flock(os.open(own_file, os.O_RDONLY), fcntl.LOCK_SH)",
    "a lock on a part of its own file": "import fcntl; fcntl.lockf(os.open(own_file, os.O_RDONLY), fcntl.LOCK_SH)",
    "a lease on its own file": "import fcntl; fcntl.fcntl(os.open(own_file, os.O_RDONLY), 1024, fcntl.F_RDLCK)",
    "notifications for its own folder": "import fcntl; fcntl.fcntl(os.open(here, os.O_RDONLY), fcntl.F_NOTIFY, 1)",
    "a named pipe": "os.mkfifo(facts.open + '/pipe')",
    "a device": "os.mknod(facts.open + '/null', 0o20666, os.makedev(1, 3))",
    "a file, with mknod": "os.mknod(facts.open + '/node')",
    "copy_file_range": "reach(call('copy_file_range', -1, 0, -1, 0, 1, 0))",
    "sendfile": """
        left, right = pair()
        os.sendfile(left.fileno(), os.open(own_file, os.O_RDONLY), 0, 1)
    """,
    "splice": """
        reading, writing = os.pipe()
        os.splice(os.open(own_file, os.O_RDONLY), writing, 1)
    """,
    "a mount": "reach(call('mount', b'none', b'/none', b'tmpfs', 0, 0))",
    "unmounting": "reach(call('umount2', b'/none', 0))",
    "the attributes of a mount": "reach(call('mount_setattr', -100, b'/none', 0, bytes(32), 32))",
    "its root, with chroot": "os.chroot('/')",
    "its root, with pivot_root": "reach(call('pivot_root', b'/none', b'/none'))",
    "disk quotas": "reach(call('quotactl', -1, b'/none', 0, 0))",
    "swap space": "reach(call('swapon', b'/none', 0))",
    "process accounting": "reach(call('acct', b'/none'))",
    "a file, with a memory map": """
        descriptor = os.open(facts.open + '/known', os.O_RDWR)
        mmap.mmap(descriptor, 4)[:1] = b'c'
        os.close(descriptor)
    """,
    "the settings of a process": "os.close(os.open('/proc/self/oom_score_adj', os.O_WRONLY))",
    "the settings of the kernel": "os.close(os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY))",
    "the null device": "write('/dev/null')",
}

NEEDS_ROOT = {
    "its own code", "the runtime", "the standard library", "the length of its own file", "a device",
    "the attributes of a mount", "its root, with chroot", "its root, with pivot_root", "swap space",
    "process accounting", "the settings of the kernel",
}  # fmt: skip
