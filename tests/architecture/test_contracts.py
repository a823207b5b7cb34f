"""Who may import whom: import-linter's contracts, which `pyproject.toml` holds."""

import subprocess
import sys

from tests.architecture.source_files import ROOT, files, tree_of

RUN = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def test_every_import_keeps_the_contracts() -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken." in done.stdout


def test_no_test_patches_what_it_tests() -> None:
    """Wanting a mock means that an argument is missing."""
    import ast

    imported = {
        alias.name if isinstance(node, ast.Import) else node.module or ""
        for path in files("tests")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }

    assert not {name for name in imported if name.split(".")[0] in ("mock", "pytest_mock")}
    assert not {name for name in imported if name.startswith("unittest")}
