"""One file a command: a function from arguments to a Report. Nothing here prints or exits.

session   what measuring commands share: configuration, repository, sides, recording
check     two sides, interleaved, with verdicts
run       one side, measured and recorded
compare   verdicts from recorded results
documents what other suites have written, as history and as sides
merge     the results of other folders into results_dir
export    recorded results as a table
report    the pages of the recorded history
reading   how far the reading of results is
list      the cases of the suite
config    effective settings
doctor    whether this machine is fit to measure
demo      a repository with planted regressions
"""
