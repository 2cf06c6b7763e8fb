"""The driver's side of measuring.

plan          who is visited when, and by which protocol (pure functions)
problems      which problems of the suite count
unmatched     what was named and matches nothing
ship          the folder with the measuring code that every worker runs
environments  a side made ready to import: tree, build, interpreter, import path
servers       a worker process and the pipes to it
ranks         several that visit a case together, as if they were one
processes     which process of a side it is: a fresh one, or a fork where that was found to work
visits        what such processes are asked: the suite, caches, cases
programs      programs of the suite that measure by themselves
nvml          NVML, as the driver's side asks it
gpus          the GPUs that were named, and the processors of each
homes         which of them a case is measured on, and what counts of a round beside others (pure functions)
lanes         a thread and its processes for each of them
turns         which of them work beside each other, and who is alone
job           what is to be measured, and what was
watched       a tool from outside with a program below it
execute       rounds of all sides, as they arrive
"""
