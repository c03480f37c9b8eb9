"""Processes that this one starts, signals to them, and how processes end."""

import ctypes
import struct
from typing import Any, NamedTuple, Optional, Sequence

from .calls import PROCESS, Error, checked, library


def start(program: Any, *arguments: Any, count: int = 1, host: Optional[str] = None) -> Sequence[int]:
    """Starts processes of a program, which join by weft.init(): on any host of the job, or on the one of this name. The
    answer are their numbers here, in the order of those in their own job."""
    words = [str(word).encode("utf-8", "surrogateescape") for word in arguments]
    numbers = (ctypes.c_int * max(count, 1))()
    where = None if host is None else host.encode()
    checked(library.weft_start(str(program).encode(), (ctypes.c_char_p * (len(words) + 1))(*words, None), count, where,
                               numbers))
    return list(numbers)


def parent() -> Optional[int]:
    """The process that has started this one by start, if one has."""
    answer = library.weft_parent()
    return None if answer == PROCESS else checked(answer)


def signal(process: int, number: int) -> None:
    """Sends a signal to a process of this job, or one that this process has started."""
    checked(library.weft_signal(process, number))


class End(NamedTuple):
    """How a process has ended: what a message holds that Port.notify has come. how is "left" or "lost"; code and signal
    are known of processes that this one has started."""

    process: int
    how: str
    code: Optional[int]
    signal: Optional[int]

    @classmethod
    def of(cls, data: bytes) -> "End":
        process, how, code, number = struct.unpack("4i", data)
        if how not in (1, 2):
            raise ValueError("no message of an end")
        return cls(process, ("left", "lost")[how - 1], code if code >= 0 else None, number if number > 0 else None)
