"""What an entry of the ledger means, for whoever reads the audit.

Its own file because the words are read long after, by people and tools: they are only added to. It
must not know who writes them.
"""

from cluster.rack.ledger.book import (
    BudgetTaken,
    Complied,
    Credited,
    Debited,
    Entry,
    Froze,
    MemberAdded,
    Opened,
    Quarantined,
    Switched,
)


def describe_entry(entry: Entry) -> tuple[str, dict[str, object]] | None:
    """The kind and the fields of an entry in the audit; None for those that only keep the books."""
    match entry:
        case Debited(to=to, sequence=sequence, shares=shares):
            return "given", {"to": to.hex(), "sequence": sequence, "shares": shares}
        case Credited(giver=giver, sequence=sequence, shares=shares):
            return "taken", {"giver": giver.hex(), "sequence": sequence, "shares": shares}
        case BudgetTaken(version=version):
            return "budget", {"version": version.sequence, "shared_watts": version.watts}
        case Complied(version=version):
            return "complied", {"version": version.sequence, "shared_watts": version.watts}
        case Opened(epoch=epoch, own_shares=shares):
            return "opened", {"epoch": list(epoch), "shares": shares}
        case Switched(epoch=epoch, own_shares=shares):
            return "epoch", {"epoch": list(epoch), "shares": shares}
        case MemberAdded(node_id=node_id):
            return "joined", {"node": node_id.hex()}
        case Froze(frozen=frozen):
            return "closing", {"rank": frozen.rank}
        case Quarantined(reason=reason):
            return "quarantined", {"reason": reason}
        case _:
            return None
