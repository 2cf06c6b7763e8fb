"""One file or folder a command: a function from arguments to a Report. Nothing here prints or exits.

check     measures two sides in turn and judges them
run       measures and records one commit
sweep     measures and records many commits, and finds what changed
bisect    finds the commit that made a change
gate      decides whether a release may go out
compare   judges recorded results
documents files of other suites, as history and as sides
fastest   names the fastest of several implementations
ack       acknowledges regressions
merge     takes results of other folders into results_dir
export    recorded results as a table
report    the pages of the recorded history
profile   where the time of a call goes
explain   the cause of a difference
list      the cases of the suite
config    every setting and where it comes from
build     builds commits without measuring
init      writes a configuration and first benchmarks
doctor    whether this machine is fit to measure
demo      a repository with planted regressions

What measuring commands share is in `regress.session`.
"""
