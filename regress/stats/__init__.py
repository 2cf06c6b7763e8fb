"""Floats in, small frozen dataclasses out; nothing here knows what a benchmark is.

    summary         round values of one side -> Summary; ratios of many cases -> their geometric mean
    ttests          round values of two sides, or pairs -> ratio, interval, p; what such a test could detect; p values adjusted
    modes           round values of two sides -> Modes: two levels that both share
    serial          round values of two sides, in order -> how much each is like the one before it
    ratios          ratios of some items to others -> the value of each, by least squares
    changepoints    values of a history, in order -> the steps between their levels
    segmentation    numbers -> the piecewise constant fit with the least penalised cost

Noise is measured on logarithms, so results do not depend on the unit. SciPy is imported inside
the functions that need a distribution, NumPy inside those that work on whole histories.
"""
