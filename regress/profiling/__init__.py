"""Reads what profilers wrote: what holds an operation back, and what of two exports can be compared.

bottlenecks   totals of operations -> the ones that take the most, why, and what to try
rounds        exports of several runs -> the rounds of one side

Nothing is gathered here: a program that is profiled needs the first alone.
"""
