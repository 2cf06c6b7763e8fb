"""The driver's side of measuring, from a whole job down to one process.

execute       a job from the suites to its last round
job           what to measure, what was measured, and who is told on the way
selecting     the cases of the suites that a job measures
problems      which problems of the suite matter, and why nothing can be measured
unmatched     names and patterns that match nothing
trials        the unmeasured visits: which cases can be measured, and by which protocol
plan          which case is visited when, and by which protocol (pure functions)
needs         how many processes and GPUs a benchmark needs, and whether they are here (pure functions)

placement     the lane of each case, and which lanes are at work at the same time
lanes         a thread and its processes for each GPU
gpus          the GPUs that were named, and the processors of each
homes         the GPU of each case, and which values count while others measure (pure functions)
turns         what is measured alone meanwhile
deadline      when measuring has to end

visits        visits to cases in processes
groups        processes of all sides that take windows of the host's clock in turn
programs      programs of the suite that measure by themselves
questions     what processes are asked beside visits: the suite, caches, ceilings, profiles
replies       what a process answers to tasks
overhead      what a process costs beside measuring

processes     chooses the process of a side: a fresh one, or a fork if that works
origins       what processes are forked from
ranks         several that visit a case together, as if they were one
starting      what a process of a side is given and told
caches        compile caches, a folder for each side
forks         processes that fork others
servers       a worker process and the pipes to it
interrupts    what becomes of workers when the driver is stopped
ship          the folder with the measuring code that every worker runs
environments  prepares a side: tree, build, interpreter, import path

profiled      a case or a script under the profiler
plain         the command that runs a case without a driver
ceilings      what a device does at most, kept by GPU
device_lock   one measuring process at a time on a device
clocks        locks the clocks of a GPU, and gives them back
nvml          NVML, for the driver's side
shell         shell commands of the user's, and why one failed
watched       an external tool that runs a program
"""
