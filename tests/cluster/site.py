"""A real Slurm of several nodes on this host, for tests: no systemd, no cgroups, no accounting; its GPUs are only counted.

Written for Slurm 22.05 and later. All of it lies in one folder and ends with the object. `why_not` says what is missing here.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from regress.run.ranks import free_port
from tests.conftest import LIMIT_S

COMMANDS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
SBIN = "/usr/sbin"
UP = ("idle", "mixed", "allocated", "completing")
CONF = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
MailProg=/bin/true
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
SlurmdTimeout=10
KillWait=3
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,sched_interval=1,bf_interval=1
"""


def why_not() -> str:
    """Why there can be no Slurm here; empty where there can."""
    path = f"{os.environ.get('PATH', '')}:{SBIN}"
    missing = [command for command in COMMANDS if shutil.which(command, path=path) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (apt-get install slurm-wlm munge)"
    return "" if os.geteuid() == 0 else "slurmd has to be started by root"


class Site:
    """Nodes by name, each with its kind and its number of GPUs. A kind is a partition; jobs of `urgent` preempt all others."""

    def __init__(self, folder: Path, nodes: dict[str, tuple[str, int]]) -> None:
        self.folder, self.nodes = folder, nodes
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ports = ExitStack()
        (folder / "state").mkdir(parents=True)
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self._configure(folder)
        socket_ = folder / "munge.socket"
        munge = ["--force", f"--socket={socket_}", f"--key-file={key}", f"--seed-file={folder}/munge.seed"]
        self._start("munged", *munge, f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", "-F")
        until(socket_.exists, "munged")
        self._start("slurmctld", "-D", "-f", str(self.conf))
        for name in nodes:
            self._start(f"slurmd-{name}", "-D", "-N", name, "-f", str(self.conf))
        until(self._is_up, "the nodes")

    @property
    def conf(self) -> Path:
        return self.folder / "slurm.conf"

    @property
    def variables(self) -> dict[str, str]:
        """With which Slurm's commands are about this site."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH"))}
        return {**kept, "SLURM_CONF": str(self.conf), "PATH": f"{os.environ['PATH']}:{SBIN}"}

    def run(self, *words: str) -> str:
        done = subprocess.run(words, env=self.variables, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        return done.stdout + done.stderr

    def down(self, node: str) -> None:
        """As a power cut does it: the daemon and all that it has started die at once."""
        daemon = self._running.pop(f"slurmd-{node}")
        daemon.kill()
        daemon.wait()
        self._kill(f"SLURMD_NODENAME={node}")

    def up(self, node: str) -> None:
        self._start(f"slurmd-{node}", "-D", "-N", node, "-f", str(self.conf))

    def stop(self) -> None:
        self._kill(f"SLURM_CONF={self.conf}")
        for process in self._running.values():
            process.kill()
            process.wait()
        self._ports.close()

    def _configure(self, folder: Path) -> None:
        host, ports = socket.gethostname(), [self._ports.enter_context(free_port()) for _ in range(len(self.nodes) + 1)]
        lines = CONF.format(host=host, port=ports[0], folder=folder).splitlines()
        gres = []
        for port, (name, (kind, gpus)) in zip(ports[1:], self.nodes.items(), strict=True):
            about = f"NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=8 RealMemory=1000 State=UNKNOWN"
            lines.append(f"NodeName={name} {about} Gres=gpu:{kind}:{gpus}")
            for number in range(gpus):
                device = folder / f"{name}-{number}"
                device.symlink_to(os.devnull)
                gres.append(f"NodeName={name} Name=gpu Type={kind} File={device}")
        kinds = {kind for kind, _ in self.nodes.values()}
        for kind in sorted(kinds):
            own = [name for name, (other, _) in self.nodes.items() if other == kind]
            lines.append(f"PartitionName={kind} Nodes={','.join(own)} PriorityTier=1")
        lines.append(f"PartitionName=urgent Nodes={','.join(self.nodes)} PriorityTier=9 PreemptMode=OFF")
        self.conf.write_text("\n".join(lines) + "\n")
        (folder / "gres.conf").write_text("\n".join(gres) + "\n")

    def _start(self, name: str, *options: str) -> None:
        program = shutil.which(name.partition("-")[0], path=self.variables["PATH"])
        assert program is not None
        with (self.folder / f"{name}.out").open("ab") as out:
            self._running[name] = subprocess.Popen([program, *options], env=self.variables, stdout=out, stderr=out)

    def _is_up(self) -> bool:
        states = self.run("sinfo", "--noheader", "--Node", "--partition=urgent", "--format=%T").split()
        return len(states) == len(self.nodes) and all(state in UP for state in states)

    def _kill(self, variable: str) -> None:
        """Every process of this site's that has the variable, and the one that started it for Slurm."""
        own, wanted = f"SLURM_CONF={self.conf}".encode(), variable.encode()
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                variables = (folder / "environ").read_bytes().split(b"\0")
                if own not in variables or wanted not in variables:
                    continue
                pid, daemons = int(folder.name), {process.pid for process in self._running.values()}
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                if (folder.parent / str(parent) / "comm").read_text().strip() == "slurmstepd":
                    os.kill(parent, signal.SIGKILL)
                if pid != os.getpid() and pid not in daemons:
                    os.kill(pid, signal.SIGKILL)


def until(holds: Callable[[], object], what: str, timeout_s: float = LIMIT_S) -> None:
    """Wait until that holds."""
    end_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < end_s, f"{what} did not come up"
        time.sleep(0.1)
