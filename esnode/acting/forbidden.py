"""Processes that nothing here may ever touch, whatever a configuration says.

Pure, over a process that somebody described. Its own file so that it is one list, read by people
before they trust a feature. What is not known about a process forbids it: there is no benefit of
the doubt. It must not know why anybody would want to.
Source: the deny-list of the rules common to every actuator. Kernel threads: kthreadd is pid 2 and
their parent (kernel/kthread.c). Names are cut to 15 characters by the kernel (TASK_COMM_LEN).
"""

from dataclasses import dataclass

COMM_CHARACTERS_MAX = 15
KTHREADD_PID = 2
FIRST_USER_UID = 1000

NAMES = (
    "systemd", "init", "dbus-daemon", "dbus-broker", "dbus-broker-launch", "sshd", "sshd-session",
    "sshd-auth", "login", "agetty", "udevd", "auditd", "rsyslogd",
    "containerd", "containerd-shim", "containerd-shim-runc-v2", "dockerd", "docker-proxy", "podman",
    "conmon", "crio", "runc", "crun", "youki", "lxcfs", "kubelet", "kube-proxy",
    "slurmd", "slurmstepd", "slurmctld", "slurmdbd", "munged",
    "nvidia-persistenced", "nv-fabricmanager", "nvidia-fabricmanager", "nvidia-imex",
    "nv-hostengine", "dcgm-exporter", "nvidia-powerd", "nvidia-device-plugin",
    "Xorg", "X", "Xwayland", "gnome-shell", "kwin_wayland", "gdm", "gdm3", "sddm", "lightdm",
)  # fmt: skip
PREFIXES = ("systemd-", "containerd-shim", "kworker", "esnode")
SHELLS = ("sh", "bash", "dash", "zsh", "fish", "ksh", "csh", "tcsh")

_CUT = frozenset(name[:COMM_CHARACTERS_MAX] for name in NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A process as it was found; ``None`` is unknown."""

    pid: int
    parent_pid: int | None
    uid: int | None
    name: str | None
    """As the kernel has it (`comm`)."""
    executable_name: str | None
    """The last part of the path of what it runs; ``None`` too where it has none."""
    is_ours: bool | None
    """The agent, one of its supervisors, or a child of it that is no job."""
    has_terminal: bool | None
    is_session_leader: bool | None


def forbidden_line(process: Described, *, allowed_uids: tuple[int, ...] = ()) -> str | None:
    """Why this process must not be touched; None where it may be.

    `allowed_uids` are system users that a configuration lists; they lift that one rule alone.
    """
    who = f"pid {process.pid}"
    if process.pid <= 1:
        return f"{who} is the first process"
    if KTHREADD_PID in (process.pid, process.parent_pid):
        return f"{who} is a thread of the kernel"
    unknown = _unknown_of(process)
    if unknown:
        return f"{who}: its {unknown} is unknown"
    if process.is_ours:
        return f"{who} is this agent's own"
    for name in (process.name or "", process.executable_name or ""):
        if name in NAMES or name in _CUT or name.startswith(PREFIXES):
            return f"{who} is {name}, which the machine needs"
    uid = process.uid
    if uid is None or (uid < FIRST_USER_UID and uid not in allowed_uids):
        return f"{who} belongs to the system user {uid}"
    if process.has_terminal and process.is_session_leader and process.name in SHELLS:
        return f"{who} is a shell that somebody is logged in to"
    return None


def _unknown_of(process: Described) -> str:
    known = {
        "parent": process.parent_pid,
        "owner": process.uid,
        "name": process.name,
        "kinship to this agent": process.is_ours,
        "terminal": process.has_terminal,
        "session": process.is_session_leader,
    }
    return next((what for what, value in known.items() if value is None), "")
