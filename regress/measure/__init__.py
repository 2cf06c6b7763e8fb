"""The code that runs in the process under test.

The driver copies this folder under the private name `_regress_measure` beside each side, so that both sides are measured
by the same code and nothing has to be installed there. Hence the rules of this folder: the standard library and
asv_runner only, relative imports only, the syntax of Python 3.9.
"""
