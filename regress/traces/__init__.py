"""Reads recordings of calls into a Timeline, and computes profiles from it.

    timeline    the nouns: Launch, Copy, Sync, Operator, Timeline of a range of calls
    chrome      torch.profiler's Chrome trace -> Timeline
    nsys        SQLite export of Nsight Systems -> Timeline
    nsys_stats  CSV of `nsys stats` -> totals
    exported    the kind of a file, and exports of Nsight Systems -> CallProfile
    ncu         the commands of Nsight Compute, and its CSV -> KernelMetrics
    metered     KernelMetrics of launches -> Metered, the kernels of a call
    intervals   sets of times
    totals      Timeline -> busy and idle time, overlap, transfers, gaps, uses of operators and kernels, the bottleneck
    calls       Timeline -> CallProfile, the profile of a case's calls
    names       a kernel's short name, and the meaning of its words
    kernels     two Timelines -> KernelDiffs, and where the difference went
    change      the difference, oriented for the rules
    causes      the most likely cause of a difference, in a sentence
    bound       memory-, compute-, launch- or latency-bound, and what to try
    bottlenecks totals of a GPUProfiler's operations -> those that take the most, their limits, and what to try
    rounds      exports of several runs -> the rounds of one side

Everything here reads and computes; running a profiler is the driver's part. All times are seconds from the timeline's origin.
"""
