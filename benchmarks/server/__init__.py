"""The server beside what it is made of, in one run: ``python -m benchmarks.server``.

Client and server share the processors of one machine, over loopback. Everything is timed in turns
with its yardsticks (:mod:`~benchmarks.server.turns`): bare Arrow Flight that throws away what comes
(:mod:`~benchmarks.server.raw`), a plain file, the kernel alone, Flower. Figures are medians.
"""
