"""Every reason for which a certificate, an invite, an admission or a record is not accepted.

Its own file so that the reasons are one list, each tested by name. A refusal is an expected outcome
and therefore a value; the caller counts it under `rule` and shows `line`.
"""

from dataclasses import dataclass
from enum import StrEnum


class Rule(StrEnum):
    """The rule that was not kept. The values are written in metrics and logs: never reuse one."""

    # Of the path, as any reader of X.509 judges it (RFC 5280, section 6).
    VERSION = "version"
    KEY_ALGORITHM = "key-algorithm"
    SIGNATURE_ALGORITHM = "signature-algorithm"
    SIGNATURE = "signature"
    ISSUER_NAME = "issuer-name"
    KEY_IDENTIFIER = "key-identifier"
    CA_FLAG = "ca-flag"
    PATH_LENGTH = "path-length"
    KEY_USAGE = "key-usage"
    NAME_CONSTRAINT = "name-constraint"
    UNSUPPORTED_CONSTRAINT = "unsupported-constraint"
    UNKNOWN_CRITICAL_EXTENSION = "unknown-critical-extension"
    CHAIN_LENGTH = "chain-length"

    # Of the chain, as only we judge it.
    FOREIGN_AUTHORITY = "foreign-authority"
    PROFILE = "profile"
    KIND = "kind"
    TERMS = "terms"
    NAME = "name"
    RACK = "rack"
    NAME_PREFIX = "name-prefix"
    ROLES = "roles"
    LIFETIME = "lifetime"

    # Of membership.
    REVOKED = "revoked"
    REMOVED = "removed"
    FOREIGN_CLUSTER = "foreign-cluster"
    OTHER_SUBJECT = "other-subject"
    ADMISSION_ENDED = "admission-ended"
    USES_SPENT = "uses-spent"
    AWAITS_APPROVAL = "awaits-approval"
    NOT_ADMITTED = "not-admitted"
    UNKNOWN_ADMITTER = "unknown-admitter"
    SELF_ADMISSION = "self-admission"

    # Of operator records.
    UNKNOWN_OPERATOR = "unknown-operator"
    REVOKED_OPERATOR = "revoked-operator"
    AUTHORITY_ONLY = "authority-only"
    CHAIN_ORDER = "chain-order"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """What was not accepted, by which rule, in one line for people."""

    rule: Rule
    line: str
