"""`python -m tests.benchmarks [--quick] [--only NAME]`."""

import argparse
import sys
from collections.abc import Callable, Iterator

from tests.benchmarks import idle, rendering, scrapes, starting
from tests.benchmarks.measuring import Row, machine_line, print_table

PARTS: dict[str, Callable[..., Iterator[Row]]] = {
    "start": starting.measure,
    "render": rendering.measure,
    "scrape": scrapes.measure,
    "idle": idle.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter loops, rougher figures")
    parser.add_argument(
        "--only", action="append", choices=list(PARTS), help="only this part (may be repeated)"
    )
    options = parser.parse_args()
    print(machine_line())
    rows: list[Row] = []
    for name, measure in PARTS.items():
        if options.only and name not in options.only:
            continue
        for row in measure(is_quick=options.quick):
            rows.append(row)
            print(f"{name}: {row.what}: {row.ours:.{row.digits}f} {row.unit}", file=sys.stderr)
    print(machine_line())
    print()
    print_table(rows)


if __name__ == "__main__":
    main()
