"""Servers and clients of Python's own library, for the socket tests: sockets.py WHAT PORT.

A client says "ok" when everything came back as it was sent. A server runs until SIGINT.
"""

import asyncio
import hashlib
import http.client
import http.server
import random
import socket
import sys
import threading
from multiprocessing.managers import BaseManager


def body(seed, size):
    return random.Random(seed).randbytes(size)


SIZES = [1, 10, 1000, 65536, 300_000, 3_000_000]


class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Digest", hashlib.sha256(data).hexdigest())
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def http_server(port):
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Echo).serve_forever()


def http_client(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for seed, size in enumerate(SIZES * 5):
        data = body(seed, size)
        connection.request("POST", "/", data)
        answer = connection.getresponse()
        assert answer.read() == data
        assert answer.headers["Digest"] == hashlib.sha256(data).hexdigest()


async def echo(reader, writer):
    while data := await reader.read(50_000):
        writer.write(data)
        await writer.drain()
    writer.close()


async def serve_asyncio(port):
    server = await asyncio.start_server(echo, "127.0.0.1", port)
    await server.serve_forever()


async def one_stream(port, seed):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = body(seed, 4_000_000)

    async def send():
        numbers = random.Random(seed)
        at = 0
        while at < len(data):
            size = numbers.randrange(1, 100_000)
            writer.write(data[at : at + size])
            await writer.drain()
            at += size
        writer.write_eof()

    sending = asyncio.create_task(send())
    assert await reader.read(-1) == data
    await sending
    writer.close()


async def ask_asyncio(port):
    await asyncio.gather(*(one_stream(port, seed) for seed in range(4)))


class Store:
    def __init__(self):
        self.values = {}

    def put(self, key, value):
        self.values[key] = value

    def take(self, key):
        return self.values.pop(key)


class Manager(BaseManager):
    pass


def manager_server(port):
    store = Store()
    Manager.register("store", callable=lambda: store)
    Manager(("127.0.0.1", port), b"key").get_server().serve_forever()


def manager_client(port):
    Manager.register("store")
    manager = Manager(("127.0.0.1", port), b"key")
    manager.connect()
    store = manager.store()
    for seed, size in enumerate(SIZES * 3):
        store.put(seed, body(seed, size))
    for seed, size in enumerate(SIZES * 3):
        assert store.take(seed) == body(seed, size)


def memcached_stream(port, number, failures):
    try:
        connection = socket.create_connection(("127.0.0.1", port))
        file = connection.makefile("rb")
        numbers = random.Random(number)
        for turn in range(300):
            keys = [(f"{number}-{turn}-{i}", body(turn * 8 + i, numbers.choice([1, 100, 2000, 50_000]))) for i in range(8)]
            for key, value in keys:
                connection.sendall(f"set {key} 0 0 {len(value)}\r\n".encode() + value + b"\r\n")
            for _ in keys:
                assert file.readline() == b"STORED\r\n"
            connection.sendall(b"get " + " ".join(key for key, _ in keys).encode() + b"\r\n")
            for key, value in keys:
                assert file.readline() == f"VALUE {key} 0 {len(value)}\r\n".encode()
                assert file.read(len(value) + 2) == value + b"\r\n"
            assert file.readline() == b"END\r\n"
    except BaseException as failure:
        failures.append(failure)


def memcached(port):
    failures = []
    threads = [threading.Thread(target=memcached_stream, args=(port, n, failures)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def main():
    what, port = sys.argv[1], int(sys.argv[2])
    actions = {
        "http-server": http_server,
        "http-client": http_client,
        "asyncio-server": lambda port: asyncio.run(serve_asyncio(port)),
        "asyncio-client": lambda port: asyncio.run(ask_asyncio(port)),
        "manager-server": manager_server,
        "manager-client": manager_client,
        "memcached": memcached,
    }
    try:
        actions[what](port)
    except KeyboardInterrupt:
        return
    print("ok")


main()
