"""Attempts to reach the network and local services, and to misuse socket pairs."""

HOSTILE = {
    "any family, any kind": """
        for family in range(64):
            for kind in (1, 2, 3, 4, 5, 6, 10):
                for flags in (0, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK):
                    if libc.socket(family, kind | flags, 0) >= 0 or ctypes.get_errno() != errno.EPERM:
                        return
        raise OSError('refused')
    """,
    "a TCP connection": "socket.create_connection(('127.0.0.1', facts.tcp), 5).close()",
    "a TCP socket with the C library": "os.close(demand(libc.socket(2, 1, 0)))",
    "a TCP connection with asyncio": """
        _, writer = await asyncio.open_connection('127.0.0.1', facts.tcp)
        writer.close()
    """,
    "a TCP connection with an HTTP client": """
        import http.client
        connection = http.client.HTTPConnection('127.0.0.1', facts.tcp, timeout=5)
        connection.connect()
        connection.close()
    """,
    "an IPv6 socket": "socket.socket(socket.AF_INET6).close()",
    "a TCP connection with fast open": """
        with socket.socket() as one:
            one.sendto(b'x', 0x20000000, ('127.0.0.1', facts.tcp))
    """,
    "a UDP datagram": """
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.sendto(b'x', ('127.0.0.1', facts.udp))
    """,
    "a name lookup": "socket.getaddrinfo('localhost', 80)",
    "a connection to a name server": """
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.connect(('127.0.0.1', 53))
    """,
    "a name lookup with asyncio": "await asyncio.get_running_loop().getaddrinfo('localhost', 80)",
    "a raw socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()",
    "a packet socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()",
    "a netlink socket": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()",
    "the network interfaces": "socket.if_nameindex()",
    "the network interfaces, with a socket pair": """
        import fcntl
        fcntl.ioctl(pair()[0], 0x8912, bytes(16))
    """,
    "a TCP server": "socket.create_server(('127.0.0.1', 0)).close()",
    "a TCP server with asyncio": """
        server = await asyncio.start_server(print, '127.0.0.1', 0)
        insist(server.sockets)
        server.close()
    """,
    "a unix socket": """
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(facts.path)
    """,
    "an abstract unix socket": """
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(f'\\0{facts.abstract}')
    """,
    "a unix datagram": """
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
            one.sendto(b'x', facts.datagrams)
    """,
    "a unix datagram from a socket pair": """
        left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        left.sendto(b'x', facts.datagrams)
    """,
    "a socket pair of another type": "socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)",
    "a socket pair of another family": """
        if libc.socketpair(2, 1, 0, bytes(8)) < 0 and ctypes.get_errno() in (1, 38):
            demand(-1)
    """,
    "binding a socket pair to an abstract address": "pair()[0].bind(f'\\0sideband-hostile-{os.getpid()}')",
    "binding a socket pair to a path": "pair()[0].bind(facts.open + '/bound')",
    "listening on a socket pair": "reach(libc.listen(pair()[0].fileno(), 1))",
    "accepting connections on a socket pair": "reach(libc.accept(pair()[0].fileno(), 0, 0))",
    "reconnecting a socket pair": "reach(libc.connect(pair()[0].fileno(), bytes(2), 2))",
    "sending urgent data": "reach(libc.send(pair()[0].fileno(), b'x', 1, socket.MSG_OOB))",
    "receiving urgent data": """
        reach(libc.recv(pair()[0].fileno(), bytes(1), 1, socket.MSG_OOB | socket.MSG_DONTWAIT))
    """,
    "sending urgent data with sendmsg": "reach(libc.sendmsg(pair()[0].fileno(), bytes(56), socket.MSG_OOB))",
    "sendmmsg": "reach(libc.sendmmsg(pair()[0].fileno(), 0, 0, 0))",
    "the credentials of the peer": "pair()[0].setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)",
    "a filter on a socket pair": """
        import struct
        code = ctypes.create_string_buffer(struct.pack('=HBBI', 6, 0, 0, 0xFFFF))
        program = struct.pack('HP', 1, ctypes.addressof(code))
        pair()[0].setsockopt(socket.SOL_SOCKET, 26, program)
    """,
    "buffers larger than the limit": "pair()[0].setsockopt(socket.SOL_SOCKET, 33, 1 << 20)",
    "a mark on its packets": "pair()[0].setsockopt(socket.SOL_SOCKET, 36, 1)",
    "a larger pipe": "import fcntl; fcntl.fcntl(os.pipe()[0], fcntl.F_SETPIPE_SZ, 1 << 17)",
}
# Possible on the lower tier, where it is harmless: a worker has no descriptor of a pipe to another process.
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

NEEDS_ROOT = {"a raw socket", "a packet socket", "buffers larger than the limit", "a mark on its packets"}
