"""What this machine has, and what of it local jobs occupy."""

import os
import select
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clusters.schedulers.contract import Resources

SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Processors, memory and GPUs of this machine."""

    cpus: int
    memory_bytes: int
    gpus: int = 0
    gpu_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """What one job was given: a number of processors, and GPUs by their index."""

    cpus: int
    gpus: tuple[int, ...] = ()


def this_machine() -> Machine:
    """Ask the kernel and, where there is one, `nvidia-smi`."""
    names = _gpu_names()
    return Machine(
        cpus=os.cpu_count() or 1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        gpus=len(names),
        gpu_type=names[0] if names else "",
    )


def boot_id(path: Path = Path("/proc/sys/kernel/random/boot_id")) -> str:
    """Return the id of this boot of the kernel."""
    return path.read_text().strip()


def impossible(wanted: Resources, machine: Machine) -> str:
    """Return why the machine can never run this, with what would fit; empty when it can."""
    if wanted.nodes > 1:
        return f"It asks for {wanted.nodes} nodes; this machine is one. 1 node fits."
    if wanted.gpus_per_node > machine.gpus:
        return f"It asks for {wanted.gpus_per_node} GPUs; this machine has {machine.gpus}."
    if wanted.gpus_per_node and wanted.gpu_type and wanted.gpu_type != machine.gpu_type:
        return f"It asks for {wanted.gpu_type}; this machine has {machine.gpu_type}."
    if wanted.cpus_per_node > machine.cpus:
        return f"It asks for {wanted.cpus_per_node} CPUs; this machine has {machine.cpus}."
    if wanted.memory_bytes_per_node > machine.memory_bytes:
        return (
            f"It asks for {wanted.memory_bytes_per_node:,} bytes of memory; "
            f"this machine has {machine.memory_bytes:,}."
        )
    return ""


def slots_for(wanted: Resources, machine: Machine, taken: Sequence[Slots]) -> Slots | None:
    """Return free slots for a job, or `None` while there are not enough."""
    busy = {gpu for slots in taken for gpu in slots.gpus}
    free = [gpu for gpu in range(machine.gpus) if gpu not in busy]
    if sum(slots.cpus for slots in taken) + wanted.cpus_per_node > machine.cpus:
        return None
    if len(free) < wanted.gpus_per_node:
        return None
    return Slots(cpus=wanted.cpus_per_node, gpus=tuple(free[: wanted.gpus_per_node]))


def _gpu_names() -> list[str]:
    """Return the GPUs' names in lower case, such as h200; none without a driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            [program, "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    if done.returncode:
        return []
    names = [line.strip().lower() for line in done.stdout.splitlines() if line.strip()]
    return [name.removeprefix("nvidia ").split("-")[0].replace(" ", "-") for name in names]


def wait_for_end(pid: int, *, seconds: float) -> None:
    """Return when the process has ended or the time is over."""
    try:
        opened = os.pidfd_open(pid)
    except OSError:
        return
    try:
        poll = select.poll()
        poll.register(opened, select.POLLIN)
        poll.poll(seconds * 1000)
    finally:
        os.close(opened)
