"""Objects in Python, with results that are known; with "beside", ports and groups of the same process, too."""

import os
import signal
import sys
import threading

import weft.objects as objects
from weft.objects import operation

ADDITIONS, JOBS = 100, 60


class Counter:
    """A number of hits."""

    def __init__(self):
        self.hits = 0

    @operation(read=True)
    def value(self):
        return self.hits

    @operation
    def hit(self, by=1):
        """The hits after."""
        self.hits += by
        return self.hits

    @operation(read=True, guard=lambda self, least: self.hits >= least)
    def await_hits(self, least):
        return self.hits

    @operation
    def refuse(self, text):
        raise ValueError(text)

    @operation(read=True)
    def meddle(self):
        return counter.value()

    @operation(read=True)
    def spoil(self):
        self.hits += 10**6

    @operation(read=True)
    def unknown(self):
        return lambda: None


class Chat:
    def __init__(self):
        self.lines = []

    @operation
    def say(self, who, text):
        self.lines.append((who, text))

    @operation(read=True, guard=lambda self, seen: len(self.lines) > seen)
    def after(self, seen):
        return self.lines[seen:]


class Nothing:
    pass


def raises(kind, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        assert str(error), error
        return error
    raise AssertionError(f"{call} has raised nothing")


def counters(me, size):
    all_hits = size * ADDITIONS
    seen = [counter.hit() for _ in range(ADDITIONS)]
    assert seen == sorted(set(seen)), seen
    assert counter.await_hits(all_hits) == all_hits == counter.value()
    assert objects.find("counter", Counter).value() == all_hits
    assert counter.hit.__doc__ == "The hits after."
    assert str(raises(ValueError, counter.refuse, "not this")) == "not this"
    error = raises(objects.Error, counter.meddle)
    assert error.number == objects.STATE and "operation 'meddle' calls an object" in str(error), error
    raises(TypeError, counter.unknown)
    raises(TypeError, counter.hit, 1, 2)
    barrier.wait()
    if me == 0:
        counter.place(size - 1)
    # It moves a moment later.
    while counter.placement != size - 1:
        counter.value()
    counter.hit(by=2)
    assert counter.await_hits(all_hits + 2 * size) == all_hits + 2 * size
    barrier.wait()
    if me == 0:
        counter.place(objects.REPLICATED)


def standard(me, size):
    jobs, total = objects.share("jobs", objects.JobQueue()), objects.share("sum", objects.Integer())
    if me == 0:
        for job in range(1, JOBS + 1):
            assert jobs.add({"job": job})
        jobs.close()
    while (job := jobs.take()) is not None:
        total.add(job["job"])
    assert "None is no job" in str(raises(ValueError, jobs.add, None))
    assert total.await_at_least(JOBS * (JOBS + 1) // 2) == JOBS * (JOBS + 1) // 2
    poll = objects.share("poll", objects.Poll(size))
    assert poll.vote(1, True) and poll.await_decision(1) is True
    poll.vote(2, me != size - 1)
    assert poll.await_decision(2) is False
    place = objects.share("bin", objects.Bin())
    if me == 0:
        for at in range(size):
            place.put(at)
    taken = objects.share("taken", objects.Set())
    assert taken.insert(place.take())
    for at in range(size):
        taken.await_value(at)
    assert taken.values() == list(range(size)) and not taken.remove("none")
    table = objects.share("table", objects.Table())
    table.insert(("key", me), "x" * 10000)
    assert all(len(table.await_value(("key", at))) == 10000 for at in range(size)) and table.length() == size
    bag = objects.share("bag", objects.Bag())
    bag.add(7)
    assert bag.take() == 7 and total.raise_to(-1) > 0


def chat(me, size):
    """All read the same lines in the same order."""
    lines = objects.share("chat", Chat())
    for text in ("hello", "bye"):
        lines.say(me, text)
    heard = []
    while len(heard) < 2 * size:
        heard += lines.after(len(heard))
    table = objects.share("heard", objects.Table())
    table.insert(me, heard)
    assert all(table.await_value(at)[: 2 * size] == heard[: 2 * size] for at in range(size))


def faults():
    assert raises(objects.Error, objects.find, "nobody's", Counter).number == objects.NAME
    assert raises(objects.Error, objects.find, "chat", Counter).number == objects.TYPE
    raises(TypeError, objects.share, "nothing", Nothing())
    assert "the name of an object is a str, not int: 5" in str(raises(TypeError, objects.share, 5, Chat()))
    assert raises(objects.Error, objects.share, "", Chat()).number == objects.ARGUMENT
    text = str(raises(ValueError, objects.share, "barrier", objects.Barrier(99)))
    assert text == f"barrier 'barrier' has {objects.size()} callers, not 99", text
    chat_of_functions = Chat()
    chat_of_functions.lines.append(lambda: None)
    text = str(raises(TypeError, objects.share, "functions", chat_of_functions))
    assert "the state of object 'functions' cannot be pickled" in text and "lambda" in text, text
    if sys.flags.dev_mode:
        assert "'spoil' is declared with read=True" in str(raises(TypeError, counter.spoil))
        assert counter.value() < 10**6
    assert raises(objects.Error, counter.place, 4000).number == objects.ARGUMENT


def interrupted(me):
    """Ctrl-C ends a wait, and what was waited for goes on without it."""
    if me != 0:
        return
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        counter.await_hits(10**9)
        raise AssertionError("there are not so many")
    except KeyboardInterrupt:
        assert counter.value() > 0


def groups(me, size):
    """Ports, groups and objects of one process: all receive the same in one order."""
    import weft

    weft.init()
    group = weft.Group("numbers", safe=True)
    while len((found := group.receive(20)).processes) < size:
        assert isinstance(found, weft.Members), found
    assert found.processes == group.members
    barrier.wait()
    for number in range(50):
        group.send_object((me, number))
    group.send(b"x" * 100000)
    heard, places, long = [], [], 0
    while len(heard) < 50 * size or long < size:
        found = group.receive(20)
        assert isinstance(found, weft.GroupMessage), found
        places.append(found.place)
        if len(found.data) == 100000:
            long += 1
        else:
            heard.append((found.process, found.data))
    assert places == sorted(set(places)) and group.receive(0) is None
    table = objects.share("orders", objects.Table())
    table.insert(me, heard)
    assert all(table.await_value(at) == heard for at in range(size))
    counter.hit()
    barrier.wait()
    if me == 0:
        group.leave()
        try:
            group.send(b"")
            raise AssertionError("this process is no member")
        except weft.Error as error:
            assert error.number == weft.ARGUMENT, error
    else:
        assert len(group.receive(20).processes) == size - 1
    barrier.wait()
    weft.finish()


objects.init(deliver="deliver" in sys.argv)
counter = objects.share("counter", Counter())
barrier = objects.share("barrier", objects.Barrier(objects.size()))
counters(objects.me(), objects.size())
standard(objects.me(), objects.size())
chat(objects.me(), objects.size())
faults()
interrupted(objects.me())
if "beside" in sys.argv:
    groups(objects.me(), objects.size())
if objects.me() == 0:
    print("ok")
objects.finish()
