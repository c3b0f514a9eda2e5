"""Reading and listing what is not the skill's own."""

HOSTILE = {
    "the users of the machine": "read('/etc/passwd')",
    "by a descriptor": "os.read(os.open('/etc/passwd', os.O_RDONLY), 1)",
    "by the C library": "os.close(demand(libc.open(b'/etc/passwd', 0)))",
    "by openat2": "os.close(demand(call('openat2', -100, b'/etc/passwd', bytes(24), 24)))",
    "with an access mode that is neither reading nor writing": "os.close(os.open(facts.open + '/known', 3))",
    "as code": """
        import io
        insist(io.open_code('/etc/passwd').read())
    """,
    "as a module": """
        from importlib.machinery import SourceFileLoader
        insist(SourceFileLoader('stolen', '/etc/passwd').get_data('/etc/passwd'))
    """,
    "as lines of a traceback": "import linecache; insist(linecache.getlines('/etc/passwd'))",
    "as memory": """
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
    "a stranger's file": "read(facts.area + '/secret.txt')",
    "by a detour through its own folder": "read(here + '/../' + os.path.relpath('/etc/passwd', here + '/..'))",
    "after a change of folder": """
        os.chdir('/etc')
        try:
            read('passwd')
        finally:
            os.chdir('/')
    """,
    "from a folder's descriptor": """
        folder = os.open('/etc', os.O_PATH)
        os.close(os.open('passwd', os.O_RDONLY, dir_fd=folder))
    """,
    "from its own folder's descriptor, upwards": """
        folder = os.open(here, os.O_RDONLY)
        os.close(os.open('../' * 20 + 'etc/passwd', os.O_RDONLY, dir_fd=folder))
    """,
    "by a handle of a path, opened anew": """
        handle = os.open('/etc/passwd', os.O_PATH)
        read(f'/proc/self/fd/{handle}')
    """,
    "through its root in /proc": "read('/proc/self/root/etc/passwd')",
    "through its folder in /proc": "os.chdir('/'); read('/proc/self/cwd/etc/passwd')",
    "through its thread in /proc": """
        import threading
        read(f'/proc/self/task/{threading.get_native_id()}/root/etc/passwd')
    """,
    "through the host's root": "read(f'/proc/{facts.host}/root/etc/passwd')",
    "through the host's folder": "os.listdir(f'/proc/{facts.host}/cwd/')",
    "through a descriptor of the host": "read(f'/proc/{facts.host}/fd/{facts.descriptor}')",
    "through the first process": "read('/proc/1/status')",
    "through a link that it makes": """
        os.symlink('/etc/passwd', facts.open + '/way')
        read(facts.open + '/way')
    """,
    "through a hard link that it makes": """
        os.link(facts.open + '/linked', facts.open + '/hard')
        read(facts.open + '/hard')
    """,
    "by the kernel's name of a file": "reach(call('name_to_handle_at', -100, b'/etc/passwd', bytes(8), bytes(8), 0))",
    "by a name of a file that it made up": "reach(call('open_by_handle_at', -100, bytes(64), 0))",
    "by a copy of the mounts": "reach(call('open_tree', -100, b'/none', 0))",
    "by a file system of its own": "reach(call('fsopen', b'none', 0))",
    "the kernel's log": "reach(call('syslog', 99, 0, 0))",
    "a device": "read('/dev/zero')",
    "the kernel's random device": "read('/dev/urandom')",
    "a terminal": "import pty; [os.close(each) for each in pty.openpty()]",
    "the list of processes": "insist([name for name in os.listdir('/proc') if name.isdigit()])",
    "the host's environment": "read(f'/proc/{facts.host}/environ')",
    "the host's memory map": "read(f'/proc/{facts.host}/maps')",
    "the host's command line": "read(f'/proc/{facts.host}/cmdline')",
    "the host's descriptors": "os.listdir(f'/proc/{facts.host}/fd')",
    "the program of the host": "os.readlink(f'/proc/{facts.host}/exe')",
    "the neighbour's environment": "os.close(os.open(f'/proc/{facts.neighbour}/environ', os.O_RDONLY))",
    "the neighbour's memory map": "read(f'/proc/{facts.neighbour}/maps')",
    "its own memory map": "read('/proc/self/maps')",
    "the machine's mounts": "read('/proc/self/mountinfo')",
    "the machine's connections": "read('/proc/self/net/tcp')",
    "the machine's control groups": "read('/proc/self/cgroup')",
    "the kernel's settings": "read('/proc/sys/kernel/osrelease')",
    "the machine's devices": "os.listdir('/sys/class')",
    "the root": "os.listdir('/')",
    "the root, by scandir": "insist(next(os.scandir('/'), None))",
    "the root, by the descriptor of its own folder": "os.listdir(os.open('/', os.O_RDONLY | os.O_DIRECTORY))",
    "a folder, by glob": "import glob; insist(glob.glob('/etc/*'))",
    "a folder, by walking": "insist([files for _, _, files in os.walk('/etc') if files])",
    "a folder, by walking with descriptors": """
        def stop(error):
            raise error
        next(os.fwalk('/etc', onerror=stop))
    """,
    "the folder above": "os.listdir(here + '/..')",
    "the users, by the library": "import pwd; insist(pwd.getpwall())",
    "the home of the host's user": "os.listdir(facts.user_home)",
    "the state of the host": "os.listdir(facts.home)",
    "the skills of the host": "os.listdir(facts.home + '/skills')",
    "the environments of the host": "os.listdir(facts.home + '/envs')",
    "the ledger": "os.listdir(facts.home + '/ledger')",
    "a file of the ledger": "read(facts.ledger)",
    "the store": "read(facts.store)",
    "the grants": "read(facts.home + '/grants.toml')",
    "the code of its neighbour": "read(facts.neighbour_snapshot + '/tools.py')",
    "the folder of its neighbour": "os.listdir(facts.neighbour_snapshot)",
    "the code of its neighbour, by a detour": """
        read(here + '/../' + os.path.basename(facts.neighbour_snapshot) + '/tools.py')
    """,
    "the SDK of its neighbour": "read(facts.neighbour_sdk + '/sideband/skill.py')",
    "the names of all SDKs": "os.listdir(facts.home + '/sdk')",
    "the host's own code": "read(facts.core)",
    "the host's packages": "read(facts.package)",
    "being told of changes": "os.close(demand(call('inotify_init1', 0)))",
    "being told of changes everywhere": "reach(call('fanotify_init', 1 << 30, 0))",
    "how full the disk is": "os.statvfs('/')",
    "an extended attribute": "os.listxattr(own_file)",
}

# On the lower tier these stay possible, and that is said (``Probe.gaps``). On both, whether a skill is stored whose
# digest is known: that is said too.
ONLY_IN_NAMESPACES = {
    "whether a file exists": "os.stat('/etc/passwd')",
    "whether a file may be read": "insist(os.access('/etc/passwd', os.R_OK))",
    "whether a stranger's file exists": "os.stat(facts.area + '/secret.txt')",
    "whether a file exists, without reading": "os.close(os.open('/etc/passwd', os.O_PATH))",
    "whether there is a list of processes": "os.stat('/proc/self')",
    "whether the host runs": "os.stat(f'/proc/{facts.host}')",
    "whether there are devices": "os.stat('/dev/null')",
    "whether there are programs": "os.stat('/bin/sh')",
    "where a link leads": "os.readlink('/proc/self')",
    "whether there is a ledger": "os.stat(facts.ledger)",
    "whether there are grants": "os.stat(facts.home + '/grants.toml')",
    "which processors a stranger may use": "os.sched_getaffinity(facts.victim)",
}
HOSTILE |= ONLY_IN_NAMESPACES

NEEDS_ROOT = {
    "by a file system of its own", "the kernel's log", "being told of changes everywhere",
}  # fmt: skip
