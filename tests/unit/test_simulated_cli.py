import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from esnode.cli.simulated import simulated
from esnode.drivers.simulated.driver import SimulatedGpus
from esnode.drivers.simulated.machine import Gpu, LimitSet
from esnode.drivers.simulated.store import Store
from tests.simulated_world import happen


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "machine.json"
    SimulatedGpus(path, "h100x2+l40sx1").discover()
    return path


def run(path: Path, *words: str) -> Result:
    command, *arguments = words
    return CliRunner().invoke(simulated, [command, "--path", str(path), *arguments])


def gpus(path: Path) -> tuple[Gpu, ...]:
    return Store(path).read().gpus


def test_a_load_is_put_on_all_gpus_or_on_one_by_index_or_uuid(path: Path) -> None:
    first, second, third = gpus(path)

    for words in (("all", "0.5"), ("1", "0.75"), (third.uuid[:12], "1", "--kind", "decode")):
        assert run(path, "load", *words).exit_code == 0

    loads = [(gpu.load.ratio, gpu.load.kind) for gpu in gpus(path)]
    assert loads == [(0.5, "compute"), (0.75, "compute"), (1.0, "decode")]
    assert (first.index, second.index) == (0, 1)


def test_heat_warms_the_air_or_spoils_a_cooler(path: Path) -> None:
    assert run(path, "heat", "--ambient", "45").exit_code == 0
    assert run(path, "heat", "1", "--cooling-ratio", "0.6").exit_code == 0
    assert run(path, "heat", "--cooling-ratio", "0.9", "--ambient", "-5").exit_code == 0

    assert Store(path).read().inlet_celsius == -5
    assert [gpu.cooling_ratio for gpu in gpus(path)] == [0.9] * 3


@pytest.mark.parametrize(
    "words",
    [("lost",), ("hang",), ("refuse-limit",), ("sensor-stuck",)],
    ids=lambda words: words[0],
)
def test_a_standing_fault_is_injected_and_cleared(path: Path, words: tuple[str, ...]) -> None:
    assert run(path, "fault", "0", *words).exit_code == 0
    assert gpus(path)[0].faults == words

    assert run(path, "fault", "all", "clear").exit_code == 0
    assert gpus(path)[0].faults == ()


def test_counted_faults_take_their_number(path: Path) -> None:
    assert run(path, "fault", "0", "ecc", "corrected", "12").exit_code == 0
    assert run(path, "fault", "0", "ecc", "uncorrected", "2").exit_code == 0
    assert run(path, "fault", "0", "xid", "63").exit_code == 0

    gpu = gpus(path)[0]
    assert (gpu.ecc_corrected_volatile_total, gpu.ecc_uncorrected_volatile_total) == (12, 2)
    assert [xid.code for xid in gpu.xids] == [63]


def test_forget_limit_puts_the_default_back(path: Path) -> None:
    happen(Store(path), LimitSet(gpu=gpus(path)[0].uuid, watts=300))

    assert run(path, "fault", "0", "forget-limit").exit_code == 0

    assert gpus(path)[0].limit_in_force_watts == 700


def test_a_reboot_loses_limits_unless_told_to_keep_them(path: Path) -> None:
    happen(Store(path), LimitSet(gpu=gpus(path)[0].uuid, watts=300))

    assert run(path, "reboot", "--keep-limits").exit_code == 0
    kept = gpus(path)[0].limit_in_force_watts
    assert run(path, "reboot").exit_code == 0
    still_kept = gpus(path)[0].limit_in_force_watts
    assert run(path, "reboot", "--lose-limits").exit_code == 0

    assert (kept, still_kept, gpus(path)[0].limit_in_force_watts) == (300, 300, 700)


def test_show_is_a_table_of_what_each_gpu_does(path: Path) -> None:
    run(path, "load", "0", "1.0")
    run(path, "fault", "1", "hang")
    happen(Store(path), LimitSet(gpu=gpus(path)[0].uuid, watts=300))

    head, columns, *rows = run(path, "show").output.splitlines()

    assert head.startswith("simulated h100x2+l40sx1: boot 1, up 0 s, inlet 30 C, chassis ")
    assert columns.split() == [
        "GPU", "NAME", "LOAD", "DEMAND", "DRAW", "CAP", "REQUESTED", "PENDING", "TEMP", "THROTTLE",
        "FAULTS",
    ]  # fmt: skip
    assert len(rows) == 3
    assert "1.00 compute" in rows[0]
    assert "700 W      300 W  300 W in 1." in rows[0]
    assert rows[1].endswith("gpu_idle  hang")
    assert "NVIDIA L40S" in rows[2]


def test_show_as_json_names_its_schema_and_holds_the_truth(path: Path) -> None:
    run(path, "load", "all", "0.5", "--kind", "mixed")

    document = json.loads(run(path, "show", "--json").output)

    assert document["schema"] == "esnode.simulated.show/1"
    assert document["spec"] == "h100x2+l40sx1"
    assert document["gpus"][0]["load"] == {
        "ratio": 0.5, "kind": "mixed", "owner_pid": None, "memory_bytes": None,
    }  # fmt: skip
    assert document["gpus"][2]["cap_in_force_watts"] == 350
    assert document["chassis_power_watts"] > sum(gpu["draw_watts"] for gpu in document["gpus"])


def test_history_tells_when_who_and_why(path: Path) -> None:
    run(path, "load", "1", "0.5")
    run(path, "heat", "--ambient", "40")

    rows = run(path, "history").output.splitlines()
    only_first = run(path, "history", "--gpu", "0").output.splitlines()
    document = json.loads(run(path, "history", "--json").output)

    assert rows[0].split()[:3] == ["#", "TIME", "(UTC)"]
    assert "esnode simulated load 1 0.5 --kind compute" in rows[2]
    assert rows[2].endswith("load ratio=0.5 kind=compute")
    assert len(rows) == 4
    assert [line.split()[0] for line in only_first] == ["#", "1", "3"]
    assert document["schema"] == "esnode.simulated.history/1"
    assert [change["change"] for change in document["changes"]] == ["created", "load", "inlet"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(("load", "0", "1.5"), "not a number from 0 to 1", id="load above 1"),
        pytest.param(("load", "0", "nan"), "not a number from 0 to 1", id="load nan"),
        pytest.param(("load", "0", "much"), "not a number from 0 to 1", id="load in words"),
        pytest.param(("load", "0"), "Missing argument 'RATIO'", id="no ratio"),
        pytest.param(("load", "0", "1", "--kind", "x"), "is not one of", id="unknown kind"),
        pytest.param(("load", "7", "1"), "'7' is no GPU of this machine", id="unknown index"),
        pytest.param(("load", "GPU-zz", "1"), "'GPU-zz' is no GPU", id="unknown uuid"),
        pytest.param(("load", "GPU-", "1"), "'GPU-' is no GPU", id="an empty prefix"),
        pytest.param(("load", "", "1"), "'' is no GPU", id="an empty name"),
        pytest.param(("load", "¹", "1"), "is no GPU", id="a superscript"),
        pytest.param(("heat",), "give --ambient, --cooling-ratio or both", id="heat of nothing"),
        pytest.param(("heat", "0", "--ambient", "40"), "leave out the GPU", id="air of one GPU"),
        pytest.param(("heat", "--ambient", "inf"), "from -20 to 80", id="infinite heat"),
        pytest.param(("heat", "--cooling-ratio", "0"), "from 0.05 to 1", id="no cooling"),
        pytest.param(("fault", "0", "fire"), "is not one of", id="unknown fault"),
        pytest.param(("fault", "0", "xid"), "xid needs its code", id="xid without code"),
        pytest.param(("fault", "0", "xid", "x"), "xid needs its code", id="xid in words"),
        pytest.param(("fault", "0", "ecc", "5"), "ecc needs a kind and a count", id="ecc alone"),
        pytest.param(("fault", "0", "hang", "5"), "hang takes no value", id="hang with a number"),
        pytest.param(("history", "--gpu", "9"), "'9' is no GPU", id="history of no GPU"),
    ],
)
def test_bad_usage_is_exit_code_2_and_says_what_is_right(path: Path, words, message) -> None:
    result = run(path, *words)

    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output
    assert len(Store(path).history()) == 1


def _no_file(path: Path) -> None:
    for name in ("machine.json", "machine.json.history"):
        path.with_name(name).unlink()


def _corrupt_both(path: Path) -> None:
    path.write_text("{")
    path.with_name("machine.json.history").write_text("{}\n")


def _cut_history(path: Path) -> None:
    path.with_name("machine.json.history").write_text("")


@pytest.mark.parametrize(
    "words",
    [("load", "0", "1"), ("show",), ("history",), ("reboot",), ("fault", "0", "lost")],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        pytest.param(_no_file, "no simulated machine at", id="no machine"),
        pytest.param(_corrupt_both, "is damaged", id="corrupt"),
        pytest.param(lambda path: path.write_text('{"format_version": 7}'), "another version",
                     id="another version"),
        pytest.param(_cut_history, "was cut", id="a cut history"),
    ],
)  # fmt: skip
def test_a_machine_that_cannot_be_used_is_one_line(path: Path, spoil, message, words) -> None:
    spoil(path)

    result = run(path, *words)

    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert message in result.output
    assert len(result.output.splitlines()) == 1


def test_a_path_below_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    result = run(tmp_path / "file" / "machine.json", "load", "all", "1")

    assert (result.exit_code, len(result.output.splitlines())) == (1, 1)


def test_a_huge_number_of_errors_is_refused_by_the_machine(path: Path) -> None:
    result = run(path, "fault", "0", "xid", "9" * 30)

    assert result.exit_code == 1
    assert "needs a number from 1 to 1000000000" in result.output


def test_a_torn_history_is_mended_and_told(path: Path) -> None:
    with path.with_name("machine.json.history").open("a") as file:
        file.write('{"seq')

    result = run(path, "load", "all", "1")

    assert result.exit_code == 0
    assert "note: cut 5 bytes of an unfinished line" in result.stderr


@pytest.mark.parametrize("command", [None, *sorted(simulated.commands)])
def test_help_teaches_with_an_example(command: str | None) -> None:
    words = [command, "--help"] if command else ["--help"]

    result = CliRunner().invoke(simulated, words)

    assert result.exit_code == 0
    assert f"  esnode simulated {command or 'show'}" in result.output


def test_there_is_no_command_for_power_limits() -> None:
    assert sorted(simulated.commands) == ["fault", "heat", "history", "load", "reboot", "show"]
    assert isinstance(simulated, click.Group)
