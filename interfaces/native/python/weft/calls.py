"""The calls of libweft.so.1 as Python makes them: the library, its structures and errors, and bytes for it."""

import ctypes
import os
from typing import Any

ANY = -1
# How long a call waits before Python looks after its signals, in milliseconds.
SLICE = 100


class Error(Exception):
    """What a call of the library answers; number is that of weft.h, such as STATE."""

    def __init__(self, number: int, text: str):
        super().__init__(text)
        self.number = number


STATE, ARGUMENT, PROCESS, PORT, TRUNCATED, LOST, NAME, TIMEOUT, MEMORY, SYSTEM, JOIN, START = range(-1, -13, -1)


class CMessage(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("process", "port", "tag", "reserved")] + [("length", ctypes.c_size_t)]


class CPick(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("port", "process", "tag")]


class CPoll(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short)]


class CMemory(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint64 * 4)]


def _load() -> ctypes.CDLL:
    """The library that was installed with this file, or else the one that the linker finds."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "libweft.so.1")
    library = ctypes.CDLL(beside if os.path.exists(beside) else "libweft.so.1")
    library.weft_error.restype = ctypes.c_char_p
    integer, pointer, size = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t
    arguments = {
        "weft_send": [integer, integer, integer, pointer, size],
        "weft_send_copy": [integer, integer, integer, pointer, size],
        "weft_receive": [integer, integer, integer, pointer, size, pointer],
        "weft_start": [ctypes.c_char_p, pointer, integer, ctypes.c_char_p, pointer],
        "weft_host_name": [integer, pointer, size],
        "weft_send_begin": [integer, integer, integer, pointer, size],
        "weft_receive_begin": [integer, integer, integer, pointer, size],
        "weft_test": [integer, pointer],
        "weft_wait_any": [pointer, integer, integer],
        "weft_raw_send": [integer, pointer, size],
        "weft_raw_receive": [integer, pointer, size],
        "weft_register": [size, pointer, pointer],
        "weft_put": [integer, pointer, ctypes.c_uint64, pointer, size],
        "weft_get": [integer, pointer, ctypes.c_uint64, pointer, size],
        "weft_port_address": [integer, pointer, size],
        "weft_port_find": [ctypes.c_char_p, integer, pointer, pointer],
        "weft_port_open_named": [ctypes.c_char_p],
        "weft_group_join": [ctypes.c_char_p, integer],
        "weft_group_send": [integer, pointer, size],
        "weft_group_receive": [integer, pointer, size, integer, pointer],
        "weft_group_members": [integer, pointer, integer],
    }
    for name, types in arguments.items():
        getattr(library, name).argtypes = types
    return library


library = _load()

# What looks for what coroutines wait for.
watch: Any = None


def checked(answer: int) -> int:
    if answer < 0:
        raise Error(answer, (library.weft_error() or b"").decode("utf-8", "replace"))
    # A call may have taken in what a coroutine waits for.
    if watch is not None:
        watch.look_soon()
    return answer


def readable(data: Any):
    """Address and length of bytes to send, and what keeps them where they are."""
    view = memoryview(data).cast("B") if not isinstance(data, bytes) else data
    if isinstance(view, memoryview) and not view.readonly and view.nbytes:
        kept = (ctypes.c_char * view.nbytes).from_buffer(view)
        return ctypes.addressof(kept), view.nbytes, kept
    kept = bytes(view)
    return ctypes.cast(ctypes.c_char_p(kept), ctypes.c_void_p).value, len(kept), kept


def writable(buffer: Any):
    view = memoryview(buffer).cast("B")
    if view.readonly:
        raise TypeError("the buffer cannot be written")
    if view.nbytes == 0:
        return None, 0, None
    kept = (ctypes.c_char * view.nbytes).from_buffer(view)
    return ctypes.addressof(kept), view.nbytes, kept
