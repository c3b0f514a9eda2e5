"""Attempts to read and list files outside of the skill's own folders."""

HOSTILE = {
    "/etc/passwd": "read('/etc/passwd')",
    "with os.open": "os.read(os.open('/etc/passwd', os.O_RDONLY), 1)",
    "with the C library": "os.close(demand(libc.open(b'/etc/passwd', 0)))",
    "with openat2": "os.close(demand(call('openat2', -100, b'/etc/passwd', bytes(24), 24)))",
    "with access mode 3": "os.close(os.open(facts.open + '/known', 3))",
    "as code": """
        import io
        insist(io.open_code('/etc/passwd').read())
    """,
    "as a module": """
        from importlib.machinery import SourceFileLoader
        insist(SourceFileLoader('stolen', '/etc/passwd').get_data('/etc/passwd'))
    """,
    "as lines of a traceback": "import linecache; insist(linecache.getlines('/etc/passwd'))",
    "as a memory map": """
        with open(facts.area + '/secret.txt', 'rb') as stream:
            insist(mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)[:4])
    """,
    "as an archive": """
        import tarfile
        try:
            tarfile.open('/etc/passwd')
        except tarfile.ReadError:
            pass
    """,
    "as a database": """
        import sqlite3
        try:
            sqlite3.connect('file:/etc/passwd?mode=ro', uri=True).execute('SELECT * FROM sqlite_master')
        except sqlite3.OperationalError as error:
            raise OSError(error)
        except sqlite3.DatabaseError:
            pass
    """,
    "as a shared library": """
        try:
            ctypes.CDLL('/etc/passwd')
        except OSError as error:
            if 'header' not in str(error) and 'short' not in str(error):
                raise
    """,
    "another user's file": "read(facts.area + '/secret.txt')",
    "with .. from its own folder": "read(here + '/../' + os.path.relpath('/etc/passwd', here + '/..'))",
    "after chdir": """
        os.chdir('/etc')
        try:
            read('passwd')
        finally:
            os.chdir('/')
    """,
    "relative to the descriptor of a folder": """
        folder = os.open('/etc', os.O_PATH)
        os.close(os.open('passwd', os.O_RDONLY, dir_fd=folder))
    """,
    "with .. from the descriptor of its own folder": """
        folder = os.open(here, os.O_RDONLY)
        os.close(os.open('../' * 20 + 'etc/passwd', os.O_RDONLY, dir_fd=folder))
    """,
    "by reopening an O_PATH descriptor": """
        handle = os.open('/etc/passwd', os.O_PATH)
        read(f'/proc/self/fd/{handle}')
    """,
    "through /proc/self/root": "read('/proc/self/root/etc/passwd')",
    "through /proc/self/cwd": "os.chdir('/'); read('/proc/self/cwd/etc/passwd')",
    "through /proc/self/task": """
        import threading
        read(f'/proc/self/task/{threading.get_native_id()}/root/etc/passwd')
    """,
    "through the root of the host": "read(f'/proc/{facts.host}/root/etc/passwd')",
    "through the working directory of the host": "os.listdir(f'/proc/{facts.host}/cwd/')",
    "through a descriptor of the host": "read(f'/proc/{facts.host}/fd/{facts.descriptor}')",
    "through process 1": "read('/proc/1/status')",
    "through a symbolic link that it creates": """
        os.symlink('/etc/passwd', facts.open + '/way')
        read(facts.open + '/way')
    """,
    "through a hard link that it creates": """
        os.link(facts.open + '/linked', facts.open + '/hard')
        read(facts.open + '/hard')
    """,
    "with name_to_handle_at": "reach(call('name_to_handle_at', -100, b'/etc/passwd', bytes(8), bytes(8), 0))",
    "with a forged file handle": "reach(call('open_by_handle_at', -100, bytes(64), 0))",
    "with open_tree": "reach(call('open_tree', -100, b'/none', 0))",
    "with fsopen": "reach(call('fsopen', b'none', 0))",
    "the kernel's log": "reach(call('syslog', 99, 0, 0))",
    "a device": "read('/dev/zero')",
    "the kernel's random device": "read('/dev/urandom')",
    "a terminal": "import pty; [os.close(each) for each in pty.openpty()]",
    "the list of processes": "insist([name for name in os.listdir('/proc') if name.isdigit()])",
    "the host's environment": "read(f'/proc/{facts.host}/environ')",
    "the host's memory map": "read(f'/proc/{facts.host}/maps')",
    "the host's command line": "read(f'/proc/{facts.host}/cmdline')",
    "the host's descriptors": "os.listdir(f'/proc/{facts.host}/fd')",
    "the executable of the host": "os.readlink(f'/proc/{facts.host}/exe')",
    "the neighbor's environment": "os.close(os.open(f'/proc/{facts.neighbor}/environ', os.O_RDONLY))",
    "the neighbor's memory map": "read(f'/proc/{facts.neighbor}/maps')",
    "its own memory map": "read('/proc/self/maps')",
    "the machine's mounts": "read('/proc/self/mountinfo')",
    "the machine's connections": "read('/proc/self/net/tcp')",
    "the machine's control groups": "read('/proc/self/cgroup')",
    "the kernel's settings": "read('/proc/sys/kernel/osrelease')",
    "the machine's devices": "os.listdir('/sys/class')",
    "the root folder": "os.listdir('/')",
    "the root folder, with scandir": "insist(next(os.scandir('/'), None))",
    "the root folder, with a descriptor": "os.listdir(os.open('/', os.O_RDONLY | os.O_DIRECTORY))",
    "a folder, with glob": "import glob; insist(glob.glob('/etc/*'))",
    "a folder, with walk": "insist([files for _, _, files in os.walk('/etc') if files])",
    "a folder, with fwalk": """
        def stop(error):
            raise error
        next(os.fwalk('/etc', onerror=stop))
    """,
    "the parent folder": "os.listdir(here + '/..')",
    "the users, with pwd": "import pwd; insist(pwd.getpwall())",
    "the home of the host's user": "os.listdir(facts.user_home)",
    "the state of the host": "os.listdir(facts.home)",
    "the skills of the host": "os.listdir(facts.home + '/skills')",
    "the environments of the host": "os.listdir(facts.home + '/envs')",
    "the ledger": "os.listdir(facts.home + '/ledger')",
    "a file of the ledger": "read(facts.ledger)",
    "the store": "read(facts.store)",
    "the grants": "read(facts.home + '/grants.toml')",
    "the code of the neighbor": "read(facts.neighbor_snapshot + '/tools.py')",
    "the folder of the neighbor": "os.listdir(facts.neighbor_snapshot)",
    "the code of the neighbor, with ..": """
        read(here + '/../' + os.path.basename(facts.neighbor_snapshot) + '/tools.py')
    """,
    "the SDK of the neighbor": "read(facts.neighbor_sdk + '/sideband/skill.py')",
    "the names of all SDKs": "os.listdir(facts.home + '/sdk')",
    "the host's own code": "read(facts.core)",
    "the host's packages": "read(facts.package)",
    "inotify": "os.close(demand(call('inotify_init1', 0)))",
    "fanotify": "reach(call('fanotify_init', 1 << 30, 0))",
    "statvfs": "os.statvfs('/')",
    "an extended attribute": "os.listxattr(own_file)",
}

# Possible on the lower tier, as documented in ``Probe.gaps``. On both tiers a worker can find out whether a skill with
# a known digest is stored, which is documented too.
ONLY_IN_NAMESPACES = {
    "whether a file exists": "os.stat('/etc/passwd')",
    "whether a file may be read": "insist(os.access('/etc/passwd', os.R_OK))",
    "whether another user's file exists": "os.stat(facts.area + '/secret.txt')",
    "whether a file exists, with O_PATH": "os.close(os.open('/etc/passwd', os.O_PATH))",
    "whether /proc is mounted": "os.stat('/proc/self')",
    "whether the host is running": "os.stat(f'/proc/{facts.host}')",
    "whether devices exist": "os.stat('/dev/null')",
    "whether programs exist": "os.stat('/bin/sh')",
    "the target of a link": "os.readlink('/proc/self')",
    "whether the ledger exists": "os.stat(facts.ledger)",
    "whether grants exist": "os.stat(facts.home + '/grants.toml')",
    "the CPU affinity of another process": "os.sched_getaffinity(facts.victim)",
}
HOSTILE |= ONLY_IN_NAMESPACES

NEEDS_ROOT = {
    "with fsopen", "the kernel's log", "fanotify",
}  # fmt: skip
