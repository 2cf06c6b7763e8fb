"""`regress profile` and `regress once`: where the time of a call goes. The word says what is profiled.

case     a case of the suite, with torch.profiler
script   a program of the user's
ncu      a case kernel by kernel, with Nsight Compute
exports  what a GPUProfiler has written, of one run or compared
foreign  what Nsight Systems or Nsight Compute has written
once     one call of a case, for a profiler outside
"""
