"""Changing keys in a file that belongs to its operator."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from esnode.config import ConfigError, load
from esnode.config.edit import set_keys
from tests.config_files import load_all, write

OPERATORS_FILE = """\
# The rack by the door.
scrape_interval = "5s"  # as agreed

enable_gpu = true

[orchestrator]
# Ask Ada before changing this.
enabled = false

[tags]
row = "7"
"""


def problems_of_setting(file: Path, **changes: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        set_keys(file, changes)
    return [problem.replace(f"{file.parent}/", "") for problem in caught.value.problems]


def test_comments_order_and_everything_else_stay_as_they_are(tmp_path: Path) -> None:
    file = write(tmp_path, OPERATORS_FILE)

    set_keys(file, {"scrape_interval": "1s", "orchestrator.token": "s3", "enable_cpu": "off"})

    assert (
        file.read_text()
        == """\
# The rack by the door.
scrape_interval = "1s"  # as agreed

enable_gpu = true
enable_cpu = false

[orchestrator]
# Ask Ada before changing this.
enabled = false
token = "s3"

[tags]
row = "7"
"""
    )


@pytest.mark.parametrize(
    ("key", "text", "line"),
    [
        pytest.param("enable_cpu", "no", "enable_cpu = false", id="boolean"),
        pytest.param("gpu_process_count", "3", "gpu_process_count = 3", id="count"),
        pytest.param(
            "node_power_envelope_watts", "6500", "node_power_envelope_watts = 6500", id="watts"
        ),
        pytest.param(
            "degradation_disk_busy_ratio", "0.9", "degradation_disk_busy_ratio = 0.9", id="ratio"
        ),
        pytest.param(
            "scrape_interval", " 500ms ", 'scrape_interval = "500ms"', id="duration-with-its-unit"
        ),
        pytest.param("listen_address", "[::1]:9200", 'listen_address = "[::1]:9200"', id="address"),
        pytest.param(
            "metric_aliases",
            "dcgm,ESNODE-CORE",
            'metric_aliases = ["dcgm", "esnode-core"]',
            id="list",
        ),
        pytest.param("metric_aliases", "", "metric_aliases = []", id="empty-list"),
        pytest.param("log_level", "WARN", 'log_level = "warn"', id="word"),
        pytest.param("state_dir", 'a "b"\\', "state_dir = 'a \"b\"\\'", id="awkward-text"),
    ],
)
def test_a_value_is_written_as_the_file_would_hold_it(
    tmp_path: Path, key: str, text: str, line: str
) -> None:
    file = tmp_path / "esnode.toml"

    set_keys(file, {key: text})

    written = file.read_text().strip()
    assert written in (line, line.replace("'a \"b\"\\'", '"a \\"b\\"\\\\"'))
    load_all(tmp_path, file=written)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("env=prod,row=7", (("env", "prod"), ("row", "7")), id="pairs"),
        pytest.param("", (), id="none"),
    ],
)
def test_tags_are_replaced_as_a_whole(
    tmp_path: Path, text: str, expected: tuple[tuple[str, str], ...]
) -> None:
    file = write(tmp_path, OPERATORS_FILE)

    set_keys(file, {"tags": text})
    set_keys(file, {"enable_cpu": "false"})

    loaded = load_all(tmp_path, file=file.read_text())
    assert loaded.config.tags == expected
    assert loaded.config.enable_cpu is False


def test_a_key_in_its_older_spelling_is_replaced_by_the_present_one(tmp_path: Path) -> None:
    file = write(tmp_path, "scrape_interval_seconds = 5\nenable_cpu = true\n")

    set_keys(file, {"scrape_interval": "2s"})

    assert file.read_text() == 'enable_cpu = true\nscrape_interval = "2s"\n'


def test_the_file_keeps_its_mode_and_a_new_one_is_for_its_owner_only(tmp_path: Path) -> None:
    old = write(tmp_path, "")
    old.chmod(0o644)
    new = tmp_path / "new.toml"

    set_keys(old, {"enable_cpu": "false"})
    set_keys(new, {"enable_cpu": "false"})

    assert stat.S_IMODE(old.stat().st_mode) == 0o644
    assert stat.S_IMODE(new.stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_file_keeps_its_owner_so_that_the_agent_can_still_read_it(tmp_path: Path) -> None:
    file = write(tmp_path, "")
    os.chown(file, 12345, 12346)

    set_keys(file, {"enable_cpu": "false"})

    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 12346)


def test_a_link_stays_a_link_and_its_file_is_changed(tmp_path: Path) -> None:
    real = tmp_path / "real" / "agent.toml"
    real.parent.mkdir()
    real.write_text("enable_cpu = true\n")
    link = tmp_path / "esnode.toml"
    link.symlink_to(real)

    set_keys(link, {"enable_cpu": "false"})

    assert link.is_symlink()
    assert real.read_text() == "enable_cpu = false\n"


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        pytest.param(
            "scrape_intervall",
            "1s",
            "unknown key 'scrape_intervall'; did you mean scrape_interval?",
            id="unknown-key",
        ),
        pytest.param(
            "scrape_interval_seconds",
            "1",
            "scrape_interval_seconds: is an older name; set scrape_interval instead",
            id="older-name",
        ),
        pytest.param(
            "scrape_interval",
            "1",
            "scrape_interval: '1' has no unit; write e.g. 5s, 250ms, 2m, 1h",
            id="bad-value",
        ),
        pytest.param(
            "orchestrator.token", " ", "orchestrator.token: the value is empty", id="secret"
        ),
        pytest.param(
            "app_metrics_url",
            "ftp://u:pw@h/",
            "app_metrics_url: 'ftp://********@h/' is not an http or https URL, "
            "e.g. http://127.0.0.1:8000/metrics",
            id="url-with-a-password",
        ),
        pytest.param(
            "tls_key_path",
            "key.pem",
            "tls_certificate_path: is not set; HTTPS needs a certificate and its key",
            id="a-value-that-is-wrong-only-beside-the-others",
        ),
    ],
)
def test_what_is_refused_leaves_the_file_and_its_folder_untouched(
    tmp_path: Path, key: str, text: str, expected: str
) -> None:
    file = write(tmp_path, OPERATORS_FILE)

    problems = problems_of_setting(file, **{"enable_cpu": "false", key: text})

    assert problems == [expected]
    assert file.read_text() == OPERATORS_FILE
    assert list(tmp_path.iterdir()) == [file]


def test_a_mistake_that_the_file_already_holds_is_told_of_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, "log_level = 'loud'\n")

    (problem,) = problems_of_setting(file, enable_cpu="false")

    assert problem.startswith("esnode.toml:1: log_level: 'loud' is not one of ")


def test_a_table_written_in_one_line_is_not_taken_apart(tmp_path: Path) -> None:
    file = write(tmp_path, "orchestrator = 7\n")

    problems = problems_of_setting(file, **{"orchestrator.token": "x"})

    assert problems == ["orchestrator: is not a table in this file; make it one first"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"a = ", "esnode.toml: cannot be edited: ", id="not-toml"),
        pytest.param(b"\xff", "esnode.toml: cannot be edited: ", id="not-utf-8"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    (problem,) = problems_of_setting(write(tmp_path, content), enable_cpu="false")

    assert problem.startswith(expected)
    assert "\n" not in problem


def test_a_folder_in_place_of_the_file_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "esnode.toml"
    folder.mkdir()

    assert problems_of_setting(folder, enable_cpu="false") == [
        "esnode.toml: cannot be edited: it is not a regular file"
    ]


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "nowhere" / "esnode.toml"

    assert problems_of_setting(file, enable_cpu="false") == [
        "esnode.toml: cannot be written: No such file or directory"
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into every folder")
def test_a_folder_without_permission_is_one_line(tmp_path: Path) -> None:
    file = write(tmp_path, "")
    tmp_path.chmod(0o500)
    try:
        assert problems_of_setting(file, enable_cpu="false") == [
            "esnode.toml: cannot be written: Permission denied"
        ]
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "it is not a regular file"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
    ],
    ids=["pipe", "link-to-itself"],
)
def test_what_is_no_file_is_refused_at_once(
    tmp_path: Path, make: Callable[[Path], None], why: str
) -> None:
    file = tmp_path / "esnode.toml"
    make(file)

    assert problems_of_setting(file, scrape_interval="1s") == [
        f"esnode.toml: cannot be edited: {why}"
    ]


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    file = write(tmp_path, b"\xef\xbb\xbfscrape_interval = '1s'\n")
    assert load(flags={}, environment={}, file=file).config.scrape_interval == 1.0

    set_keys(file, {"scrape_interval": "2s"})

    assert file.read_text(encoding="utf-8") == 'scrape_interval = "2s"\n'
