"""The network, other programs on this machine, and tricks with the sockets that a worker has."""

HOSTILE = {
    "any family, any kind": """
        for family in range(64):
            for kind in (1, 2, 3, 4, 5, 6, 10):
                for flags in (0, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK):
                    if libc.socket(family, kind | flags, 0) >= 0 or ctypes.get_errno() != errno.EPERM:
                        return
        raise OSError('none')
    """,
    "an internet connection": "socket.create_connection(('127.0.0.1', facts.tcp), 5).close()",
    "an internet connection by the C library": "os.close(demand(libc.socket(2, 1, 0)))",
    "an internet connection of asyncio": """
        _, writer = await asyncio.open_connection('127.0.0.1', facts.tcp)
        writer.close()
    """,
    "an internet connection of an HTTP client": """
        import http.client
        connection = http.client.HTTPConnection('127.0.0.1', facts.tcp, timeout=5)
        connection.connect()
        connection.close()
    """,
    "a connection of version 6": "socket.socket(socket.AF_INET6).close()",
    "a connection with early data": """
        with socket.socket() as one:
            one.sendto(b'x', 0x20000000, ('127.0.0.1', facts.tcp))
    """,
    "a datagram": """
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.sendto(b'x', ('127.0.0.1', facts.udp))
    """,
    "a question for a name": "socket.getaddrinfo('localhost', 80)",
    "a question for a name, asked by hand": """
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.connect(('127.0.0.1', 53))
    """,
    "a question of asyncio": "await asyncio.get_running_loop().getaddrinfo('localhost', 80)",
    "a ping": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()",
    "packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()",
    "the machine's interfaces": "socket.if_nameindex()",
    "the machine's interfaces, asked by a pair": """
        import fcntl
        fcntl.ioctl(pair()[0], 0x8912, bytes(16))
    """,
    "a server": "socket.create_server(('127.0.0.1', 0)).close()",
    "a server of asyncio": """
        server = await asyncio.start_server(print, '127.0.0.1', 0)
        insist(server.sockets)
        server.close()
    """,
    "a local socket": """
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(facts.path)
    """,
    "a local socket without a file": """
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(f'\\0{facts.abstract}')
    """,
    "a local datagram": """
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
            one.sendto(b'x', facts.datagrams)
    """,
    "a local datagram from one end of a pair": """
        left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        left.sendto(b'x', facts.datagrams)
    """,
    "a pair of another kind": "socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)",
    "a pair of another family": """
        if libc.socketpair(2, 1, 0, bytes(8)) < 0 and ctypes.get_errno() in (1, 38):
            demand(-1)
    """,
    "an address for one end of a pair": "pair()[0].bind(f'\\0sideband-hostile-{os.getpid()}')",
    "an address in a folder for one end of a pair": "pair()[0].bind(facts.open + '/bound')",
    "waiting for connections on one end of a pair": "reach(libc.listen(pair()[0].fileno(), 1))",
    "taking connections on one end of a pair": "reach(libc.accept(pair()[0].fileno(), 0, 0))",
    "connecting one end of a pair anew": "reach(libc.connect(pair()[0].fileno(), bytes(2), 2))",
    "data out of band": "reach(libc.send(pair()[0].fileno(), b'x', 1, socket.MSG_OOB))",
    "data out of band, to receive": """
        reach(libc.recv(pair()[0].fileno(), bytes(1), 1, socket.MSG_OOB | socket.MSG_DONTWAIT))
    """,
    "data out of band, in a message": "reach(libc.sendmsg(pair()[0].fileno(), bytes(56), socket.MSG_OOB))",
    "many messages at once": "reach(libc.sendmmsg(pair()[0].fileno(), 0, 0, 0))",
    "the identity of others with messages": "pair()[0].setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)",
    "a filter on a pair": """
        import struct
        code = ctypes.create_string_buffer(struct.pack('=HBBI', 6, 0, 0, 0xFFFF))
        program = struct.pack('HP', 1, ctypes.addressof(code))
        pair()[0].setsockopt(socket.SOL_SOCKET, 26, program)
    """,
    "larger buffers than allowed": "pair()[0].setsockopt(socket.SOL_SOCKET, 33, 1 << 20)",
    "a mark on its traffic": "pair()[0].setsockopt(socket.SOL_SOCKET, 36, 1)",
    "a larger pipe": "import fcntl; fcntl.fcntl(os.pipe()[0], fcntl.F_SETPIPE_SZ, 1 << 17)",
}
# Possible on the lower tier, where nothing is won by it: none of a worker's descriptors is one end of a pipe to others.
ONLY_IN_NAMESPACES = {
    "the other end of a pipe through /proc": """
        reading, writing = os.pipe()
        descriptor = os.open(f'/proc/self/fd/{reading}', os.O_WRONLY)
        os.write(descriptor, b'forged')
        insist(os.read(reading, 6) == b'forged')
        os.close(descriptor)
    """,
    "the other end of a pipe through /dev": """
        reading, writing = os.pipe()
        os.close(os.open(f'/dev/fd/{reading}', os.O_WRONLY))
    """,
}
HOSTILE |= ONLY_IN_NAMESPACES

NEEDS_ROOT = {"a ping", "packets", "larger buffers than allowed", "a mark on its traffic"}
