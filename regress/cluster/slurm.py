"""Slurm, by its own commands: sbatch, squeue, scontrol, scancel. Neither accounting nor a library is needed."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from regress.cluster.engine import JOB, Gone, Place, Queued, Refused, script
from regress.cluster.runs import Run, Submitted
from regress.errors import NothingMeasured
from regress.history.disk import replace_file
from regress.model import Cluster, Kind

ANSWER_S = 60.0
"""How long a command of Slurm's may take."""
GRACE_S = 120
"""So long before a job's time is up it is told to end."""
_WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD")
_WORDS = {
    "NODE_FAIL": "{node} went down",
    "OUT_OF_MEMORY": "it ran out of memory on {node}",
    "TIMEOUT": "its time was up",
    "BOOT_FAIL": "{node} did not come up",
    "DEADLINE": "its deadline was over",
    "PREEMPTED": "it was preempted",
}


_NO_ANSWER = re.compile(r"unable to contact|timed out|did not answer|connection refused|zero bytes were", re.IGNORECASE)
"""What sbatch says where slurmctld is down or busy: nothing is wrong with the job."""
_EXITED = re.compile(r"srun: error: .*: task \d+: Exited with exit code \d+$|srun: Terminating ")


class Slurm:
    """The engine of a real cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def submit(self, run: Run, kind: Kind, tasks: Sequence[int], exclude: Sequence[str] = ()) -> str | None:
        folder = run.folder / kind.name
        text = script(self._cluster, kind, run, job="$SLURM_ARRAY_JOB_ID", task="$SLURM_ARRAY_TASK_ID")
        replace_file(folder / JOB, text.encode())
        words = [
            *(
                "sbatch",
                "--parsable",
                "--requeue",
                "--open-mode=append",
                f"--signal=B:TERM@{min(GRACE_S, int(kind.time_s / 4))}",
            ),
            f"--job-name={_name(run)}",
            f"--array={','.join(map(str, tasks))}%{kind.at_most}",
            f"--time={max(1, math.ceil(kind.time_s / 60))}",
            f"--output={str(folder).replace('%', '%%')}/%a.log",
            f"--chdir={run.folder}",
            *options_of(kind),
            *([f"--exclude={','.join(exclude)}"] if exclude else []),
            str(folder / JOB),
        ]
        code, out, err = _call(words)
        if code and _NO_ANSWER.search(err):
            return None
        if code:
            raise Refused(
                f"Slurm takes no job of kind {kind.name}",
                why=last_line(err) or f"sbatch ended with {code}",
                fix=f'correct "{kind.name}" under "cluster" in asv.conf.json',
            )
        return out.strip().partition(";")[0]

    def queued(self, run: Run) -> Mapping[Place, Queued] | None:
        if not any((run.folder / kind / JOB).exists() for kind in run.plan.tasks):
            return {}  # nothing was submitted; where no Slurm can be reached, submitting says so
        code, out, _ = _call(["squeue", "--noheader", "--array", f"--name={_name(run)}", "--format=%F|%K|%T|%r|%N|%o"])
        if code:
            return None
        kinds = {submission.job: submission.kind for submission in run.submitted}
        queued: dict[Place, Queued] = {}
        unknown: dict[tuple[str, str], list[int]] = {}
        for line in filter(None, map(str.strip, out.splitlines())):
            job, task, state, why, node, command = line.split("|", 5)
            kind = kinds.get(job) or Path(command).parent.name
            if kind not in run.plan.tasks or not task.isdigit():
                continue
            if job not in kinds:
                unknown.setdefault((kind, job), []).append(int(task))
            waits = state in _WAITING
            queued[kind, int(task)] = Queued("waiting" if waits else "running", why if waits else "", node)
        for (kind, job), tasks in unknown.items():  # Slurm took it, and we did not hear of that
            run.add(Submitted(kind, job, tuple(sorted(tasks))))
        return queued

    def gone(self, run: Run, kind: str, task: int, job: str) -> Gone:
        code, out, _ = _call(["scontrol", "show", "job", "--oneliner", f"{job}_{task}"])
        facts = dict(re.findall(r"(\w+)=(\S*)", out)) if not code else {}
        state = facts.get("JobState", "")
        if not state:
            return Gone("unknown")
        if state in ("CANCELLED", "COMPLETED"):
            return Gone("cancelled" if state == "CANCELLED" else "ended")
        if state != "FAILED" and state not in _WORDS:
            return Gone("back")
        node = facts.get("NodeList") or facts.get("BatchHost") or "its node"
        code, _, signal = facts.get("ExitCode", "?").partition(":")
        how = f"it was killed by signal {signal}" if signal not in ("", "0") else f"it ended with exit code {code}"
        return Gone("failed", _WORDS.get(state, f"{how} on {{node}}").format(node=node))

    def cancel(self, run: Run, places: Sequence[Place] | None = None) -> None:
        if places is None:
            _call(["scancel", f"--name={_name(run)}"])
            return
        jobs = {(submission.kind, task): submission.job for submission in run.submitted for task in submission.tasks}
        words = [f"{jobs[place]}_{place[1]}" for place in places if place in jobs]
        if words:
            _call(["scancel", *words])

    def to_end(self, run: Run) -> str:
        return f"scancel --name {_name(run)}"

    def attach(self, kind: Kind, text: str, name: str) -> _Srun:
        return _Srun(kind, text, name)


class _Srun:
    """A job that srun waits for. Ctrl-C does not reach srun, which would take two of them and then kill: it goes by scancel."""

    def __init__(self, kind: Kind, text: str, name: str) -> None:
        self._name = name
        words = [
            *("srun", "--ntasks=1", "--input=none", f"--job-name={name}"),
            f"--time={max(1, math.ceil(kind.time_s / 60))}",
            *options_of(kind),
            *("/bin/bash", "-c", text),
        ]
        try:
            self._process = subprocess.Popen(
                words,
                env=_variables(),
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise _no_slurm("srun") from None
        self._said = threading.Thread(target=self._pass_on, daemon=True)
        self._said.start()

    def wait(self) -> int:
        code = self._process.wait()
        self._said.join()
        return code

    def interrupt(self) -> None:
        _call(["scancel", "--signal=INT", f"--name={self._name}"])

    def cancel(self) -> None:
        _call(["scancel", f"--name={self._name}"])

    def _pass_on(self) -> None:
        """What goes to stderr, but what srun says of an exit code: it is no error of the cluster's."""
        assert self._process.stderr is not None
        with self._process.stderr as said:
            for line in said:
                if not _EXITED.match(line):
                    sys.stderr.write(line)
                    sys.stderr.flush()


def options_of(kind: Kind) -> list[str]:
    """The options of sbatch and srun that ask for a node of that kind."""
    named = ("partition", "gres", "constraint", "account", "qos", "reservation")
    options = [f"--{name}={value}" for name in named if (value := getattr(kind, name))]
    return [*options, *(["--exclusive"] if kind.exclusive else []), *kind.options]


def _name(run: Run) -> str:
    return f"regress-{run.name}"


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("sbatch: ").removeprefix("error: ") if lines else ""


def _call(words: Sequence[str]) -> tuple[int, str, str]:
    """Exit code, output and messages of a command of Slurm's. Raises NothingMeasured where there is no Slurm."""
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
            env=_variables(),
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise _no_slurm(words[0]) from None
    except subprocess.TimeoutExpired:
        return 124, "", f"{words[0]} did not answer"
    return done.returncode, done.stdout, done.stderr


def _variables() -> dict[str, str]:
    """Ours, less those of a job that we may be in ourselves: they would be taken for options."""
    inside = ("SLURM_", "SBATCH_", "SRUN_")
    return {name: value for name, value in os.environ.items() if not name.startswith(inside) or name == "SLURM_CONF"}


def _no_slurm(command: str) -> NothingMeasured:
    return NothingMeasured(
        "there is no Slurm here",
        why=f"the command {command} is not on the PATH",
        fix='run it where jobs can be submitted, or set "engine" of "cluster" to "local"',
    )
