"""Profiles: what was recorded of some calls is read into a Timeline, and what happened there is worked out of it.

    timeline    the nouns: Launch, Copy, Sync, Operator, Timeline of a range of calls
    chrome      torch.profiler's Chrome trace -> Timeline
    chrome_file the file of such a trace -> its events
    nsys        SQLite export of Nsight Systems -> Timeline
    nsys_stats  CSV of `nsys stats` -> totals
    exported    what a file is, and exports of Nsight Systems -> CallProfile
    ncu         CSV of Nsight Compute -> KernelMetrics
    ncu_run     the commands that run a program under Nsight Compute, and that print what it has found
    metered     KernelMetrics of launches -> Metered, the kernels of a call
    intervals   sets of times
    totals      Timeline -> busy and idle time, overlap, transfers, gaps, uses of operators and kernels, the bottleneck
    calls       Timeline -> CallProfile, all that is told of a case's calls
    names       a kernel's short name, and what its words tell
    kernels     two Timelines -> KernelDiffs, and where the difference went
    change      the difference turned so that rules can look at it
    causes      what a difference most likely comes from, in a sentence
    bound       memory-, compute-, launch- or latency-bound, and what to try
    bottlenecks totals of a GPUProfiler's operations -> those that take the most, why, and what to try
    rounds      exports of several runs -> the rounds of one side

Everything here reads and computes; running a profiler is the driver's part. All times are seconds from the timeline's origin.
"""
