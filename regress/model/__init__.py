"""The nouns of the program, and Settings with every default. This docstring is the glossary; outputs use these words.

    Case        one benchmark with one parameter combination; `str()` is asv's `name(p1, p2)`
    Metric      what a number is: gpu_time, host_time, wall_time, peak_memory, ..., its unit, and which direction is better
    Side        what is measured: a commit, or the working tree, in an environment
    Protocol    how a case is measured; fixed once a case, the same for every round of both sides
    Round       one visit to one case on one side; its process takes part in no other (asv's word; a "launch" is a kernel's)
    Ranks       processes that visit a case together (torchrun's word); a value is that of the slowest, their skew how far apart
                the ranks' own work is
    Group       one process of each side, alive at once, that take windows of the host's clock in turn on one core
    Pair        two rounds of a group, of unlike sides: its value is the logarithm of the ratio of their windows (`Against`)
    Summary     centre, interval and spread of the round values of one side
    Samples     the least, the largest and the 95th percentile of the samples of all rounds
    Duration    where the time of a benchmark has gone: setups, setup_cache, first visits, rounds
    Comparison  one case and metric, base against head, with a verdict and its reasons
    Verdict     regressed, improved, unchanged, undecided, failed, new, gone, skipped, changed, incomparable
    Conditions  what the device was like while rounds were taken: its clock, whether it slowed itself down, who else was on it
    Series      one case and metric on one machine, device and environment over commits
    Corrected   a value of a series without what the machine did to it, by windows in turn with other commits
    ChangePoint a change of level in a series: first commit at the new level, what may be to blame, ratio, state
    Shift       changes of many unrelated benchmarks at one commit that look like the machine's doing, or like a step back
    Breakage    a case that gave numbers and gives none any more: since which commit, what may be to blame, what it says
    Anchor      a commit that was measured again: if it moved, the machine did
    AnchorCheck  what an anchor shows: which of its values are no longer what they were when it was recorded
    Confirmation a change that was measured in turn and confirmed: what a history has seen once is sure by it
    Acknowledgement  an entry of the acknowledgement file: a change that was seen and, until further notice, is no alarm
    KernelDiff  a kernel before and after: launches and seconds a call, and how the two were matched
    Explanation where the difference between two profiles went: kernels, copies, idle time
    Explained   a comparison with its explanation: the difference as measured, and as profiles of both sides show it
    KeptExplanation  an Explained of two commits as it is kept beside results, without traces
    Totals      where the time of a profiled call went: device busy, idle, launches, copies, waiting
    CallProfile a profiled case: totals, operators, kernels, gaps, and what holds it back
    Bound       what holds a kernel back: memory, arithmetic, launches, latency
    Metered     kernels one by one as Nsight Compute measured them: how near each came to what the device can do
    Bisection   the search for the commit that did it: probes, the commit or the range, how sure
    Probe       one commit that was measured in a bisection, against the good end
    Check       one line of `doctor` or `init`
    SelfCheck   a side against itself ("A/A"): what is claimed there is a false alarm
    Implementations  one operation done in several ways, side by side: a Standing for each combination of the other parameters
    Standing    the implementations at one combination: which is the fastest, or that no difference is shown
    Stretch     sizes next to each other at which the answer is the same; where it changes is a crossover
    Report      everything a renderer needs, computed already

"Significant" means beyond noise, "large" means beyond the threshold: two questions, two words. A ratio is head/base. A time
is seconds and a memory is bytes, always. The unit of replication is the round, never the sample.

From outside, all of them are imported from here. Inside, each file has a part of them, and takes what it needs from the others:

    measurement      what is measured, and what comes of it on one side
    acknowledgement  what somebody has seen, and is no alarm
    comparison       two sides, and a side against itself
    series           one case over many commits
    bisection        the search for the commit that did it
    implementations  one operation done in several ways
    profile          where the time of a call goes
    explanation      what a difference comes from
    kernels          kernels one by one
    settings         every default
    report           what a command gives to a renderer
"""

from __future__ import annotations

from regress.measure.wire import (
    DECLARED_SAMPLING,
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
from regress.model.comparison import Comparison, Fineness, Pairs, SelfCheck, Verdict, VerdictTraits
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
    metric_of,
    near_names,
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
from regress.model.settings import DEFAULT_ENVIRONMENT, EXISTING, THRESHOLD_KINDS, Environment, Setting, Settings
from regress.stats.summary import Summary

__all__ = [
    "ACK_KINDS",
    "DECLARED_SAMPLING",
    "DEFAULT_ENVIRONMENT",
    "EXISTING",
    "HOST_IDENTITY",
    "HOST_METRICS",
    "LIFTED",
    "METRICS",
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
    "metric_of",
    "near_names",
    "old_names",
    "outside",
    "writable",
]
