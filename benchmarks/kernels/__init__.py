"""The kernels beside their peers, in one run: ``python -m benchmarks.kernels``, or ``make bench``.

Every case is a race (:mod:`~benchmarks.kernels.measure`): all contestants get the same data and are
timed in turns, so that a phase in which the machine is slow falls on all of them. Each section runs
in a process of its own (:mod:`~benchmarks.kernels.sections`), which gives its memory back and takes
no other section down with it. What was measured is kept in ``results.json``, and
:mod:`~benchmarks.kernels.report` makes a page of it without measuring anything itself.
"""
