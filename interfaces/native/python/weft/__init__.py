"""Ports, messages, memory and raw bytes over user-level communication: Python over libweft.so.1.

    import weft

    weft.init()                              # joins the job of weft run, or makes one of this process alone
    port = weft.Port(7)
    if weft.me() == 0:
        weft.send(1, 7, b"bytes")            # anything with a buffer: bytes, arrays, NumPy
        weft.send_object(1, 7, {"any": "object that pickle knows"})
    elif weft.me() == 1:
        print(port.receive().data)
        print(port.receive_object().data)
    weft.finish()

Ports with names are found by all processes of the user on this host, and of the job on any host: weft.Port(name="lab"),
weft.find("lab"). In coroutines await port.receive_async() waits in the event loop of asyncio. All errors are weft.Error, with
the number that C programs get in its attribute number. Objects are unpickled: receive them from processes that you trust.
"""

import ctypes
import pickle
from typing import Any, Callable, NamedTuple, Optional, Sequence

from . import calls as _calls
from .calls import ANY, ARGUMENT, JOIN, LOST, MEMORY, NAME, PORT, PROCESS, START, STATE, SYSTEM, TIMEOUT, TRUNCATED
from .calls import Error, SLICE as _SLICE, checked as _checked, library as _library
from .calls import CMemory as _Memory, CMessage as _Message, CPick as _Pick, CPoll as _Poll
from .calls import readable as _readable, writable as _writable
from .processes import End, parent, signal, start


def init(threads: bool = False) -> None:
    """Joins the job. With threads, several threads may call at the same time."""
    _checked(_library.weft_init(int(threads)))


def finish() -> None:
    """Leaves the job, once everything has left that was sent."""
    _calls.watch = None
    _checked(_library.weft_finish())
    Request._under_way.clear()


def me() -> int:
    """The number of this process in its job."""
    return _checked(_library.weft_me())


def size() -> int:
    """Processes of the job."""
    return _checked(_library.weft_size())


def hosts() -> int:
    """How many hosts the job is on."""
    return _checked(_library.weft_hosts())


def host_of(process: int) -> int:
    """The number of the host of a process of the job."""
    return _checked(_library.weft_host_of(process))


def host_name(host: Optional[int] = None) -> str:
    """The name of a host of the job, or of that of this process."""
    room = ctypes.create_string_buffer(256)
    _checked(_library.weft_host_name(host_of(me()) if host is None else host, room, len(room)))
    return room.value.decode("utf-8", "replace")


def has_left(process: int) -> Optional[str]:
    """How a process is gone: "left", "lost", or None while it is there."""
    return (None, "left", "lost")[_checked(_library.weft_has_left(process))]


def poll() -> None:
    """Takes what has come, and waits for nothing."""
    _checked(_library.weft_poll())


class Address(NamedTuple):
    """A port of a process, for the two first arguments of send."""

    process: int
    port: int


class Message(NamedTuple):
    """What was received; data is bytes, an object, or the buffer that was given."""

    data: Any
    process: int
    tag: int
    length: int


def send(process: int, port: int, data: Any, tag: int = 0) -> None:
    """Sends the bytes of anything that has a buffer. Waits for the receiver if they are many."""
    at, length, kept = _readable(data)
    _checked(_library.weft_send(process, port, tag, at, length))
    del kept


def send_object(process: int, port: int, value: Any, tag: int = 0) -> None:
    """Sends an object, pickled; waits for nobody."""
    at, length, kept = _readable(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    _checked(_library.weft_send_copy(process, port, tag, at, length))
    del kept


def send_begin(process: int, port: int, data: Any, tag: int = 0) -> "Request":
    """Starts to send the bytes of anything that has a buffer, which is not changed until that is over."""
    at, length, kept = _readable(data)
    return Request(_library.weft_send_begin(process, port, tag, at, length), data, kept)


class Request:
    """A message that was started, and moves where the process waits or polls. test, wait, and await in a coroutine give
    the Message once it is over; of one that was sent with the process that it went to."""

    # Those that are under way keep their memory.
    _under_way: "dict[int, Request]" = {}

    def __init__(self, number: int, data: Any, kept: Any, is_ours: bool = False):
        self.number, self._data, self._kept, self._is_ours = _checked(number), data, kept, is_ours
        # The message, or the error.
        self._done: Any = None
        Request._under_way[number] = self

    def test(self) -> Optional[Message]:
        """The message if it is over, or None."""
        if self._done is None:
            message = _Message()
            answer = _library.weft_test(self.number, ctypes.byref(message))
            if answer == 0:
                return None
            if self._done is not None:
                # Another thread has taken it meanwhile.
                return self.test()
            if answer == STATE:
                _checked(answer)
            self._end()
            try:
                _checked(answer)
            except Error as error:
                self._done = error
                raise
            data = self._data[: message.length] if self._is_ours else self._data
            self._done = Message(data, message.process, message.tag, message.length)
        elif isinstance(self._done, Error):
            raise self._done
        return self._done

    def wait(self, timeout: Optional[float] = None) -> Message:
        """Waits until it is over, at most for timeout seconds."""
        if self._done is None and wait_any([self], timeout) is None:
            raise Error(TIMEOUT, f"the message is not over after {timeout} s")
        return self.test()

    def cancel(self) -> bool:
        """Takes a receive back that no message has met yet; False where it is to be waited for."""
        if self._done is not None or not _checked(_library.weft_cancel(self.number)):
            return False
        self._end()
        self._done = Error(STATE, "the receive was cancelled")
        return True

    def __await__(self):
        while self.test() is None:
            yield from _watch_of_loop().wait(self._is_over).__await__()
        return self.test()

    def _is_over(self) -> bool:
        return _library.weft_wait_any((ctypes.c_int * 1)(self.number), 1, 0) != 0

    def _end(self) -> None:
        self._kept = None
        Request._under_way.pop(self.number, None)


def wait_any(requests: Sequence[Request], timeout: Optional[float] = None) -> Optional[Request]:
    """The first of several requests that is over, at most after timeout seconds."""
    over = next((request for request in requests if request._done is not None), None)
    numbers = (ctypes.c_int * len(requests))(*(request.number for request in requests))
    left = None if timeout is None else max(0, int(timeout * 1000))
    while over is None:
        now = _SLICE if left is None else min(left, _SLICE)
        which = _checked(_library.weft_wait_any(numbers, len(requests), now))
        if which != 0:
            over = requests[which - 1]
        elif left == now:
            break
        left = None if left is None else left - now
    return over


def find(name: str, timeout: Optional[float] = None) -> Address:
    """Finds a port by its name or address, and waits for it, at most for timeout seconds."""
    process, port = ctypes.c_int(), ctypes.c_int()
    left = None if timeout is None else max(0, int(timeout * 1000))
    while True:
        now = _SLICE if left is None else min(left, _SLICE)
        answer = _library.weft_port_find(name.encode(), now, ctypes.byref(process), ctypes.byref(port))
        if answer != TIMEOUT or left == now:
            _checked(answer)
            return Address(process.value, port.value)
        left = None if left is None else left - now


def _select(picks: Sequence[_Pick], polls: Sequence[_Poll], timeout: Optional[float], message: _Message) -> int:
    choices, descriptors = (_Pick * len(picks))(*picks), (_Poll * len(polls))(*polls)
    left = None if timeout is None else max(0, int(timeout * 1000))
    while True:
        now = _SLICE if left is None else min(left, _SLICE)
        which = _library.weft_select(choices, len(picks), descriptors, len(polls), now, ctypes.byref(message))
        if which != 0 or left == now:
            return _checked(which)
        left = None if left is None else left - now


def select(ports: Sequence["Port"], descriptors: Sequence[Any] = (), timeout: Optional[float] = None):
    """The first of the ports that has a message, or of the descriptors (or files) that can be read; None when it is over."""
    picks = [_Pick(port.number, ANY, ANY) for port in ports]
    numbers = [one if isinstance(one, int) else one.fileno() for one in descriptors]
    which = _select(picks, [_Poll(number, 1, 0) for number in numbers], timeout, _Message())
    return None if which == 0 else [*ports, *descriptors][which - 1]


class Port:
    """A port of this process: of a number, of any number, or with a name."""

    def __init__(self, number: int = ANY, name: Optional[str] = None):
        if not isinstance(number, int):
            raise TypeError(f"a port's number is an int, not {number!r}; Port(name=...) opens one with a name")
        if name is not None and number != ANY:
            raise TypeError(f"a port has a number or a name, not both: {number} and {name!r}")
        opened = _library.weft_port_open(number) if name is None else _library.weft_port_open_named(name.encode())
        self.number = _checked(opened)

    def close(self) -> None:
        _checked(_library.weft_port_close(self.number))

    @property
    def address(self) -> str:
        """By what find finds a port with a name on other hosts, too."""
        text = ctypes.create_string_buffer(512)
        _checked(_library.weft_port_address(self.number, text, len(text)))
        return text.value.decode()

    def probe(self, process: int = ANY, tag: int = ANY) -> Optional[Message]:
        """What is known of the first message that has come, which stays where it is; its data is None."""
        message, pick = _Message(), _Pick(self.number, process, tag)
        if _checked(_library.weft_probe(ctypes.byref(pick), 1, ctypes.byref(message))) == 0:
            return None
        return Message(None, message.process, message.tag, message.length)

    def receive(self, process: int = ANY, tag: int = ANY, timeout: Optional[float] = None) -> Message:
        """Waits for a message, at most for timeout seconds, and receives its bytes."""
        message = _Message()
        if _select([_Pick(self.number, process, tag)], [], timeout, message) == 0:
            raise Error(TIMEOUT, f"no message has come in {timeout} s")
        return self._take(message)

    def receive_object(self, process: int = ANY, tag: int = ANY, timeout: Optional[float] = None) -> Message:
        """The same for an object that was sent by send_object."""
        message = self.receive(process, tag, timeout)
        return message._replace(data=pickle.loads(message.data))

    def receive_into(self, buffer: Any, process: int = ANY, tag: int = ANY) -> Message:
        """Receives into a buffer; of a message that is longer than it the beginning is there, and an Error is raised."""
        message = _Message()
        at, length, kept = _writable(buffer)
        _select([_Pick(self.number, process, tag)], [], None, message)
        seen = (self.number, message.process, message.tag)
        _checked(_library.weft_receive(*seen, at, length, ctypes.byref(message)))
        del kept
        return Message(buffer, message.process, message.tag, message.length)

    def notify(self, process: int, tag: int = 0) -> None:
        """Has a message come here once a process is gone, whose data End.of reads."""
        _checked(_library.weft_notify(process, self.number, tag))

    def receive_begin(self, room: Any, process: int = ANY, tag: int = ANY) -> Request:
        """Starts to receive into a buffer, or into so many bytes, which are the data of the Message then."""
        is_ours = isinstance(room, int)
        buffer = (ctypes.c_char * room)() if is_ours else room
        at, length, kept = _writable(buffer)
        return Request(_library.weft_receive_begin(self.number, process, tag, at, length), buffer, kept, is_ours)

    async def receive_async(self, process: int = ANY, tag: int = ANY) -> Message:
        """As receive, in a coroutine: the event loop goes on meanwhile."""
        while (seen := self.probe(process, tag)) is None:
            await _watch_of_loop().wait(lambda: _has_come(_Pick(self.number, process, tag)))
        return self._take(_Message(seen.process, self.number, seen.tag, 0, seen.length))

    async def receive_object_async(self, process: int = ANY, tag: int = ANY) -> Message:
        message = await self.receive_async(process, tag)
        return message._replace(data=pickle.loads(message.data))

    def _take(self, seen: _Message) -> Message:
        room = ctypes.create_string_buffer(max(seen.length, 1))
        message = _Message()
        choice = (self.number, seen.process, seen.tag)
        _checked(_library.weft_receive(*choice, room, seen.length, ctypes.byref(message)))
        return Message(room.raw[: message.length], message.process, message.tag, message.length)


def raw_send(process: int, data: Any) -> None:
    """Sends bytes that the other process receives by raw_receive, in pieces of whatever lengths."""
    at, length, kept = _readable(data)
    _checked(_library.weft_raw_send(process, at, length))
    del kept


def raw_receive(process: int, buffer: Any) -> None:
    """Fills a buffer with the next bytes of a process."""
    at, length, kept = _writable(buffer)
    _checked(_library.weft_raw_receive(process, at, length))
    del kept


class Memory:
    """Memory of this process that others write and read: view is a memoryview, handle the bytes that others need."""

    def __init__(self, size: int):
        address, self._memory = ctypes.c_void_p(), _Memory()
        _checked(_library.weft_register(size, ctypes.byref(address), ctypes.byref(self._memory)))
        # It stays mapped as long as the process: a view may live longer than this.
        self.view = memoryview((ctypes.c_char * size).from_address(address.value)).cast("B")

    @property
    def handle(self) -> bytes:
        return bytes(self._memory)


def put(process: int, handle: bytes, offset: int, data: Any) -> None:
    """Writes bytes into memory of a process; they are there when this returns."""
    at, length, kept = _readable(data)
    _checked(_library.weft_put(process, ctypes.byref(_Memory.from_buffer_copy(handle)), offset, at, length))
    del kept


def get(process: int, handle: bytes, offset: int, length: int) -> bytes:
    """Reads bytes out of memory of a process."""
    room = ctypes.create_string_buffer(max(length, 1))
    _checked(_library.weft_get(process, ctypes.byref(_Memory.from_buffer_copy(handle)), offset, room, length))
    return room.raw[:length]


class _GroupEvent(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("process", "members")]
    _fields_ += [("place", ctypes.c_uint64), ("length", ctypes.c_size_t)]


class GroupMessage(NamedTuple):
    """A message to a group; place is that in the order, the same for all members."""

    data: Any
    process: int
    place: int


class Members(NamedTuple):
    """The members of a group from now on, in the order of joining."""

    processes: Sequence[int]


class Group:
    """A group: what a member sends all receive in one order, and changes of the members in the same order. With safe, a
    message is received when all members have it; with silence, who says nothing for some seconds counts as dead."""

    def __init__(self, name: str, safe: bool = False, silence: bool = False):
        self.number = _checked(_library.weft_group_join(name.encode(), int(safe) | int(silence) << 1))
        self._room = ctypes.create_string_buffer(4096)

    def send(self, data: Any) -> None:
        """Sends the bytes of anything that has a buffer to all members, this process among them."""
        at, length, kept = _readable(data)
        _checked(_library.weft_group_send(self.number, at, length))
        del kept

    def send_object(self, value: Any) -> None:
        """Sends an object, pickled."""
        self.send(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))

    def receive(self, timeout: Optional[float] = None):
        """What happens next: a GroupMessage, or Members when they have changed, and first of all when this process is
        one of them. None when the time is over."""
        event, left = _GroupEvent(), None if timeout is None else max(0, int(timeout * 1000))
        while True:
            now = _SLICE if left is None else min(left, _SLICE)
            room = self._room
            kind = _library.weft_group_receive(self.number, room, len(room), now, ctypes.byref(event))
            if kind == TRUNCATED:
                self._room = ctypes.create_string_buffer(event.length)
            elif kind != 0:
                break
            elif left == now:
                return None
            else:
                left = None if left is None else left - now
        if _checked(kind) == 1:
            return GroupMessage(bytes(memoryview(room)[: event.length]), event.process, event.place)
        if kind == 2:
            return Members(self.members)
        raise Error(LOST, "the others have taken this process for dead")

    def receive_object(self, timeout: Optional[float] = None):
        """The same for objects that were sent by send_object."""
        found = self.receive(timeout)
        return found._replace(data=pickle.loads(found.data)) if isinstance(found, GroupMessage) else found

    @property
    def members(self) -> Sequence[int]:
        """The members, as was last received."""
        count = _checked(_library.weft_group_members(self.number, None, 0))
        processes = (ctypes.c_int * count)()
        _checked(_library.weft_group_members(self.number, processes, count))
        return list(processes)

    def leave(self) -> None:
        """Leaves the group, once what this process has sent has its place."""
        _checked(_library.weft_group_leave(self.number))


def _has_come(pick: _Pick) -> bool:
    # An error is the coroutine's own to see.
    return _library.weft_probe(ctypes.byref(pick), 1, ctypes.byref(_Message())) != 0


class _Watch:
    """Coroutines of one event loop that wait, each with what looks whether it has to. The descriptor is armed when all
    have looked."""

    def __init__(self, loop: Any):
        self.loop, self.waiting = loop, []
        self.planned, self.timer = None, None
        self.descriptor = _library.weft_descriptor()
        if self.descriptor < 0:
            raise Error(self.descriptor, _library.weft_error().decode("utf-8", "replace"))

    async def wait(self, is_over: Callable[[], bool]) -> None:
        future = self.loop.create_future()
        entry = (future, is_over)
        self.waiting.append(entry)
        self.look_soon()
        try:
            await future
        finally:
            if entry in self.waiting:
                self.waiting.remove(entry)

    def look_soon(self) -> None:
        if self.waiting and self.planned is None and not self.loop.is_closed():
            self.planned = self.loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        self.planned = None
        self.loop.remove_reader(self.descriptor)
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        for entry in list(self.waiting):
            future, is_over = entry
            if is_over():
                self.waiting.remove(entry)
                if not future.done():
                    future.set_result(None)
        if not self.waiting:
            return
        limit = ctypes.c_int()
        if _library.weft_arm(ctypes.byref(limit)) == 0:
            return self.look_soon()
        self.loop.add_reader(self.descriptor, self._look)
        if limit.value >= 0:
            self.timer = self.loop.call_later(limit.value / 1000, self._look)


def _watch_of_loop() -> _Watch:
    import asyncio

    loop = asyncio.get_running_loop()
    if _calls.watch is None or _calls.watch.loop is not loop:
        _calls.watch = _Watch(loop)
    return _calls.watch
