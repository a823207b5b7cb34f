"""Everything else that strangers can hand in: frames and papers of streams, operators' records,
tokens. Whatever the bytes, there is a value or one error, and nothing is believed that was not
signed.
"""

import random
import time
from collections import Counter
from collections.abc import Callable

from cluster.enrolment import InviteWish, issue_invite, open_invite
from cluster.errors import Malformed, PeerFault
from cluster.identity.operator_records import NodeRevoked
from cluster.identity.tokens import parse_token, print_token
from cluster.ids import NodeId
from cluster.papers import decode_papers, decode_request, encode_paper
from cluster.rack.report import decode_report
from cluster.rack.wire import decode_node_state, decode_rack_state
from cluster.stream_frames import FrameReader, decode_frame
from tests.fuzz.mutation import Mutator
from tests.fuzz.outcome import GROWTH_BYTES_MAX, WARM_UP, Outcome, Progress, resident_bytes
from tests.golden.stream_cases import stream_cases
from tests.identities import DAY, R01, Lab
from tests.rosters import Club

Step = Callable[[], str]
"""One thing handed in, and what came of it."""


def frames(seed: int) -> Step:
    """Streams of whole, spoiled and joined frames, cut anywhere."""
    chance = random.Random(f"frames {seed}")
    spoil = Mutator(chance)
    good = [case.encoded for case in stream_cases() if case.name.startswith("frame-")]
    inner = [case.encoded for case in stream_cases() if not case.name.startswith("frame-")]
    readers: tuple[Callable[[bytes], object], ...] = (
        decode_request,
        decode_report,
        decode_node_state,
        decode_rack_state,
        lambda data: decode_papers([data]),
    )

    def read_stream() -> str:
        stream = b"".join(
            spoil.spoil(one) if chance.random() < 0.5 else one
            for one in chance.choices(good, k=chance.randint(1, 4))
        )
        reader = FrameReader()
        while stream:
            size = chance.randint(1, len(stream))
            reader.feed(stream[:size])
            stream = stream[size:]
            while (document := reader.next_document()) is not None:
                decode_frame(document)
        return "cut" if reader.is_within_frame else "read"

    def read_inner() -> str:
        data = spoil.spoil(chance.choice(inner))
        chance.choice(readers)(data)
        return "read"

    def step() -> str:
        try:
            return read_stream() if chance.random() < 0.5 else read_inner()
        except Malformed:
            return "malformed"

    return step


def papers(seed: int) -> Step:
    """Certificates, admissions and operators' records, spoiled, into a roster of a member."""
    chance = random.Random(f"papers {seed}")
    spoil = Mutator(chance)
    club = Club(seed)
    for number in range(3):
        club.admit(club.newcomer(f"m{number}"))
    operators = club.introduce_operator()
    club.roster.learn([operators, club.say(NodeRevoked(node_id=NodeId(bytes(16)), note="gone"))])
    other = Club(seed + 1)
    other.admit(other.newcomer("stranger"))
    foreign = [*other.roster.give(()), encode_paper(other.introduce_operator())]
    good = [*club.roster.give(()), *foreign]
    before = (club.roster.identities(), club.roster.withdrawals(), club.roster.log)

    def step() -> str:
        pick = chance.random()
        data = spoil.join(*chance.choices(good, k=2)) if pick < 0.2 else chance.choice(good)
        learned = club.roster.learn(decode_papers([spoil.spoil(data) if pick < 0.9 else data]))
        after = (club.roster.identities(), club.roster.withdrawals(), club.roster.log)
        if after != before:
            return "VIOLATION: somebody was believed who signed nothing"
        return "kept" if learned.papers else "passed-over"

    return step


def tokens(seed: int) -> Step:
    """Invite tokens as they come out of mail, chat and dirty clipboards."""
    chance = random.Random(f"tokens {seed}")
    spoil = Mutator(chance)
    lab = Lab(seed)
    wish = InviteWish(rack=R01, ttl_seconds=DAY)
    token = issue_invite(
        lab.keys,
        wish,
        seeds=("10.0.0.1:7947",),
        now_unix_seconds=lab.now,
        random_bytes=lab.random_bytes,
    )
    printed = print_token(token)

    def step() -> str:
        text = spoil.spoil(printed.encode()).decode("utf-8", "replace")
        try:
            opened = open_invite(parse_token(text))
        except (Malformed, PeerFault):
            return "refused"
        if opened.seeds != token.seeds or opened.authority.cluster_id != (
            lab.keys.authority.cluster_id
        ):
            return "VIOLATION: another token than was printed"
        return "opened"

    return step


KINDS: dict[str, Callable[[int], Step]] = {"frames": frames, "papers": papers, "tokens": tokens}


def run(kind: str, count: int, seed: int, progress: Progress) -> Outcome:
    """The whole run."""
    outcome = Outcome(kind=kind, seed=seed)
    step = KINDS[kind](seed)
    came: Counter[str] = Counter()
    started = time.perf_counter()
    warm_bytes = resident_bytes()
    for number in range(count):
        if number == int(count * WARM_UP):
            warm_bytes = resident_bytes()
        came[step()] += 1
        outcome.count = number + 1
        if number % 10_000 == 0:
            progress(number, count)
    growth_bytes = resident_bytes() - warm_bytes
    outcome.wall_seconds = time.perf_counter() - started
    outcome.violations = [name for name in came if name.startswith("VIOLATION")]
    if growth_bytes > GROWTH_BYTES_MAX:
        outcome.violations.append(f"memory grew by {growth_bytes} bytes after the warm-up")
    outcome.figures = {"memory_growth_bytes": growth_bytes, "outcomes": dict(came)}
    return outcome
