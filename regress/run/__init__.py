"""The driver's side of measuring.

plan          which case is visited when, and by which protocol (pure functions)
needs         how many processes and GPUs a benchmark needs, and whether they are here (pure functions)
problems      which problems of the suite matter, and why nothing can be measured
unmatched     names and patterns that match nothing
ship          the folder with the measuring code that every worker runs
environments  prepares a side: tree, build, interpreter, import path
interrupts    what becomes of workers when the driver is stopped
servers       a worker process and the pipes to it
forks         processes that fork others
starting      what a process of a side is given and told
ranks         several that visit a case together, as if they were one
processes     chooses the process of a side: a fresh one, or a fork if that works
deadline      when measuring has to end
replies       what a process answers to tasks
groups        processes of all sides that take windows of the host's clock in turn
questions     what processes are asked beside visits: the suite, caches, ceilings, profiles
visits        visits to cases
programs      programs of the suite that measure by themselves
nvml          NVML, for the driver's side
gpus          the GPUs that were named, and the processors of each
homes         the GPU of each case, and which values count while others measure (pure functions)
lanes         a thread and its processes for each of them
selecting     the cases of the suites that a job measures
placement     the lane of each case, and which lanes are at work at the same time
turns         what is measured alone meanwhile
job           what to measure, and the result
trials        the unmeasured visits: which cases can be measured, and by which protocol
ending        programs in a session of their own: waited for, and ended with all that they have started
watched       an external tool that runs a program
execute       rounds of all sides, as they arrive
"""
