"""`python -m esnode` and the `esnode` command."""

from esnode.cli import main

if __name__ == "__main__":
    main()
