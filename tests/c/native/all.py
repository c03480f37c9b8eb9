"""Everything that the module weft has, between two ranks, or three processes of which one is of another job."""

import array
import asyncio
import os
import sys

import weft


def fails(number, call, *arguments, **more):
    try:
        call(*arguments, **more)
    except weft.Error as error:
        assert error.number == number and str(error), error
    else:
        raise AssertionError(f"{call} has not failed")


def messages(me, other, port):
    values = array.array("d", range(1000))
    if me == 0:
        weft.send(other, 7, b"bytes", tag=3)
        weft.send(other, 7, b"")
        weft.send(other, 7, values, tag=4)
        weft.send_object(other, 7, {"a": [1, 2, 3], "b": "text" * 100000})
    else:
        assert port.receive(tag=4, timeout=20).data == values.tobytes()
        assert port.receive(process=0, tag=3) == weft.Message(b"bytes", 0, 3, 5)
        assert port.receive().data == b""
        assert port.receive_object().data["b"] == "text" * 100000
        assert port.probe(tag=99) is None
        fails(weft.TIMEOUT, port.receive, 0, 99, 0.01)
    # Both send much before either receives.
    weft.send_object(other, 7, b"x" * 3000000)
    assert len(port.receive_object(process=other).data) == 3000000
    room = bytearray(8)
    weft.send(other, 7, b"12345678", tag=5)
    assert port.receive_into(room, tag=5).length == 8 and room == b"12345678"


def later(me, other, port):
    """Both begin to send much before either receives."""
    never = port.receive_begin(1, other, 98)
    assert never.test() is None
    fails(weft.TIMEOUT, never.wait, 0.01)
    leaving = weft.send_begin(other, 7, b"y" * 3000000, tag=6)
    room = bytearray(3000000)
    coming = [port.receive_begin(room, other, 6), port.receive_begin(5, other, 7)]
    assert weft.wait_any(coming, 20) is coming[0]
    assert coming[0].wait() == weft.Message(room, other, 6, 3000000) and room == b"y" * 3000000
    assert leaving.wait(20).process == other
    weft.send(other, 7, b"1234", tag=7)
    assert coming[1].wait(20).data == b"1234"
    assert never.cancel() and not never.cancel()
    fails(weft.STATE, never.test)
    weft.send(other, 7, b"too long", tag=8)
    cut = port.receive_begin(3, other, 8)
    fails(weft.TRUNCATED, cut.wait)
    fails(weft.TRUNCATED, cut.test)


def transfers(me, other, port):
    memory = weft.Memory(100000)
    weft.send(other, 7, memory.handle)
    theirs = port.receive(process=other).data
    weft.put(other, theirs, 10, f"by {me}".encode())
    weft.send(other, 7, b"")
    port.receive(process=other)
    assert bytes(memory.view[10:14]) == f"by {other}".encode()
    assert weft.get(other, theirs, 10, 4) == f"by {me}".encode()
    fails(weft.MEMORY, weft.get, other, theirs, 100000, 1)
    room = bytearray(5)
    weft.raw_send(other, b"raw bytes!")
    weft.raw_receive(other, room)
    weft.raw_receive(other, room)
    assert room == b"ytes!"


def starts(port):
    """Two processes: one ends with a code, and the other one by a signal."""
    workers = weft.start(sys.executable, sys.argv[0], "worker", count=2)
    for number, worker in enumerate(workers):
        port.notify(worker, tag=20)
        assert port.receive_object(worker).data == {"parent": True, "number": number}
    weft.signal(workers[1], 15)
    weft.send(workers[0], 7, b"")

    async def ends():
        return [weft.End.of((await port.receive_async(tag=20)).data) for _ in workers]

    told = {end.process: end[1:] for end in asyncio.run(ends())}
    assert told == {workers[0]: ("lost", 5, None), workers[1]: ("lost", None, 15)}, told
    fails(weft.START, weft.start, "./no-such-program")
    fails(weft.START, weft.start, sys.executable, sys.argv[0], host="no such host")
    fails(weft.ARGUMENT, weft.start, sys.executable, count=0)
    fails(weft.ARGUMENT, weft.signal, weft.me(), 0)
    fails(weft.LOST, weft.signal, workers[0], 15)


def worker():
    port = weft.Port(7)
    weft.send_object(weft.parent(), 7, {"parent": True, "number": weft.me()})
    port.receive(process=weft.parent())
    weft.finish()
    sys.exit(5)


def waits():
    # The other process may be ahead, and send to ports that both know.
    port = weft.Port(9)
    inside, outside = os.pipe()
    assert weft.select([port], [inside], 0.01) is None
    os.write(outside, b"x")
    assert weft.select([port], [inside]) == inside
    os.read(inside, 1)
    weft.send(weft.me(), 9, b"")
    assert weft.select([port], [inside]) is port
    port.receive()


async def coroutines(me, other, port):
    """Two conversations at once, while the loop ticks."""
    leaving = weft.send_begin(other, 7, b"z" * 1000000, tag=10)
    came = await port.receive_begin(1000000, other, 10)
    assert came.data == b"z" * 1000000 and (await leaving).length == 1000000
    second, ticks = weft.Port(8), 0

    async def talk(port, count):
        for turn in range(count):
            if me == 0:
                weft.send_object(other, port.number, turn)
            message = await port.receive_object_async(process=other)
            assert message.data == turn
            if me == 1:
                weft.send_object(other, port.number, turn)

    async def tick():
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(tick())
    await asyncio.gather(talk(port, 300), talk(second, 200))
    await asyncio.sleep(0.01)
    ticking.cancel()
    assert ticks > 1
    try:
        # The other process may be ahead, and have sent to this port already.
        await asyncio.wait_for(port.receive_async(tag=99), 0.01)
    except asyncio.TimeoutError:
        pass


def main():
    fails(weft.STATE, weft.me)
    weft.init()
    if weft.parent() is not None:
        worker()
    me, name = weft.me(), sys.argv[1]
    if sys.argv[2:] == ["guest"]:
        place = weft.find(name, 20)
        mine = weft.Port()
        weft.send_object(*place, {"answer to": mine.number})
        assert mine.receive_object(timeout=20).data == "welcome"
        print("ok")
        return weft.finish()
    other, port = 1 - me, weft.Port(7)
    fails(weft.PORT, weft.Port, 7)
    assert weft.host_name() == weft.host_name(weft.host_of(me)) and weft.host_of(other) < weft.hosts()
    fails(weft.ARGUMENT, weft.host_name, weft.hosts())
    messages(me, other, port)
    later(me, other, port)
    transfers(me, other, port)
    waits()
    asyncio.run(coroutines(me, other, port))
    # On several hosts here no network leads from the launcher to them, which starts take.
    if me == 0 and weft.hosts() == 1:
        starts(port)
    if me == 0:
        guests = weft.Port(name=name)
        assert name in guests.address
        fails(weft.NAME, lambda: weft.Port(name=name))
        guest = guests.receive_object(timeout=20)
        weft.send_object(guest.process, guest.data["answer to"], "welcome")
    weft.send(other, 7, b"")
    port.receive()
    assert weft.has_left(me) is None
    if me == 0:
        print("ok")
    weft.finish()


main()
