"""What this node did by itself, and why: lines that are chained, so that a change shows."""

from esnode.audit.journal import AuditFailed, AuditJournal
from esnode.audit.reading import Entry, is_about, read_entries, verify

__all__ = ["AuditFailed", "AuditJournal", "Entry", "is_about", "read_entries", "verify"]
