"""The rules that every actuator stands under, as one state machine.

Pure; `now` is handed in. Its own file because no feature may judge itself. `judge` asks in this
order, and the first no is the answer; its word is the reason in metrics:

    off            the feature is off
    settling       this agent, this machine or its clock has just begun anew
    no-evidence    a proposal without evidence, or with an unknown value
    failed-source  its source is in error
    stale          evidence older than three intervals
    in-progress    the same thing is being done
    dwell          the condition has not lasted long enough
    cooldown       the same rule did (or would have done) it to the same target just now
    no-effect      three times in a row it changed nothing: given up for this target
    (observe)      `Would`
    paused         somebody stopped it, all or this feature
    owner          another owner has lost a GPU of this node within ten minutes
    budget         the hour's budget is spent: the feature falls back to observing, with an alarm

What is observed costs nothing of the budget. A fallen feature and a given-up target stay so until
an operator resumes them, over restarts too. It must not know how anything is done, nor whether the
audit could be written: who is told `Do` writes the line first, and `cancel`s where that fails.
Source: the rules common to every actuator (modes, fresh evidence, budgets, hysteresis, effect).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from esnode.acting.words import (
    Do,
    Evidence,
    Feature,
    Mode,
    Proposal,
    Result,
    Skip,
    Ticket,
    Verdict,
    Would,
)

SETTLING_SECONDS = 60.0
INTERVALS_MAX = 3
HOUR_SECONDS = 3600.0
OWNER_SECONDS = 600.0
INEFFECTIVE_MAX = 3
GAP_SECONDS = 30.0
"""A condition that nobody proposed for so long has ended, and begins anew."""
STANDING_SECONDS = 60.0
"""How long what was last judged still counts as what would be done now."""
REMEMBERED_MAX = 1000

EVERYTHING = ""
"""The name of a pause that stops every feature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Somebody stopped enforcement."""

    reason: str
    by: str
    at_unix_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What was last said of one proposal."""

    proposal: Proposal
    verdict: Verdict
    at_seconds: float

    @property
    def word(self) -> str:
        """``do``, ``would`` or the reason why not."""
        match self.verdict:
            case Do():
                return "do"
            case Would():
                return "would"
            case Skip(reason=reason):
                return reason


@dataclass(slots=True, eq=False)
class Condition:
    """What is remembered of one rule on one target."""

    since_seconds: float
    seen_at_seconds: float
    acted_at_seconds: float | None = None
    ineffective_count: int = 0
    """In a row."""
    ticket: str = ""
    """The one in progress."""


@dataclass(slots=True, eq=False)
class Memory:
    """All that has to outlive a restart; see `keeping`."""

    pauses: dict[str, Pause] = field(default_factory=dict)
    tripped: dict[str, str] = field(default_factory=dict)
    """Feature to why it fell back to observing."""
    spent: dict[str, list[float]] = field(default_factory=dict)
    """Feature to when it acted within the last hour."""
    conditions: dict[tuple[str, str, str], Condition] = field(default_factory=dict)
    owner: str = ""
    owner_at_seconds: float | None = None
    last_number: int = 0


class Rules:
    """The rules of one node."""

    def __init__(
        self,
        features: Iterable[Feature],
        modes: Mapping[str, Mode] | None = None,
        *,
        now: float,
        memory: Memory | None = None,
    ) -> None:
        self.features = {feature.name: feature for feature in features}
        self._modes = dict(modes or {})
        self.memory = memory or Memory()
        self.actions: Counter[tuple[str, str, str]] = Counter()
        """(feature, mode, result), since this agent began."""
        self.skipped: Counter[tuple[str, str]] = Counter()
        """(feature, reason)."""
        self._standing: dict[tuple[str, str, str], Standing] = {}
        self._tickets: dict[str, Ticket] = {}
        self._quiet_until = now + SETTLING_SECONDS
        self.interrupted: tuple[tuple[str, str], ...] = ()
        """(ticket, target) of what the process before was doing: how it went, nobody can say."""
        for (_, _, target), condition in self.memory.conditions.items():
            if condition.ticket:
                self.interrupted += ((condition.ticket, target),)
                condition.ticket = ""

    # -- what people decide -----------------------------------------------------------------------

    def configured_mode(self, feature: str) -> Mode:
        """By the configuration."""
        return self._modes.get(feature, self.features[feature].default_mode)

    def mode(self, feature: str) -> Mode:
        """By the configuration, unless it fell back to observing."""
        mode = self.configured_mode(feature)
        is_fallen = mode is Mode.ENFORCE and feature in self.memory.tripped
        return Mode.OBSERVE if is_fallen else mode

    def pause_of(self, feature: str) -> Pause | None:
        """Who stopped it, if anybody did."""
        return self.memory.pauses.get(EVERYTHING) or self.memory.pauses.get(feature)

    def pause(self, feature: str, pause: Pause) -> None:
        """Stop the enforcement of a feature, or of `EVERYTHING`."""
        self.memory.pauses[feature] = pause

    def resume(self, feature: str) -> None:
        """Let it act again: ends its pause, its fall and its given-up targets."""
        self.memory.pauses.pop(feature, None)
        if feature == EVERYTHING:
            self.memory.pauses.clear()
        for name in list(self.features):
            if feature in (EVERYTHING, name):
                self.memory.tripped.pop(name, None)
        for (name, _, _), condition in self.memory.conditions.items():
            if feature in (EVERYTHING, name):
                condition.ineffective_count = 0

    def unsettle(self, now: float) -> None:
        """The clock stepped, or the machine woke up: what was measured before says nothing."""
        self._quiet_until = max(self._quiet_until, now + SETTLING_SECONDS)

    # -- judging ----------------------------------------------------------------------------------

    def judge(self, proposal: Proposal, now: float) -> Verdict:
        """Whether this may be done now.

        Raises:
            KeyError: there is no such feature.
        """
        feature = self.features[proposal.feature]
        key = (proposal.feature, proposal.rule, proposal.target)
        condition = self._touch(key, now)
        verdict = self._judge(feature, proposal, condition, now)
        if isinstance(verdict, Skip):
            self.skipped[proposal.feature, verdict.reason] += 1
        elif isinstance(verdict, Would):
            condition.acted_at_seconds = now
            self.actions[proposal.feature, "observe", "would"] += 1
        self._stand(key, Standing(proposal=proposal, verdict=verdict, at_seconds=now))
        return verdict

    def _judge(
        self, feature: Feature, proposal: Proposal, condition: Condition, now: float
    ) -> Verdict:
        mode = self.mode(feature.name)
        if mode is Mode.OFF:
            return Skip(reason="off", line=f"{feature.name} is off")
        refused = self._too_early(now) or _doubt(proposal.evidence)
        refused = refused or self._too_soon(feature, condition, now)
        if refused is not None:
            return refused
        if mode is Mode.OBSERVE:
            return Would(line=f"would {proposal.action}: {proposal.target}")
        refused = self._stopped(feature) or self._owner_limit(proposal, now)
        refused = refused or self._over_budget(feature, now)
        return refused or self._give_ticket(proposal, condition, now)

    def _too_early(self, now: float) -> Skip | None:
        left = self._quiet_until - now
        if left <= 0:
            return None
        line = f"nothing is done for another {left:.0f} s: agent, machine or clock has just begun"
        return Skip(reason="settling", line=line)

    def _too_soon(self, feature: Feature, condition: Condition, now: float) -> Skip | None:
        if condition.ticket:
            return Skip(reason="in-progress", line=f"is being done ({condition.ticket})")
        lasted = now - condition.since_seconds
        if lasted < feature.dwell_seconds:
            line = f"has lasted {lasted:.0f} s of {feature.dwell_seconds:.0f} s"
            return Skip(reason="dwell", line=line)
        acted = condition.acted_at_seconds
        if acted is not None and now - acted < feature.cooldown_seconds:
            left = feature.cooldown_seconds - (now - acted)
            return Skip(reason="cooldown", line=f"was done just now; again in {left:.0f} s")
        if condition.ineffective_count >= INEFFECTIVE_MAX:
            line = f"changed nothing {condition.ineffective_count} times: given up for this target"
            return Skip(reason="no-effect", line=line)
        return None

    def _stopped(self, feature: Feature) -> Skip | None:
        pause = self.pause_of(feature.name)
        if pause is None:
            return None
        return Skip(reason="paused", line=f"paused by {pause.by}: {pause.reason or 'no reason'}")

    def _owner_limit(self, proposal: Proposal, now: float) -> Skip | None:
        owner, since = self.memory.owner, self.memory.owner_at_seconds
        if proposal.gpu_owner is None or since is None or proposal.gpu_owner == owner:
            return None
        left = OWNER_SECONDS - (now - since)
        if left <= 0:
            return None
        line = (
            f"{owner} has lost a GPU here just now; the next owner in {left:.0f} s at the soonest"
        )
        return Skip(reason="owner", line=line)

    def _over_budget(self, feature: Feature, now: float) -> Skip | None:
        if self.remaining_count(feature.name, now) > 0:
            return None
        alarm = (
            f"{feature.name} did {feature.per_hour_count} things within an hour and wanted more: it"
            f" only observes from now on; look why, then `esnode control resume {feature.name}`"
        )
        self.memory.tripped[feature.name] = alarm
        return Skip(reason="budget", line="the hour's budget is spent", alarm=alarm)

    def _give_ticket(self, proposal: Proposal, condition: Condition, now: float) -> Do:
        self.memory.last_number += 1
        ticket = Ticket(id=f"act-{self.memory.last_number}", proposal=proposal, at_seconds=now)
        condition.ticket = ticket.id
        condition.acted_at_seconds = now
        self.memory.spent.setdefault(proposal.feature, []).append(now)
        if proposal.gpu_owner is not None:
            self.memory.owner, self.memory.owner_at_seconds = proposal.gpu_owner, now
        self._tickets[ticket.id] = ticket
        return Do(ticket=ticket)

    # -- afterwards -------------------------------------------------------------------------------

    def done(self, ticket: Ticket, result: Result, *, has_effect: bool | None, now: float) -> str:
        """Take in how it went; returns an alarm, or nothing. `has_effect` None is unknown."""
        condition = self._release(ticket)
        self.actions[ticket.proposal.feature, "enforce", result.value] += 1
        if condition is None:
            return ""
        condition.seen_at_seconds = max(condition.seen_at_seconds, now)
        if has_effect is True:
            condition.ineffective_count = 0
        elif has_effect is False or result is Result.FAILED:
            condition.ineffective_count += 1
            if condition.ineffective_count == INEFFECTIVE_MAX:
                proposal = ticket.proposal
                return (
                    f"{proposal.feature}: `{proposal.action}` changed nothing {INEFFECTIVE_MAX} "
                    f"times at {proposal.target}: given up there until `esnode control resume "
                    f"{proposal.feature}`"
                )
        return ""

    def cancel(self, ticket: Ticket) -> None:
        """It was not even begun: its audit line could not be written."""
        self._release(ticket)
        feature = ticket.proposal.feature
        spent = self.memory.spent.get(feature, [])
        if ticket.at_seconds in spent:
            spent.remove(ticket.at_seconds)
        self.skipped[feature, "no-audit"] += 1

    def _release(self, ticket: Ticket) -> Condition | None:
        self._tickets.pop(ticket.id, None)
        proposal = ticket.proposal
        condition = self.memory.conditions.get((proposal.feature, proposal.rule, proposal.target))
        if condition is not None and condition.ticket == ticket.id:
            condition.ticket = ""
        return condition

    # -- what is known ----------------------------------------------------------------------------

    def remaining_count(self, feature: str, now: float) -> int:
        """How much of the hour's budget is left."""
        spent = [at for at in self.memory.spent.get(feature, []) if now - at < HOUR_SECONDS]
        self.memory.spent[feature] = spent
        return max(0, self.features[feature].per_hour_count - len(spent))

    def standing(self, now: float, *, age_seconds: float = STANDING_SECONDS) -> list[Standing]:
        """What was last said of everything that was proposed lately, the oldest first."""
        return [one for one in self._standing.values() if now - one.at_seconds <= age_seconds]

    def _touch(self, key: tuple[str, str, str], now: float) -> Condition:
        conditions = self.memory.conditions
        condition = conditions.pop(key, None)
        if condition is None:
            condition = Condition(since_seconds=now, seen_at_seconds=now)
        elif now - condition.seen_at_seconds > GAP_SECONDS:
            condition.since_seconds = now
        condition.seen_at_seconds = now
        conditions[key] = condition  # at the end: the first are those not seen for longest
        if len(conditions) > REMEMBERED_MAX:
            forgotten = next(iter(conditions))
            del conditions[forgotten]
        return condition

    def _stand(self, key: tuple[str, str, str], standing: Standing) -> None:
        self._standing.pop(key, None)
        self._standing[key] = standing
        if len(self._standing) > REMEMBERED_MAX:
            del self._standing[next(iter(self._standing))]


def _doubt(evidence: tuple[Evidence, ...]) -> Skip | None:
    """Why this evidence is not enough to act on."""
    if not evidence:
        return Skip(reason="no-evidence", line="nothing is said of why")
    for one in evidence:
        if one.is_source_failed:
            return Skip(reason="failed-source", line=f"{one.source} is in error")
        if one.value is None:
            return Skip(reason="no-evidence", line=f"{one.what} is unknown")
        if one.age_seconds > INTERVALS_MAX * one.interval_seconds:
            return Skip(reason="stale", line=f"{one.what} is {one.age_seconds:.0f} s old")
    return None
