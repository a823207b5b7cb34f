"""``esnode simulated``: the hands that a simulated machine lacks.

On real hardware work, heat and faults come by themselves; here someone has to bring them. Every
command changes the machine's file under its lock, whether or not an agent is running, and none of
them sets a power limit: limits go through the agent, as they must on real hardware.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click

from esnode.cli.simulated_text import history_document, history_rows, show_document, show_rows
from esnode.drivers.simulated.changes import boot_id
from esnode.drivers.simulated.machine import (
    ECC_CORRECTED,
    ECC_UNCORRECTED,
    FAULT_KINDS,
    ChangeRefused,
    CoolingSet,
    Event,
    FaultInjected,
    Gpu,
    InletSet,
    Load,
    LoadSet,
    Machine,
    Rebooted,
)
from esnode.drivers.simulated.parts import CURVES
from esnode.drivers.simulated.store import Plan, Store, StoreFailed

ALL = "all"
FAULT_WORDS = ("xid", "ecc", *(kind for kind in FAULT_KINDS if not kind.startswith(("xid", "ecc"))))
ECC_KINDS = {"corrected": ECC_CORRECTED, "uncorrected": ECC_UNCORRECTED}

NumberReader = Callable[[click.Context, click.Parameter, str | None], float | None]
Command = TypeVar("Command", bound=Callable[..., object])


BLOCK = "\b\n"
"""Before a paragraph that click must not wrap."""

GROUP_EXAMPLES = (
    BLOCK
    + """Examples:
  esnode agent --hardware simulated:h100x8
  esnode simulated load all 1.0
  esnode simulated heat --ambient 50
  esnode simulated fault 3 lost
  esnode simulated show"""
)
LOAD_EXAMPLES = (
    BLOCK
    + """Examples:
  esnode simulated load all 1.0
  esnode simulated load 2 0.4 --kind decode"""
)
HEAT_EXAMPLES = (
    BLOCK
    + """Examples:
  esnode simulated heat --ambient 50
  esnode simulated heat 3 --cooling-ratio 0.6"""
)
FAULT_EXAMPLES = (
    BLOCK
    + """Faults:
  xid CODE                          the driver reports an error (79: the GPU is lost)
  ecc corrected|uncorrected COUNT   memory errors
  lost                              the GPU falls off the bus
  hang                              reads of the GPU block until it is cleared
  refuse-limit                      power limits are refused and the old one stays
  forget-limit                      the limit is back at its default, as after a driver reload
  sensor-stuck                      temperature and power stay at their present values
  clear                             end lost, hang, refuse-limit and sensor-stuck

"""
    + BLOCK
    + """Examples:
  esnode simulated fault 0 ecc corrected 12
  esnode simulated fault 3 hang
  esnode simulated fault all clear"""
)
REBOOT_EXAMPLES = (
    BLOCK
    + """Examples:
  esnode simulated reboot
  esnode simulated reboot --keep-limits"""
)
SHOW_EXAMPLES = (
    BLOCK
    + """Examples:
  esnode simulated show
  esnode simulated show --json"""
)
HISTORY_EXAMPLES = (
    BLOCK
    + """Examples:
  esnode simulated history --gpu 0"""
)


def number_between(low: float, high: float) -> NumberReader:
    """A callback that reads a number of a range; unlike `click.FloatRange` it refuses "nan"."""

    def read(context: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
        if text is None:
            return None
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not low <= number <= high:
            raise click.BadParameter(f"{text!r} is not a number from {low:g} to {high:g}")
        return number

    return read


def path_option(command: Command) -> Command:
    """The option that names the machine's file."""
    return click.option(
        "--path",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="The simulated machine's file.  [default: as configured]",
    )(command)


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def open_store(context: click.Context, path: Path | None) -> Store:
    """The machine that the option or the configuration names."""
    if path is None:
        from esnode.cli.context import simulated_hardware_path

        path = simulated_hardware_path(context)
    return Store(path)


@contextmanager
def told_in_one_line() -> Iterator[None]:
    """Turn what the machine or its files refuse into one line for the operator."""
    try:
        yield
    except (StoreFailed, ChangeRefused) as error:
        raise click.ClickException(str(error)) from None


def change(store: Store, plan: Plan, cause: str) -> Machine:
    """Change the machine, and say what had to be mended on the way."""
    with told_in_one_line():
        machine = store.change(plan, cause=f"esnode simulated {cause}")
    for repair in store.repairs:
        click.echo(f"note: {repair}", err=True)
    return machine


def check_gate(store: Store) -> None:
    """End in one line while rack power lets no work start on this machine."""
    from esnode.gate import FILE, FOLDER, closed_line

    with told_in_one_line():
        boot = boot_id(store.read_now())
    line = closed_line(store.path.parent / FOLDER / FILE, boot_id=boot)
    if line is not None:
        raise click.ClickException(f"{line}; --past-gate does it all the same")


def choose_gpus(machine: Machine, wanted: str) -> tuple[Gpu, ...]:
    """The GPUs that ``all``, an index or the beginning of a UUID means.

    Raises:
        click.BadParameter: none, or several.
    """
    if wanted == ALL:
        return machine.gpus
    if wanted.isdecimal() and len(wanted) < len("00000000"):
        found = tuple(gpu for gpu in machine.gpus if gpu.index == int(wanted))
    else:
        digits = wanted.lower().removeprefix("gpu-")
        found = tuple(
            gpu for gpu in machine.gpus if digits and gpu.uuid[len("GPU-") :].startswith(digits)
        )
    if len(found) == 1:
        return found
    problem = "names several GPUs" if found else "is no GPU of this machine"
    raise click.BadParameter(
        f"{wanted!r} {problem}: give {ALL}, an index from 0 to {len(machine.gpus) - 1}, or the"
        " beginning of a UUID"
    )


def for_each_gpu(wanted: str, event_for: Callable[[Gpu], Event]) -> Plan:
    """One event for each chosen GPU."""

    def plan(machine: Machine) -> Sequence[Event]:
        return [event_for(gpu) for gpu in choose_gpus(machine, wanted)]

    return plan


@click.group("simulated", epilog=GROUP_EXAMPLES)
def simulated() -> None:
    """Work, heat and faults for a machine of simulated GPUs.

    The machine lives in a file: it keeps its power limits and goes on drawing when the agent
    stops. GPU is an index, the beginning of a UUID, or "all". There is no command for power
    limits, because setting them is the agent's work.
    """


@simulated.command("load", epilog=LOAD_EXAMPLES)
@click.argument("gpu")
@click.argument("ratio", callback=number_between(0.0, 1.0))
@click.option(
    "--kind",
    type=click.Choice(tuple(CURVES)),
    default="compute",
    show_default=True,
    help="How throughput depends on power: training, a mixture, or token decoding.",
)
@click.option(
    "--past-gate", is_flag=True, help="Also while rack power lets no work start on the machine."
)
@path_option
@click.pass_context
def load_command(
    context: click.Context, gpu: str, ratio: float, kind: str, past_gate: bool, path: Path | None
) -> None:
    """Put work on a GPU: RATIO is 0 (idle) to 1 (all it can do)."""
    store = open_store(context, path)
    if ratio > 0 and not past_gate:
        check_gate(store)
    plan = for_each_gpu(
        gpu, lambda chosen: LoadSet(gpu=chosen.uuid, load=Load(ratio=ratio, kind=kind))
    )
    change(store, plan, f"load {gpu} {ratio:g} --kind {kind}")


@simulated.command("heat", epilog=HEAT_EXAMPLES)
@click.argument("gpu", default=ALL)
@click.option(
    "--ambient",
    callback=number_between(-20.0, 80.0),
    metavar="CELSIUS",
    help="Temperature of the air that reaches the machine.",
)
@click.option(
    "--cooling-ratio",
    callback=number_between(0.05, 1.0),
    metavar="RATIO",
    help="How well a GPU is cooled: 1 is clean, 0.5 lets half as much heat out.",
)
@path_option
@click.pass_context
def heat_command(
    context: click.Context,
    gpu: str,
    ambient: float | None,
    cooling_ratio: float | None,
    path: Path | None,
) -> None:
    """Warm the machine's air, or spoil a GPU's cooling."""
    if ambient is None and cooling_ratio is None:
        raise click.UsageError("give --ambient, --cooling-ratio or both")
    if ambient is not None and gpu != ALL:
        raise click.UsageError("--ambient is the air of the whole machine: leave out the GPU")

    def plan(machine: Machine) -> Sequence[Event]:
        events: list[Event] = []
        if ambient is not None:
            events.append(InletSet(inlet_celsius=ambient))
        if cooling_ratio is not None:
            events += [
                CoolingSet(gpu=chosen.uuid, cooling_ratio=cooling_ratio)
                for chosen in choose_gpus(machine, gpu)
            ]
        return events

    words = [f"heat {gpu}"]
    words += [f"--ambient {ambient:g}"] if ambient is not None else []
    words += [f"--cooling-ratio {cooling_ratio:g}"] if cooling_ratio is not None else []
    change(open_store(context, path), plan, " ".join(words))


@simulated.command("fault", epilog=FAULT_EXAMPLES)
@click.argument("gpu")
@click.argument("kind", type=click.Choice(FAULT_WORDS))
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@path_option
@click.pass_context
def fault_command(
    context: click.Context, gpu: str, kind: str, values: tuple[str, ...], path: Path | None
) -> None:
    """Break a GPU, or mend it."""
    event_kind, count = read_fault(kind, values)
    plan = for_each_gpu(
        gpu, lambda chosen: FaultInjected(gpu=chosen.uuid, kind=event_kind, count=count)
    )
    change(open_store(context, path), plan, " ".join(("fault", gpu, kind, *values)))


def read_fault(kind: str, values: tuple[str, ...]) -> tuple[str, int | None]:
    """The machine's own name of a fault, and its number.

    Raises:
        click.UsageError: the values do not fit the fault.
    """
    if kind == "xid" and len(values) == 1 and values[0].isdecimal():
        return kind, int(values[0][:12])
    if kind == "xid":
        raise click.UsageError("xid needs its code: fault GPU xid 79")
    if kind == "ecc":
        if len(values) == 2 and values[0] in ECC_KINDS and values[1].isdecimal():
            return ECC_KINDS[values[0]], int(values[1][:12])
        raise click.UsageError("ecc needs a kind and a count: fault GPU ecc corrected 12")
    if values:
        raise click.UsageError(f"{kind} takes no value")
    return kind, None


@simulated.command("reboot", epilog=REBOOT_EXAMPLES)
@click.option(
    "--keep-limits/--lose-limits",
    default=None,
    help="Whether power limits outlive this reboot and those after it.  [default: as before;"
    " a new machine loses them]",
)
@path_option
@click.pass_context
def reboot_command(context: click.Context, keep_limits: bool | None, path: Path | None) -> None:
    """Reboot the simulated machine: loads are gone, limits are back at their defaults."""
    store = open_store(context, path)

    def plan(machine: Machine) -> Sequence[Event]:
        event = Rebooted(
            host_boot_id=machine.host_boot_id, is_host_reboot=False, keeps_limits=keep_limits
        )
        return [event]

    word = {None: "", True: " --keep-limits", False: " --lose-limits"}[keep_limits]
    change(store, plan, f"reboot{word}")


@simulated.command("show", epilog=SHOW_EXAMPLES)
@json_option
@path_option
@click.pass_context
def show_command(context: click.Context, as_json: bool, path: Path | None) -> None:
    """Show what each GPU really does now, whatever its sensors say."""
    store = open_store(context, path)
    with told_in_one_line():
        machine = store.read_now()
    if as_json:
        click.echo(json.dumps(show_document(machine, store.path), indent=2))
    else:
        click.echo("\n".join(show_rows(machine)))


@simulated.command("history", epilog=HISTORY_EXAMPLES)
@click.option("--gpu", help="Only what happened to this GPU, or to the whole machine.")
@json_option
@path_option
@click.pass_context
def history_command(
    context: click.Context, gpu: str | None, as_json: bool, path: Path | None
) -> None:
    """List every change to the machine: when, by which process, why."""
    store = open_store(context, path)
    with told_in_one_line():
        lines = store.history()
        machine = store.read()
    chosen = [one.uuid for one in choose_gpus(machine, gpu)] if gpu is not None else None
    if chosen is not None:
        lines = tuple(line for line in lines if getattr(line.event, "gpu", chosen[0]) in chosen)
    if as_json:
        click.echo(json.dumps(history_document(lines, store.path), indent=2))
    else:
        click.echo("\n".join(history_rows(lines, machine)))
