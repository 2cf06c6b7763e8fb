"""One file or folder a command: a function from arguments to a Report. Nothing here prints or exits.

check     two sides, interleaved, with verdicts
run       one side, measured and recorded
sweep     many commits, measured and recorded, and what changed over them
bisect    the commit that did it
gate      whether a release may be made
compare   verdicts from recorded results
documents what other suites have written, as history and as sides
fastest   which of several implementations is the fastest
ack       what is worse and known to be
merge     the results of other folders into results_dir
export    recorded results as a table
report    the pages of the recorded history
profile   where the time of a call goes
explain   what a difference comes from
list      the cases of the suite
config    effective settings
build     a side made ready, and nothing measured
init      a configuration, and the first benchmarks
doctor    whether this machine is fit to measure
demo      a repository with planted regressions

What measuring commands share is `regress.session`'s.
"""
