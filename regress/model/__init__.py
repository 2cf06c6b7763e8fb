"""The nouns of the program, and Settings with every default. This docstring is the glossary; all outputs use these words.

    Case        one benchmark with one parameter combination; `str()` is asv's `name(p1, p2)`
    Metric      what a number is: gpu_time, host_time, wall_time, peak_memory, ..., its unit, and which direction is better
    Side        what is measured: a commit, or the working tree, in an environment
    Protocol    how a case is measured; fixed once a case, the same for every round of both sides
    Round       one visit to one case on one side; its process takes part in no other (asv's word; a "launch" is a kernel's)
    Ranks       processes that visit a case together (torchrun's word); a value is that of the slowest, their skew how far apart
                the ranks' own work is
    Group       one process of each side, running at once, which take windows of the host's clock in turn on one core
    Pair        two rounds of a group, one of each side: its value is the logarithm of the ratio of their windows (`Against`)
    Summary     centre, interval and spread of the round values of one side
    Samples     the smallest, the largest and the 95th percentile of the samples of all rounds
    Duration    where the time of a benchmark went: setups, setup_cache, first visits, rounds
    Comparison  one case and metric, base against head, with a verdict and its reasons
    Verdict     regressed, improved, unchanged, undecided, failed, new, gone, skipped, changed, incomparable
    Conditions  the state of the device during rounds: its clock, throttling, other processes
    Series      one case and metric on one machine, model of GPU and environment over commits
    Corrected   a value of a series without the effect of who measured it: the machine, by windows in turn with other commits,
                or the card and the job, by commits that several cards have measured
    ChangePoint a change of level in a series: first commit at the new level, commits to blame, ratio, state
    Shift       changes of many unrelated benchmarks at one commit that suggest the machine, or a step back
    Breakage    a case that stopped giving numbers: since which commit, commits to blame, its message
    Anchor      an old commit measured again: if it moved, the machine did
    AnchorCheck  the result for an anchor: which values differ from when it was recorded
    Confirmation a change that was measured in turn: confirmed, so the history counts it as confirmed too, or found to be none
    Acknowledgement  an entry of the acknowledgement file: a known change that raises no alarm until it expires
    KernelDiff  a kernel on both sides: launches and seconds a call, and how they were matched
    Explanation where the difference between two profiles went: kernels, copies, idle time
    Explained   a comparison with its explanation: the difference as measured, and as profiles of both sides show it
    KeptExplanation  an Explained of two commits as stored beside results, without traces
    Totals      where the time of a profiled call went: device busy, idle, launches, copies, waiting
    CallProfile a profiled case: totals, operators, kernels, gaps, and bottlenecks
    Bound       what limits a kernel: memory, arithmetic, launches, latency
    Metered     kernels as Nsight Compute measured them: how close each came to the device's limits
    Bisection   the search for the commit that made a change: probes, the commit or range, confidence
    Probe       one commit that was measured in a bisection, against the good end
    Check       one line of `doctor` or `init`
    SelfCheck   a side against itself ("A/A"): every claim is a false alarm
    Implementations  one operation implemented in several ways: a Standing for each combination of the other parameters
    Standing    the implementations at one combination: the fastest, or that no difference is shown
    Stretch     neighbouring sizes with the same answer; where it changes is a crossover
    Kind        nodes of a cluster that are alike: one machine in the history, whichever of them measured
    Report      everything a renderer needs, already computed

"Significant" means beyond noise, "large" means beyond the threshold: two questions, two words. A ratio is head/base. A time
is always in seconds and a memory in bytes. The unit of replication is the round, never the sample.

Import them from here. Inside the package, each file has a part of them and imports from the others:

    measurement      what is measured, and the result on one side
    acknowledgement  known changes that raise no alarm
    comparison       two sides, and a side against itself
    series           one case over many commits
    bisection        the search for the commit that made a change
    implementations  one operation implemented in several ways
    profile          where the time of a call goes
    explanation      the cause of a difference
    kernels          kernels one by one
    settings         every default
    report           what a command gives to a renderer
"""

from __future__ import annotations

from regress.measure.wire import (
    DECLARED_SAMPLING,
    FRAMEWORKS,
    GPU_FRAMEWORKS,
    HOST_IDENTITY,
    HOST_METRICS,
    PROGRAM,
    PROTOCOL_IDENTITY,
    SET_UP_EACH,
    SYNCHRONIZES,
    Against,
    Benchmark,
    Ends,
    Failure,
    Measured,
    Protocol,
    Round,
    SuiteProblem,
    from_json,
    writable,
)
from regress.model.acknowledgement import ACK_KINDS, LIFTED, NEXT_TAG, AckKind, Acknowledgement, Reviewed
from regress.model.bisection import Bisection, Contrast, Probe
from regress.model.comparison import NEGATIVE, Comparison, Fineness, Pairs, SelfCheck, Verdict, VerdictTraits
from regress.model.explanation import (
    Cause,
    Confidence,
    DiffKind,
    Explained,
    Explanation,
    KeptExplanation,
    KernelDiff,
    Lane,
    Matched,
    ProfiledSide,
    Span,
)
from regress.model.implementations import Contender, Crossover, Implementations, Outcome, Standing, Stretch
from regress.model.kernels import KernelMetrics, Metered, MeteredKernel
from regress.model.measurement import (
    METRICS,
    VISITING,
    Batch,
    Better,
    Case,
    Commit,
    Duration,
    Durations,
    Machine,
    Measurement,
    Metric,
    Samples,
    Side,
    Spread,
    Throughput,
    declared_words,
    direction_of,
    ends_of,
    may_be_negative,
    metric_of,
    old_names,
)
from regress.model.profile import (
    ApiUse,
    Bottleneck,
    Bound,
    CallProfile,
    Gap,
    KernelUse,
    MemoryUse,
    OperatorUse,
    PartUse,
    Totals,
)
from regress.model.report import Built, Check, Listed, Merged, Report, Stopped
from regress.model.series import (
    Anchor,
    AnchorCheck,
    Breakage,
    Changed,
    ChangePoint,
    Conditions,
    Confirmation,
    Corrected,
    Move,
    Series,
    Shift,
    Way,
    outside,
)
from regress.model.settings import (
    DEFAULT_ENVIRONMENT,
    EXISTING,
    THRESHOLD_KINDS,
    Cluster,
    Environment,
    Kind,
    Setting,
    Settings,
)
from regress.stats.summary import Summary

__all__ = [
    "ACK_KINDS",
    "DECLARED_SAMPLING",
    "DEFAULT_ENVIRONMENT",
    "EXISTING",
    "FRAMEWORKS",
    "GPU_FRAMEWORKS",
    "HOST_IDENTITY",
    "HOST_METRICS",
    "LIFTED",
    "METRICS",
    "NEGATIVE",
    "NEXT_TAG",
    "PROGRAM",
    "PROTOCOL_IDENTITY",
    "SET_UP_EACH",
    "SYNCHRONIZES",
    "THRESHOLD_KINDS",
    "VISITING",
    "AckKind",
    "Acknowledgement",
    "Against",
    "Anchor",
    "AnchorCheck",
    "ApiUse",
    "Batch",
    "Benchmark",
    "Better",
    "Bisection",
    "Bottleneck",
    "Bound",
    "Breakage",
    "Built",
    "CallProfile",
    "Case",
    "Cause",
    "ChangePoint",
    "Changed",
    "Check",
    "Cluster",
    "Commit",
    "Comparison",
    "Conditions",
    "Confidence",
    "Confirmation",
    "Contender",
    "Contrast",
    "Corrected",
    "Crossover",
    "DiffKind",
    "Duration",
    "Durations",
    "Ends",
    "Environment",
    "Explained",
    "Explanation",
    "Failure",
    "Fineness",
    "Gap",
    "Implementations",
    "KeptExplanation",
    "KernelDiff",
    "KernelMetrics",
    "KernelUse",
    "Kind",
    "Lane",
    "Listed",
    "Machine",
    "Matched",
    "Measured",
    "Measurement",
    "MemoryUse",
    "Merged",
    "Metered",
    "MeteredKernel",
    "Metric",
    "Move",
    "OperatorUse",
    "Outcome",
    "Pairs",
    "PartUse",
    "Probe",
    "ProfiledSide",
    "Protocol",
    "Report",
    "Reviewed",
    "Round",
    "Samples",
    "SelfCheck",
    "Series",
    "Setting",
    "Settings",
    "Shift",
    "Side",
    "Span",
    "Spread",
    "Standing",
    "Stopped",
    "Stretch",
    "SuiteProblem",
    "Summary",
    "Throughput",
    "Totals",
    "Verdict",
    "VerdictTraits",
    "Way",
    "declared_words",
    "direction_of",
    "ends_of",
    "from_json",
    "may_be_negative",
    "metric_of",
    "old_names",
    "outside",
    "writable",
]
