"""Servers and clients of datagrams, for the socket tests: datagrams.py WHAT PORT.

A client says "ok" when everything came back as it was sent. A server runs until SIGINT. Where RINGS is set, both ends have
the library, and a client that waits without sleeping goes on until its answers come by a ring.
"""

import asyncio
import fcntl
import os
import random
import select
import socket
import struct
import sys
import termios
import time

HERE = "127.0.0.1"


def body(seed, size):
    return struct.pack("!II", seed, size) + random.Random(seed).randbytes(size)


def size_of(seed):
    return [0, 1, 50, 500, 1400, 9000, 40_000][seed * 7919 % 7]


class Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, sender):
        self.transport.sendto(data, sender)


async def serve(port):
    await asyncio.get_running_loop().create_datagram_endpoint(Echo, local_addr=(HERE, port))
    await asyncio.Event().wait()


def plain_server(port):
    """Blocking calls, and each sender is told where he was heard from."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((HERE, port))
    while True:
        data, sender = server.recvfrom(65536)
        server.sendto(data, sender)


class Asker(asyncio.DatagramProtocol):
    def __init__(self):
        self.answers = asyncio.Queue()

    def datagram_received(self, data, _):
        self.answers.put_nowait(data)


async def ask(port, number):
    loop = asyncio.get_running_loop()
    transport, asker = await loop.create_datagram_endpoint(Asker, remote_addr=(HERE, port))
    for turn in range(300):
        data = body(number * 1000 + turn, size_of(turn))
        transport.sendto(data)
        assert await asyncio.wait_for(asker.answers.get(), 60) == data
    transport.close()


async def ask_all(port):
    await asyncio.gather(*(ask(port, number) for number in range(4)))


def kernel_has(asker):
    """Whether a datagram lies in the kernel's socket, which the library does not answer."""
    word = ":%04X " % asker.getsockname()[1]
    with open("/proc/net/udp") as table:
        return any(word in line and not line.split()[4].endswith(":00000000") for line in table)


def waiting_bytes(asker):
    return struct.unpack("i", fcntl.ioctl(asker, termios.FIONREAD, b"    "))[0]


def until_by_ring(asker):
    data = body(1, 100)
    for _ in range(30_000):
        asker.send(data)
        while waiting_bytes(asker) == 0:
            time.sleep(0.0001)
        by_kernel = kernel_has(asker)
        assert asker.recv(65536) == data
        if not by_kernel:
            return
        time.sleep(0.001)
    raise AssertionError("no answer comes by a ring")


def client(port):
    asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asker.connect((HERE, port))
    for turn in range(2000):
        data = body(turn, size_of(turn))
        if turn == 500 and "RINGS" in os.environ:
            asker.setblocking(False)
            until_by_ring(asker)
            asker.setblocking(True)
        asker.send(data)
        if turn % 3 == 0:
            assert select.select([asker], [], [], 60)[0]
        elif turn % 3 == 1:
            while waiting_bytes(asker) == 0:
                time.sleep(0)
        assert asker.recv(65536) == data


def names(port):
    """One name after the other, from one socket and from many."""
    kept = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for number in range(600):
        asker = kept if number % 3 else socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        question = b"".join(bytes([len(word)]) + word for word in (b"n%d" % number, b"weft", b"test")) + b"\0"
        heading = struct.pack("!HHHHHH", number, 0x100, 1, 0, 0, 0)
        asker.sendto(heading + question + struct.pack("!HH", 1, 1), (HERE, port))
        answer, sender = asker.recvfrom(4096)
        assert sender == (HERE, port) and answer[:2] == heading[:2] and question in answer
        assert answer[-4:] == bytes([10, 1, 2, 3]), answer


def memcached(port):
    asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asker.connect((HERE, port))

    def answer(number, command):
        asker.send(struct.pack("!HHHH", number, 0, 1, 0) + command)
        parts = {}
        while True:
            data = asker.recv(65536)
            heard, at, count, _ = struct.unpack("!HHHH", data[:8])
            assert heard == number
            parts[at] = data[8:]
            if len(parts) == count:
                return b"".join(parts[at] for at in range(count))

    for number in range(1000):
        value = body(number, 600).hex().encode()[:1000]
        assert answer(number, b"set key%d 0 0 1000\r\n" % (number % 50) + value + b"\r\n") == b"STORED\r\n"
        stored = b"VALUE key%d 0 1000\r\n" % (number % 50) + value + b"\r\n"
        assert answer(number, b"get key%d\r\n" % (number % 50)) == stored + b"END\r\n"


def main():
    what, port = sys.argv[1], int(sys.argv[2])
    actions = {
        "server": plain_server,
        "client": client,
        "asyncio-server": lambda port: asyncio.run(serve(port)),
        "asyncio-client": lambda port: asyncio.run(ask_all(port)),
        "names": names,
        "memcached": memcached,
    }
    try:
        actions[what](port)
    except KeyboardInterrupt:
        return
    print("ok")


main()
