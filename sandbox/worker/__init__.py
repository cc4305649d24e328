"""Everything that runs inside a worker: one program, one process, then the end.

Stdlib, RestrictedPython and the sandbox's leaf modules only; no trio, no threads.
"""
