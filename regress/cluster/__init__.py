"""Measuring on a cluster: what is submitted, where it is kept, and what becomes of it.

plan      which commits go into which task: pure
runs      the folder of a run, which is all that its driver and its tasks share
engine    what reaches nodes: the protocol, and the text of a job
slurm     Slurm, by its own commands
local     processes of this host
states    how a task stands, from what its folder and the engine say: pure

A run is what one sweep submits; its driver plans, follows and merges. A task is a group of commits that one node measures in
turn; an attempt at it has a folder of its own, and counts once it has ended: none continues another. The driver may die at any
time, as its tasks do not know it.
"""

from __future__ import annotations
