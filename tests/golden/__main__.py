"""`python -m tests.golden`: write the golden bytes anew, and say which have changed."""

from tests.golden.file import PATH, all_cases, read, write


def main() -> int:
    before = read() if PATH.exists() else {}
    PATH.write_text(write(), encoding="utf-8")
    after = {case.name: case.encoded for case in all_cases()}
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            print(f"new      {name}")
        elif name not in after:
            print(f"gone     {name}")
        elif before[name] != after[name]:
            print(f"CHANGED  {name}: other agents read this otherwise")
    return 0


raise SystemExit(main())
