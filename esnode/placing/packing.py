"""Which GPUs of one machine a job gets.

Its own file because it is a rule about topology alone. It gets the GPUs that are free for the job
(`fitting` says which) and all those of the machine, and must not know watts or priorities.

GPUs that are near each other go together: one NVLink island first, then one PCIe switch, then one
NUMA node, then any of one model, then any. Among places that are equally near, the one that leaves
the largest whole islands, then the coolest GPUs, then those of lowest index.
Source: the specification of local control, section 3.2, bin packing.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from esnode.placing.machine import GpuPlace

Group = tuple[GpuPlace, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """A choice of GPUs."""

    gpus: Group
    """By index."""
    level: str
    """What they share, one of `LEVELS`; empty where no GPU is asked for."""
    stranded_change_count: int
    """By how many GPUs `stranded_count` grows; below 0 where a part-used island is filled."""


def _island(gpu: GpuPlace) -> Hashable | None:
    return None if gpu.island is None else (gpu.model, "island", gpu.island)


def _unit(gpu: GpuPlace) -> Hashable:
    if gpu.island is not None:
        return (gpu.model, "island", gpu.island)
    return (gpu.model, "numa", gpu.numa_node)


def _switch(gpu: GpuPlace) -> Hashable | None:
    return None if gpu.switch is None else (gpu.model, "switch", gpu.switch)


def _numa(gpu: GpuPlace) -> Hashable | None:
    return None if gpu.numa_node is None else (gpu.model, "numa", gpu.numa_node)


LEVELS: dict[str, Callable[[GpuPlace], Hashable | None]] = {
    "nvlink": _island,
    "switch": _switch,
    "numa": _numa,
    "model": lambda gpu: gpu.model,
    "mixed": lambda _: "all",
}
"""From the nearest on. A GPU of which a level is not known belongs to no group of that level."""

_FINER = {
    "nvlink": (_switch, _numa),
    "switch": (_numa,),
    "numa": (_unit, _switch),
    "model": (_numa, _unit, _switch),
    "mixed": (lambda gpu: gpu.model, _numa, _unit, _switch),
}
"""What is kept together as far as possible within a group of each level."""


def packings(count: int, free: Sequence[GpuPlace], every: Sequence[GpuPlace]) -> Iterator[Packing]:
    """The choices worth considering, best first; none where too few are free."""
    if count == 0:
        yield Packing(gpus=(), level="", stranded_change_count=0)
        return
    if len(free) < count:
        return
    before = stranded_count(free, every)
    seen: dict[tuple[str, ...], None] = {}
    for level, key in LEVELS.items():
        found = [
            tuple(_pick(group, count, _FINER[level]))
            for group in _groups(free, key)
            if len(group) >= count
        ]
        if len(found) > 1:
            found.sort(key=lambda chosen: _worse(chosen, free, every))
        for chosen in found:
            ordered = tuple(sorted(chosen, key=_place))
            names = tuple(gpu.uuid for gpu in ordered)
            if names not in seen:
                seen[names] = None
                left = [gpu for gpu in free if gpu.uuid not in names]
                change = stranded_count(left, every) - before
                yield Packing(gpus=ordered, level=level, stranded_change_count=change)


def stranded_count(free: Sequence[GpuPlace], every: Sequence[GpuPlace]) -> int:
    """How many free GPUs lie on islands that are not wholly free: they serve small jobs only.

    Where there is no NVLink, a NUMA node's GPUs of one model count as an island, or else those of
    the machine.
    """
    sizes = _sizes(every, _unit)
    return sum(count for key, count in _sizes(free, _unit).items() if count < sizes[key])


def _sizes(
    gpus: Sequence[GpuPlace], key: Callable[[GpuPlace], Hashable | None]
) -> dict[Hashable, int]:
    sizes: dict[Hashable, int] = {}
    for gpu in gpus:
        name = key(gpu)
        if name is not None:
            sizes[name] = sizes.get(name, 0) + 1
    return sizes


def _groups(
    gpus: Sequence[GpuPlace], key: Callable[[GpuPlace], Hashable | None]
) -> list[list[GpuPlace]]:
    groups: dict[Hashable, list[GpuPlace]] = {}
    for gpu in gpus:
        name = key(gpu)
        if name is not None:
            groups.setdefault(name, []).append(gpu)
    return list(groups.values())


def _pick(
    group: Sequence[GpuPlace],
    count: int,
    finer: Sequence[Callable[[GpuPlace], Hashable | None]],
) -> list[GpuPlace]:
    """So many of a group: whole smaller groups first, the last one from where it fits best."""
    if not finer or count == len(group):
        return sorted(group, key=_warmth)[:count]
    parts = _groups(group, finer[0])
    loose = [gpu for gpu in group if finer[0](gpu) is None]
    chosen: list[GpuPlace] = []
    while parts and len(chosen) < count:
        needed = count - len(chosen)
        enough = [part for part in parts if len(part) >= needed]
        # The smallest that is enough, else the largest: the fewest parts are broken into.
        part = (
            min(enough, key=lambda one: (len(one), _warmest(one), _place(one[0])))
            if enough
            else min(parts, key=lambda one: (-len(one), _warmest(one), _place(one[0])))
        )
        parts.remove(part)
        chosen += _pick(part, min(needed, len(part)), finer[1:])
    return chosen + sorted(loose, key=_warmth)[: count - len(chosen)]


def _worse(
    chosen: Sequence[GpuPlace], free: Sequence[GpuPlace], every: Sequence[GpuPlace]
) -> tuple[object, ...]:
    """The order among choices of one level; the least is the best."""
    names = [gpu.uuid for gpu in chosen]
    left = [gpu for gpu in free if gpu.uuid not in names]
    return (
        stranded_count(left, every),
        *(_largest_first(left, key) for key in (_unit, _switch, _numa)),
        _warmest(chosen),
        [_place(gpu) for gpu in sorted(chosen, key=_place)],
    )


def _largest_first(
    left: Sequence[GpuPlace], key: Callable[[GpuPlace], Hashable | None]
) -> list[int]:
    """Sizes of what is left, so that the least of two lists is the one with larger groups."""
    return [*sorted(-size for size in _sizes(left, key).values()), 0]


def _warmest(gpus: Sequence[GpuPlace]) -> float:
    """Minus the smallest margin; one that is not known counts as none."""
    return max((-(gpu.margin_celsius or 0.0) for gpu in gpus), default=0.0)


def _warmth(gpu: GpuPlace) -> tuple[float, int, str]:
    return (-(gpu.margin_celsius or 0.0), gpu.index, gpu.uuid)


def _place(gpu: GpuPlace) -> tuple[int, str]:
    return (gpu.index, gpu.uuid)
