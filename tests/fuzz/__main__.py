"""`python -m tests.fuzz datagrams|frames|papers|tokens --count N --seed S [--json]`.

Exit code 0: all was refused or read as it should be, memory and members are what they were; 1: a
violation; 2: wrong usage. An exception that nobody has foreseen ends the run with its traceback,
after a line that says how to repeat it.
"""

import argparse
import json
import sys
import time

from tests.fuzz import datagrams, documents
from tests.fuzz.outcome import Outcome, Progress


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("kind", choices=("datagrams", *documents.KINDS))
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="the report as one JSON document")
    asked = parser.parse_args(arguments)
    if asked.count < 1:
        parser.error("--count: at least 1")
    outcome = run(asked.kind, asked.count, asked.seed)
    document = outcome.document()
    if asked.json:
        print(json.dumps(document))
    else:
        print("\n".join(f"{name}: {value}" for name, value in document.items()))
    return 0 if outcome.is_ok else 1


def run(kind: str, count: int, seed: int) -> Outcome:
    """One run of a kind, with a progress line where somebody looks."""
    progress = _progress_line(sys.stderr.isatty())
    try:
        if kind == "datagrams":
            return datagrams.run(count, seed, progress)
        return documents.run(kind, count, seed, progress)
    except Exception:
        print(f"\nafter that: python -m tests.fuzz {kind} --seed {seed}", file=sys.stderr)
        raise
    finally:
        progress(count, count)


def _progress_line(is_wanted: bool) -> Progress:
    started = time.perf_counter()

    def show(done: int, count: int) -> None:
        if is_wanted:
            passed = time.perf_counter() - started
            end = "\n" if done == count else ""
            print(f"\r{done} of {count}, {passed:.0f} s ", end=end, file=sys.stderr, flush=True)

    return show


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
