"""A server under load, for as long as one likes: ``python -m benchmarks.load``, or ``make load``.

64 workers push to a real ``onefold serve`` on a directory: small updates, then large ones, dense
and sparse, with retransmissions, replaced updates and workers that come late. Three questions are
answered, the first two by the exit status too:

* Is anything lost? Every aggregate must list each worker once, with the very sending that its
  receipt acknowledged, and have the bits of the exact sum, which :mod:`~benchmarks.load.contents`
  knows beforehand.
* Does the server's memory grow? (:mod:`~benchmarks.load.memory`)
* How long do calls take, over the whole run and window by window? (:mod:`~benchmarks.load.latency`)
"""
