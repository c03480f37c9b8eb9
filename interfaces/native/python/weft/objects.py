"""Shared objects: values that several processes use by operations that nobody sees half done.

    import weft.objects as objects
    from weft.objects import operation

    class Counter:
        def __init__(self):
            self.hits = 0

        @operation(read=True)
        def value(self):
            return self.hits

        @operation
        def hit(self):
            self.hits += 1
            return self.hits

        @operation(read=True, guard=lambda self, least: self.hits >= least)
        def await_hits(self, least):
            return self.hits

    objects.init()                                   # joins the job, with all its processes
    counter = objects.share("hits", Counter())       # creates it, or opens it where another process was first
    counter.hit()
    counter.await_hits(objects.size())
    objects.finish()

An object is of a plain class; what it holds, what operations take and what they answer are what pickle knows. A handle
has the operations as methods, which run where the object is: on every process that has opened it, or on one. So an
operation does the same on equal states: it uses its object and its arguments only, no clock, no random numbers, no
file, no other object, and no set that it goes through (sets of strings have an order of their own in each process).

An operation whose guard is false waits, and is tried again after each write of its object. What an operation raises its
caller gets; what it has changed until then stays, on all processes alike. All errors of the library are Error, with the
number that C programs get. States are unpickled: use objects with processes that you trust.

An operation with read=True that changes its object makes copies differ for ever. `python3 -X dev` finds it: the
operation raises then, and its object stays as it was.
"""

import atexit
import ctypes
import functools
import os
import pickle
import sys
import threading
from typing import Any, Callable, Dict, Optional

from .standard import Bag, Barrier, Bin, Integer, JobQueue, Poll, Set, Table, operation

__all__ = ["Error", "operation", "init", "finish", "me", "size", "share", "find", "Shared", "REPLICATED", "AUTOMATIC",
           "Integer", "JobQueue", "Barrier", "Poll", "Bin", "Table", "Bag", "Set"]

REPLICATED, AUTOMATIC = -1, -2

STATE, ARGUMENT, NAME, TYPE, TRUNCATED, LOST, FAILED, BROKEN, TIMEOUT, GROUP = range(-1, -11, -1)

# What an operation of the library answers whose guard is false.
_WAIT = 1
# How long a call waits before Python looks after its signals, in milliseconds.
_SLICE = 100


class Error(Exception):
    """What a call of the library answers; number is that of weft_objects.h, such as NAME."""

    def __init__(self, number: int, text: str):
        super().__init__(text)
        self.number = number

    def __reduce__(self):
        return Error, (self.number, str(self))


_address = ctypes.c_void_p
_Run = ctypes.CFUNCTYPE(ctypes.c_int, _address, _address, ctypes.c_size_t, _address, _address)
_Pack = ctypes.CFUNCTYPE(ctypes.c_int, _address, _address, _address)
_Unpack = ctypes.CFUNCTYPE(_address, _address, ctypes.c_size_t, _address)
_Drop = ctypes.CFUNCTYPE(None, _address, _address)


class _Operation(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("writes", ctypes.c_int), ("guard", ctypes.c_void_p), ("run", _Run)]


class _Type(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("operations", ctypes.POINTER(_Operation)),
        ("count", ctypes.c_int),
        ("size", ctypes.c_size_t),
        ("pack", _Pack),
        ("unpack", _Unpack),
        ("drop", _Drop),
        ("context", ctypes.c_void_p),
    ]


def _load() -> ctypes.CDLL:
    """The library that was installed with this file, or else the one that the linker finds."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "libweft_objects.so.1")
    library = ctypes.CDLL(beside if os.path.exists(beside) else "libweft_objects.so.1")
    library.weft_objects_error.restype = ctypes.c_char_p
    integer, pointer, size, text = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
    arguments = {
        "weft_object_share": [text, pointer, pointer],
        "weft_object_find": [text, pointer],
        "weft_object_start": [integer, integer, text, size, integer, pointer, size, pointer],
        "weft_object_wait": [integer, pointer, size, pointer],
        "weft_bytes_add": [pointer, text, size],
        "weft_object_placement": [integer, pointer],
    }
    for name, types in arguments.items():
        getattr(library, name).argtypes = types
    return library


_library = _load()


def _checked(answer: int) -> int:
    if answer < 0:
        raise Error(answer, (_library.weft_objects_error() or b"").decode("utf-8", "replace"))
    return answer


class _States:
    """Objects that are in this process, by the numbers that stand for their addresses."""

    def __init__(self):
        self.all: Dict[int, Any] = {}
        self.given = 0
        self.lock = threading.Lock()

    def add(self, value: Any) -> int:
        with self.lock:
            self.given += 1
            self.all[self.given] = value
            return self.given


_states = _States()
_thread = threading.local()


def _dumps(value: Any) -> bytes:
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def _told(is_right: bool, value: Any) -> bytes:
    """An answer, or what was raised in its place."""
    try:
        return _dumps((is_right, value))
    except Exception as error:
        what = "the answer" if is_right else f"{type(value).__name__}({value})"
        return _dumps((False, TypeError(f"{what} cannot be pickled: {error}")))


def _run_of(name: str, function: Callable, read: bool, guard: Optional[Callable]) -> Any:
    is_checked = read and sys.flags.dev_mode

    def run(state, arguments, length, answer, _context):
        outer, _thread.inside = getattr(_thread, "inside", None), name
        try:
            try:
                value = _states.all[state]
                given, named = pickle.loads(ctypes.string_at(arguments, length))
                if guard is not None and not guard(value, *given, **named):
                    return _WAIT
                before = _dumps(value) if is_checked else None
                is_right, said = True, function(value, *given, **named)
                if is_checked and _dumps(value) != before:
                    _states.all[state] = pickle.loads(before)
                    raise TypeError(f"operation '{name}' is declared with read=True, and changes its object")
            except Exception as error:
                is_right, said = False, error
            if answer:
                told = _told(is_right, said)
                _library.weft_bytes_add(answer, told, len(told))
            return 0
        except BaseException as stopped:
            # Such as Ctrl-C: the object may be half changed.
            _thread.stopped = stopped
            return FAILED
        finally:
            _thread.inside = outer

    return _Run(run)


class _Kind:
    """What the library is told of a class. It stays as long as the process."""

    def __init__(self, of: type):
        marked = {name: getattr(of, name) for name in sorted(dir(of)) if hasattr(getattr(of, name), "_weft_operation")}
        if not marked:
            raise TypeError(f"{of.__qualname__} has no @operation")
        self.of, self.names = of, list(marked)
        rows = []
        for name, function in marked.items():
            read, guard = function._weft_operation
            rows.append(_Operation(name.encode(), int(not read), None, _run_of(name, function, read, guard)))
        self.rows = (_Operation * len(rows))(*rows)
        self.kept = rows
        name = f"{of.__module__}.{of.__qualname__}".encode()
        moves = (_Pack(self._pack), _Unpack(self._unpack), _Drop(self._drop))
        self.type = _Type(name, self.rows, len(rows), 0, *moves, None)
        members = {name: _method(number, marked[name]) for number, name in enumerate(self.names)}
        members.update((name, each) for name, each in vars(of).items() if hasattr(each, "_weft_at_caller"))
        taken = sorted(set(members) & set(dir(Shared)))
        if taken:
            raise TypeError(f"{of.__qualname__}: a handle has {', '.join(taken)} of its own")
        self.handle = type(f"Shared{of.__name__}", (Shared,), {"__doc__": of.__doc__, **members})

    def _pack(self, state, into, _context):
        try:
            packed = _dumps(_states.all[state])
        except Exception as error:
            _thread.unpacked = error
            return FAILED
        except BaseException as stopped:
            _thread.stopped = stopped
            return FAILED
        _library.weft_bytes_add(into, packed, len(packed))
        return 0

    def _unpack(self, packed, length, _context):
        try:
            value = pickle.loads(ctypes.string_at(packed, length))
        except Exception:
            return None
        except BaseException as stopped:
            _thread.stopped = stopped
            return None
        return _states.add(value) if isinstance(value, self.of) else None

    def _drop(self, state, _context):
        _states.all.pop(state, None)


_kinds: Dict[type, _Kind] = {}


def _kind(of: type) -> _Kind:
    if of not in _kinds:
        _kinds[of] = _Kind(of)
    return _kinds[of]


def _room():
    room = getattr(_thread, "room", None)
    if room is None:
        room = _thread.room = (ctypes.create_string_buffer(4096), ctypes.c_size_t())
    return room


def _call(object: int, number: int, given: bytes) -> Any:
    inside = getattr(_thread, "inside", None)
    if inside is not None:
        text = f"operation '{inside}' calls an object: an operation uses its own object and its arguments only"
        raise Error(STATE, text)
    # Such as in a handler of a signal that comes while an operation is waited for.
    if getattr(_thread, "calls", False):
        raise Error(STATE, "this thread waits for another operation")
    _thread.calls = True
    try:
        return _call_alone(object, number, given)
    finally:
        _thread.calls = False


def _call_alone(object: int, number: int, given: bytes) -> Any:
    room, length = _room()
    into = (room, len(room), ctypes.byref(length))
    code = _library.weft_object_start(object, number, given, len(given), _SLICE, *into)
    while code == TIMEOUT:
        code = _library.weft_object_wait(_SLICE, *into)
    if code == TRUNCATED:
        room = ctypes.create_string_buffer(length.value)
        code = _library.weft_object_wait(0, room, len(room), ctypes.byref(length))
    stopped, _thread.stopped = getattr(_thread, "stopped", None), None
    if stopped is not None:
        raise stopped
    _checked(code)
    is_right, value = pickle.loads(memoryview(room)[: length.value])
    if not is_right:
        raise value
    return value


def _method(number: int, function: Callable) -> Callable:
    @functools.wraps(function)
    def method(self, *given, **named):
        return _call(self._number, number, _dumps((given, named)))

    del method._weft_operation
    return method


class Shared:
    """A handle of an object: it has the operations of the object's class, which run where the object is."""

    def __init__(self, number: int):
        self._number = number

    def place(self, where: int) -> None:
        """Has the object on this process only, or REPLICATED; or AUTOMATIC, where its operations cost least as they are
        counted, which is how each one begins."""
        _checked(_library.weft_object_place(self._number, where))

    @property
    def placement(self) -> int:
        """The process that has the object, or REPLICATED."""
        where = ctypes.c_int()
        _checked(_library.weft_object_placement(self._number, ctypes.byref(where)))
        return where.value


def init(deliver: bool = False) -> None:
    """Joins the job, and waits until all its processes have. With deliver, a thread takes what comes for objects while
    the program computes; without it, that is done where the program calls an operation."""
    _checked(_library.weft_objects_init())
    if deliver:
        _checked(_library.weft_objects_deliver(1))
        # No thread is to call functions of Python when there is no Python any more.
        atexit.register(_library.weft_objects_deliver, 0)


def finish() -> None:
    """Waits until all processes call this, since others may need what is here, and leaves the job."""
    _checked(_library.weft_objects_finish())


def me() -> int:
    """The number of this process in its job."""
    return _checked(_library.weft_objects_me())


def size() -> int:
    """Processes of the job."""
    return _checked(_library.weft_objects_size())


def _named(name: str) -> bytes:
    if not isinstance(name, str):
        raise TypeError(f"the name of an object is a str, not {type(name).__name__}: {name!r}")
    return name.encode()


def share(name: str, initial: Any) -> Any:
    """Creates the object of this name in this state, or opens it where it is there. All processes may say so. One that
    was lost with the process that had it is created anew."""
    kind, packed_name = _kind(type(initial)), _named(name)
    state, _thread.unpacked = _states.add(initial), None
    try:
        number = _library.weft_object_share(packed_name, ctypes.byref(kind.type), state)
    finally:
        kind._drop(state, None)
    if number < 0 and _thread.unpacked is not None:
        raise TypeError(f"the state of object '{name}' cannot be pickled: {_thread.unpacked}") from _thread.unpacked
    handle = kind.handle(_checked(number))
    if isinstance(initial, Barrier):
        initial._opened(handle, name)
    return handle


def find(name: str, of: type) -> Any:
    """Opens an object that is there, of this class."""
    kind = _kind(of)
    return kind.handle(_checked(_library.weft_object_find(_named(name), ctypes.byref(kind.type))))
