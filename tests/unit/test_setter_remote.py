"""The setter behind a stream: in a thread, and in a process of its own."""

import contextlib
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster.codec import encode_document
from esnode.drivers.simulated.driver import SimulatedGpus
from esnode.readings.limits import EnforcedLimit, Limit, LimitWritten
from esnode.setter import (
    Journal,
    LimitsRead,
    LimitsSet,
    ListRanges,
    PowerSetter,
    RangesListed,
    ReadLimits,
    Refused,
    RemoteSetter,
    Reply,
    Request,
    SetLimits,
    SetterGone,
    serve_setter,
)
from esnode.setter.messages import decode_reply, encode_request
from esnode.setter.remote import Setter
from tests.limit_devices import MemoryDevice, MemoryDevices

WAIT_SECONDS = 20.0


@contextmanager
def served(setter: Setter) -> Iterator[socket.socket]:
    """The agent's end of a stream whose other end a thread serves."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        with theirs:
            serve_setter(theirs.recv, theirs.sendall, setter)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield ours
    finally:
        ours.close()
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()


def setter_of(folder: Path) -> PowerSetter:
    return PowerSetter([MemoryDevices({"a": MemoryDevice()})], Journal(folder))


def order(watts: int, device: str = "a") -> SetLimits:
    return SetLimits(limits=(Limit(device=device, watts=watts),), reason="a test", source="rack")


def test_a_remote_setter_answers_as_a_near_one(tmp_path: Path) -> None:
    near = setter_of(tmp_path)
    with served(near) as ours:
        remote = RemoteSetter(ours, deadline_seconds=WAIT_SECONDS)

        ranges = remote.ask(ListRanges())
        written = remote.ask(order(400))
        read = remote.ask(ReadLimits())

    assert ranges == near.ask(ListRanges())
    assert written == LimitsSet(
        outcomes=(LimitWritten(device="a", asked_watts=400, before_watts=700, enforced_watts=400),)
    )
    assert read == LimitsRead(
        limits=(EnforcedLimit(device="a", enforced_watts=400, requested_watts=400),)
    )


def test_threads_that_ask_at_once_each_get_their_own_answer(tmp_path: Path) -> None:
    replies: dict[int, Reply] = {}
    with served(setter_of(tmp_path)) as ours:
        remote = RemoteSetter(ours, deadline_seconds=WAIT_SECONDS)

        def ask(watts: int) -> None:
            replies[watts] = remote.ask(order(watts))

        threads = [threading.Thread(target=ask, args=(watts,)) for watts in range(300, 308)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_SECONDS)

    assert len(replies) == 8
    for watts, reply in replies.items():
        assert isinstance(reply, LimitsSet)
        assert reply.outcomes[0].asked_watts == watts


def test_a_setter_that_does_not_answer_is_given_up_for_good() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        remote = RemoteSetter(ours, deadline_seconds=0.1)

        with pytest.raises(SetterGone, match=r"did not answer within 0\.1 s"):
            remote.ask(ReadLimits())
        with pytest.raises(SetterGone, match="did not answer"):
            remote.ask(ReadLimits())


def test_a_setter_that_dribbles_does_not_stretch_the_deadline() -> None:
    ours, theirs = socket.socketpair()
    stop = threading.Event()

    def dribble() -> None:
        theirs.sendall(struct.pack(">I", 1000))
        with contextlib.suppress(OSError):
            while not stop.wait(0.05):
                theirs.sendall(b"x")

    thread = threading.Thread(target=dribble)
    thread.start()
    try:
        with pytest.raises(SetterGone, match="did not answer within"):
            RemoteSetter(ours, deadline_seconds=0.3).ask(ReadLimits())
    finally:
        stop.set()
        thread.join(WAIT_SECONDS)
        theirs.close()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(b"", "has ended", id="nothing"),
        pytest.param(struct.pack(">I", 9) + b"half", "has ended", id="half-a-frame"),
        pytest.param(struct.pack(">I", 1 << 30), "at most 65536 are read", id="endless"),
        pytest.param(struct.pack(">I", 4) + b"oops", "in no known words", id="no-message"),
        pytest.param(struct.pack(">I", 3) + encode_document((1, 2)), "no reply", id="a-request"),
    ],
)
def test_an_answer_that_cannot_be_right_ends_the_connection(answer: bytes, reason: str) -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(answer)
    theirs.shutdown(socket.SHUT_WR)

    with theirs, pytest.raises(SetterGone, match=reason):
        RemoteSetter(ours, deadline_seconds=WAIT_SECONDS).ask(ReadLimits())


def test_a_closed_client_asks_no_more(tmp_path: Path) -> None:
    with served(setter_of(tmp_path)) as ours:
        remote = RemoteSetter(ours)
        remote.close()

        with pytest.raises(SetterGone, match="was closed"):
            remote.ask(ReadLimits())


def read_reply(ours: socket.socket) -> Reply:
    with ours.makefile("rb") as stream:
        (length,) = struct.unpack(">I", stream.read(4))
        return decode_reply(stream.read(length))


def test_bytes_that_are_no_request_are_refused_and_the_next_is_served(tmp_path: Path) -> None:
    with served(setter_of(tmp_path)) as ours:
        ours.settimeout(WAIT_SECONDS)
        ours.sendall(struct.pack(">I", 4) + b"oops")
        refused = read_reply(ours)
        request = encode_request(ReadLimits())
        ours.sendall(struct.pack(">I", len(request)) + request)
        answered = read_reply(ours)

    assert isinstance(refused, Refused)
    assert isinstance(answered, LimitsRead)


def test_a_frame_that_is_too_long_is_refused_unread(tmp_path: Path) -> None:
    with served(setter_of(tmp_path)) as ours:
        ours.settimeout(WAIT_SECONDS)
        ours.sendall(struct.pack(">I", (1 << 32) - 1))

        refused = read_reply(ours)
        end = ours.recv(1)

    assert refused == Refused(reason="a message of 4294967295 bytes; at most 65536 are read")
    assert end == b""


def test_an_agent_that_hangs_up_in_the_middle_ends_the_loop(tmp_path: Path) -> None:
    with served(setter_of(tmp_path)) as ours:
        ours.sendall(struct.pack(">I", 100) + b"half")


def test_an_agent_that_does_not_wait_for_its_answer_ends_the_loop(tmp_path: Path) -> None:
    entered, leave = threading.Event(), threading.Event()

    class Slow:
        def ask(self, request: Request) -> Reply:
            entered.set()
            leave.wait(WAIT_SECONDS)
            return Refused(reason="too late")

    with served(Slow()) as ours:
        request = encode_request(ReadLimits())
        ours.sendall(struct.pack(">I", len(request)) + request)
        entered.wait(WAIT_SECONDS)
        ours.close()
        leave.set()


PROCESS = """
import socket, sys
from pathlib import Path
from esnode.drivers.limits import GpuLimits
from esnode.drivers.simulated.driver import SimulatedGpus
from esnode.setter import Journal, PowerSetter, serve_setter

folder = Path(sys.argv[1])
gpus = GpuLimits(SimulatedGpus(folder / "machine", "h100x2"))
with socket.socket(fileno=int(sys.argv[2])) as theirs:
    serve_setter(theirs.recv, theirs.sendall, PowerSetter([gpus], Journal(folder)))
"""


def test_a_process_of_its_own_sets_limits_that_outlive_it(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(tmp_path), str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
        )
    remote = RemoteSetter(ours, deadline_seconds=WAIT_SECONDS)
    try:
        listed = remote.ask(ListRanges())
        assert isinstance(listed, RangesListed)
        device = listed.ranges[0].device
        written = remote.ask(order(400, device))
        process.kill()
        process.wait(WAIT_SECONDS)
        with pytest.raises(SetterGone):
            remote.ask(ReadLimits())
    finally:
        remote.close()
        process.kill()
        process.wait(WAIT_SECONDS)

    assert isinstance(written, LimitsSet)
    assert isinstance(written.outcomes[0], LimitWritten)
    witness = SimulatedGpus(tmp_path / "machine", "h100x2")
    gpu = next(gpu for gpu in witness.discover().gpus if gpu.uuid == device)
    assert witness.read(gpu).power_limit_requested_watts == 400.0
    assert (tmp_path / "power-setter.log").stat().st_mode & 0o777 == 0o600


def test_a_setter_process_ends_with_its_agent(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(tmp_path), str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
        )

    ours.close()

    try:
        assert process.wait(WAIT_SECONDS) == 0
    finally:
        process.kill()
        process.wait(WAIT_SECONDS)
