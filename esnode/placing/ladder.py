"""The ways of making room, what each of them frees, and what it costs.

Its own file because it is a table that people look up, and that keeps a step from being sold as
more than it is: a stopped process (SIGSTOP) gives back no memory, so it is no preemption of a GPU
job. It must not know who makes room for whom.
Source: the specification of local control, section 3.3. That RAM stays was measured: resident
memory of 320 812 kB before and after.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One rung."""

    level: str
    name: str
    frees_cpu: str
    frees_gpu_compute: str
    frees_gpu_memory: str
    frees_memory: str
    lost_work: str
    needs: str
    is_taken_here: bool
    """Whether `preempting` chooses it; the others are for those who can."""

    @property
    def line(self) -> str:
        """What it does and does not free, for the audit."""
        return (
            f"{self.level} ({self.name}) frees CPU: {self.frees_cpu}, GPU: "
            f"{self.frees_gpu_compute}, GPU memory: {self.frees_gpu_memory}, memory: "
            f"{self.frees_memory}; lost work: {self.lost_work}"
        )


STEPS: tuple[Step, ...] = (
    Step(
        level="L1",
        name="lower its weights and its share of power",
        frees_cpu="part",
        frees_gpu_compute="part",
        frees_gpu_memory="no",
        frees_memory="no",
        lost_work="none",
        needs="nothing",
        is_taken_here=True,
    ),
    Step(
        level="L2",
        name="stop its processes for a while (SIGSTOP or a frozen cgroup)",
        frees_cpu="yes",
        frees_gpu_compute="after the running kernel ends",
        frees_gpu_memory="no",
        frees_memory="no",
        lost_work="none, but peers time out (NCCL and HTTP; torch after 10 min)",
        needs="room for the memory of both; a whole gang or none; at most 5 min with GPUs",
        is_taken_here=True,
    ),
    Step(
        level="L3",
        name="suspend it with cuda-checkpoint",
        frees_cpu="yes",
        frees_gpu_compute="yes",
        frees_gpu_memory="yes, into memory",
        frees_memory="no, it takes as much as the GPU memory",
        lost_work="none",
        needs="driver 550 or later, as much memory as GPU memory, a probe of each process",
        is_taken_here=False,
    ),
    Step(
        level="L4",
        name="let it save, stop it, and put it back into the queue",
        frees_cpu="yes",
        frees_gpu_compute="yes",
        frees_gpu_memory="yes",
        frees_memory="yes",
        lost_work="since the save",
        needs="a job that saves when asked",
        is_taken_here=True,
    ),
    Step(
        level="L5",
        name="move it to another machine",
        frees_cpu="yes",
        frees_gpu_compute="yes",
        frees_gpu_memory="yes",
        frees_memory="yes",
        lost_work="since the save",
        needs="a machine that takes it",
        is_taken_here=False,
    ),
    Step(
        level="L6",
        name="stop it without a save, and put it back into the queue",
        frees_cpu="yes",
        frees_gpu_compute="yes",
        frees_gpu_memory="yes",
        frees_memory="yes",
        lost_work="all",
        needs="a job that may run again, or an operator's policy",
        is_taken_here=True,
    ),
)
"""From the mildest on."""

STEP_OF = {step.level: step for step in STEPS}
