"""Fixtures of all tiers. Large recorded trees are used where they are present."""

import tarfile
from pathlib import Path

import pytest

SHARED_FIXTURES = Path(__file__).resolve().parents[2] / "shared" / "fixtures"
"""Recorded `/proc`, `/sys` and GPU captures. They lie beside the checkout, not in it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the long soaks")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    skip = pytest.mark.skip(reason="a long soak: run with --slow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)


def _unpack(archive: str, into: Path) -> Path:
    source = SHARED_FIXTURES / archive
    if not source.is_file():
        pytest.skip(f"no {source.name}: the recorded trees are not beside this checkout")
    with tarfile.open(source) as tar:
        # The recorded trees hold absolute symbolic links, which a stricter filter refuses.
        tar.extraction_filter = tarfile.fully_trusted_filter
        tar.extractall(into)
    return into


@pytest.fixture(scope="session")
def linux_host_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`proc/` and `sys/` of real hosts (Apache-2.0, prometheus/node_exporter)."""
    return _unpack("linux-host.tar.gz", tmp_path_factory.mktemp("linux-host"))


@pytest.fixture(scope="session")
def power_meters_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """hwmon power and powercap trees (Apache-2.0, kepler)."""
    return _unpack("power-meters.tar.gz", tmp_path_factory.mktemp("power-meters"))
