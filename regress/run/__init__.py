"""The driver's side of measuring.

plan          who is visited when, and by which protocol (pure functions)
ship          the folder with the measuring code that every worker runs
environments  a side made ready to import: tree, build, interpreter, import path
servers       a worker process and the pipes to it
execute       rounds of all sides, as they arrive
"""
