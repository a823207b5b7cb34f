"""What members remember of this node's account: how an old copy of a ledger is found out.

Its own file because no disk can tell by itself that it was set back. Whoever was given shares keeps
the number of the last transfer, on its own disk; more than our book has ever written means that the
book here is an old copy, or that the other one lies. The rules:

1. A life with a book of a life before asks all members what they remember. Until all that are
   alive have answered nothing is given and no cap is raised. An agent that has just started meets
   nobody for some seconds, so the time for answers begins with the first whom it hears: a life
   that hears nobody holds what is in force, since nobody can tell it that its book is an old copy.
   Whoever is heard later is asked then.
2. Each is a witness about its own book alone, and says so under its own signature. What one says
   before it has confirmed our numbers in this life is taken seriously at once: a set-back disk has
   often traded with one neighbour only, and the watts are in force there. Nothing is spent, for as
   long as it says so. It is not written down: a liar that is retired, or says otherwise, has done
   no harm that lasts.
3. Whoever has confirmed our numbers in this life and then claims more contradicts itself, since
   what was sent afterwards is in our memory. That is told, we trade with it no more, and it lowers
   nobody. Only if gossip finds that memory and disk were set back together (`doubt`) all are asked
   again, and rule 2 holds.
4. Two witnesses under rule 2 are believed for good: the book is quarantined on disk.

It must not know hardware, nor how a transfer is made.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from cluster.ids import NodeId
from cluster.rack.ledger.account import Account
from cluster.rack.ledger.messages import Asked, Recalled
from cluster.rack.rows import Credit, Row

ASK_SECONDS = 0.25
ASK_SECONDS_MIN = 1.0
"""In which who is alive has told a row, and is waited for."""
ASK_SECONDS_MAX = 3.0
DOUBTFUL_ASK_SECONDS = 1.0
WITNESSES = 2
_HOLD = "witness"


class Recollections:
    """What others remember, and what this node remembers of others' lives."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._began_seconds: float | None = None
        """When this life began to ask; None while it does not."""
        self._met_seconds: float | None = None
        """When somebody was heard first."""
        self._due_seconds = 0.0
        self._heard: dict[NodeId, None] = {}
        self._confirmed: dict[NodeId, None] = {}
        self._is_fresh = False
        """No other life has ever written in this epoch: there is nothing to be confirmed."""
        self._was_frozen = False
        """Whether the last word of the epoch was said before there was a reason to ask."""
        self._claims: dict[NodeId, str] = {}
        self._distrusted: dict[NodeId, None] = {}
        self._gone: tuple[NodeId, ...] = ()
        self._lives: dict[NodeId, int] = {}

    # -- asking -----------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Another life begins, with this book."""
        if self._account.book.is_open:
            self.doubt(now)

    def opened(self, now: float) -> None:
        """The account was opened in this life; in the first of all there is nobody to ask."""
        if self._account.book.incarnation > 1:
            self.doubt(now)
        else:
            self._is_fresh = True

    def switched(self, now: float) -> None:
        """A new epoch: its numbers begin in this life, if this life has said the last word.

        Else a life before may have been in it already, and was forgotten.
        """
        was_frozen = self._was_frozen
        self._claims.clear()
        self._judge()
        self.doubt(now)
        if not was_frozen:
            self._is_fresh, self._began_seconds = True, None

    def doubt(self, now: float) -> None:
        """Ask everybody, and believe nothing that was confirmed before."""
        self._is_fresh = False
        self._was_frozen = self._account.ahead.frozen is not None
        self._confirmed.clear()
        self._distrusted.clear()
        self._heard.clear()
        self._began_seconds = self._due_seconds = now
        self._met_seconds = None

    @property
    def is_asking(self) -> bool:
        """Whether this life still waits for what others remember."""
        return self._began_seconds is not None

    @property
    def deadline(self) -> float | None:
        """When somebody is to be asked again."""
        account = self._account
        is_written = account.ahead.incarnation == account.book.incarnation
        is_wanted = self.is_asking or self.claims or self._late()
        if account.ahead.quarantine or not is_written or not is_wanted:
            return None
        return self._due_seconds

    def advance(self, row: Callable[[], Row], now: float) -> None:
        """Ask who has not answered; stop waiting for those who seem to be gone."""
        account = self._account
        missing = self._missing()
        if self.is_asking and (not missing or self._has_waited(missing, now)):
            self._began_seconds = None
        due = self.deadline
        if due is None or now < due:
            return
        asked = missing if self.is_asking else tuple(dict.fromkeys((*self.claims, *self._late())))
        wait_seconds = ASK_SECONDS if self.is_asking else DOUBTFUL_ASK_SECONDS
        self._due_seconds = now + wait_seconds
        account.say(asked, Asked(life=account.book.incarnation, row=row()))

    def _has_waited(self, missing: tuple[NodeId, ...], now: float) -> bool:
        """Whether nobody else can be expected to answer."""
        if self._met_seconds is None and self._heard:
            self._met_seconds = now
        if self._met_seconds is None:
            return False
        waited_seconds = now - self._met_seconds
        is_anybody_coming = waited_seconds < ASK_SECONDS_MIN or any(
            one in self._heard for one in missing
        )
        return not is_anybody_coming or waited_seconds >= ASK_SECONDS_MAX

    def _late(self) -> tuple[NodeId, ...]:
        """Who was heard, and has not said yet what it remembers, in a life that had to ask."""
        if self._is_fresh or self._account.book.incarnation <= 1:
            return ()
        return tuple(
            one for one in self._missing() if one in self._heard and one not in self._distrusted
        )

    def _missing(self) -> tuple[NodeId, ...]:
        book = self._account.book
        known = (book.node_id, *self._confirmed, *self._gone)
        return tuple(one for one in book.members if one not in known)

    # -- what others say --------------------------------------------------------------------------

    def hear_row(self, row: Row) -> None:
        """A row: its node lives, and may say what it has had from us last."""
        account = self._account
        self._heard[row.node_id] = None
        self._lives[row.node_id] = max(row.life, self._lives.get(row.node_id, 0))
        if row.epoch != account.book.epoch:
            return
        for credit in row.credits:
            if credit.giver == account.book.node_id:
                self.hear_credit(row.node_id, credit.sequence)

    def hear_asked(self, asker: NodeId, asked: Asked, row: Row) -> None:
        """Somebody asks: tell what it has given, and of which later life of it we have heard."""
        account = self._account
        book = account.book
        if book.epoch is None or asker not in book.members:
            return
        number = 0 if account.is_deaf else account.ahead.last_in.get(asker, 0)
        number = max(number, book.last_in.get(asker, 0))
        told = replace(row, credits=(Credit(giver=asker, sequence=number),))
        known_life = self._lives.get(asker, 0)
        recalled = Recalled(
            epoch=book.epoch, life=asked.life, known_life=known_life, sequence=number, row=told
        )
        account.say((asker,), recalled)

    def hear_recalled(self, witness: NodeId, recalled: Recalled) -> None:
        """An answer: it confirms our numbers, or it does not."""
        account = self._account
        book = account.book
        if witness not in book.members or recalled.life != book.incarnation:
            return
        if recalled.known_life > book.incarnation:
            self._claim(
                witness, f"a row of life {recalled.known_life}, and this is {recalled.life}"
            )
        elif self._has_forgotten_its_word(recalled):
            number = recalled.epoch.number
            self._claim(witness, f"word of this node in epoch {number}, and here is none")
        elif recalled.epoch != book.epoch or account.is_deaf:
            self._confirmed[witness] = None  # numbers of another epoch say nothing
        elif recalled.sequence <= account.ahead.out_sequences.get(witness, 0):
            self._confirmed[witness] = None
            if self._claims.pop(witness, None) is not None:
                self._judge()
        else:
            self.hear_credit(witness, recalled.sequence)

    def _has_forgotten_its_word(self, recalled: Recalled) -> bool:
        """Whether others are in a later epoch, and this node was, which has forgotten it.

        Each takes the word of every node that stays. Whoever has said its word has not changed
        since, and is only behind, unless it has already given, or said a word, in a later one.
        """
        own, frozen = self._account.book.epoch, self._account.ahead.frozen
        ahead = 0 if own is None else recalled.epoch.number - own.number
        return ahead > 1 or (ahead == 1 and (frozen is None or recalled.sequence > 0))

    def hear_credit(self, witness: NodeId, sequence: int) -> None:
        """Somebody says what it has had from us last."""
        account = self._account
        known = account.ahead.out_sequences.get(witness, 0)
        if sequence > known and witness in account.book.members and not account.is_deaf:
            self._claim(witness, f"transfer {sequence} of this node, and the last here is {known}")

    def hear_gap(self, giver: NodeId, sequence: int) -> None:
        """Somebody gives under a number that skips: it has had receipts that we do not know of."""
        last = self._account.ahead.last_in.get(giver, 0)
        self._claim(giver, f"a receipt for transfer {sequence - 1}, and the last here is {last}")

    def _claim(self, witness: NodeId, what: str) -> None:
        account = self._account
        if witness in self._distrusted:
            return
        if self._is_fresh or witness in self._confirmed:
            self._distrusted[witness] = None
            account.alarm(
                f"{account.book.currency}: {witness.short} says that it has had {what}, which "
                "cannot be in this life: nothing is traded with it; retire it if its ledger is an "
                "old copy, or if it is not to be trusted"
            )
            return
        self._claims.setdefault(witness, what)
        self._judge()

    # -- what follows -----------------------------------------------------------------------------

    def trusts(self, node_id: NodeId) -> bool:
        """Whether there can be trade with it."""
        return node_id not in self._distrusted

    def retire(self, gone: Iterable[NodeId]) -> None:
        """Operators have signed that these are off: what they said counts no more."""
        gone = tuple(gone)
        if gone != self._gone:
            self._gone = gone
            self._judge()

    @property
    def claims(self) -> Mapping[NodeId, str]:
        """Who says that this book is an old copy."""
        return {one: what for one, what in self._claims.items() if one not in self._gone}

    def _judge(self) -> None:
        account, claims = self._account, self.claims
        names = " and ".join(sorted(one.short for one in claims))
        if not claims:
            account.release(_HOLD)
        elif len(claims) < WITNESSES:
            what = next(iter(claims.values()))
            account.hold(
                _HOLD,
                f"{names} has had {what}: either this ledger is an old copy, or {names} is not to "
                "be believed; retire the one that is wrong",
            )
        else:
            account.quarantine(f"{names} remember more than the book here: it is an old copy")
