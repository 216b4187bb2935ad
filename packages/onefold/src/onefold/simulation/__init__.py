"""A whole run from one seed: real client, dispatcher, aggregator and ledger in virtual time.

What a test with real processes finds now and then, and cannot find again, is found here by trying
thousands of seeds, and again by the seed: messages that are lost, repeated, delayed past later
steps and overtaken; answers that are lost; workers that are cut off, frozen, killed and started
again, with what they knew or without; a server that is killed before or after any write, loses
power, cannot write, and whose clock jumps. After each thing that happens the guarantees are checked
against a model that knows nothing of how the server decides. (The way is that of FoundationDB,
https://apple.github.io/foundationdb/testing.html.)

* :mod:`~onefold.simulation.model`: the guarantees; read this first.
* :mod:`~onefold.simulation.scenario`: what a seed stands for.
* :mod:`~onefold.simulation.choices`: what chance decides.
* :mod:`~onefold.simulation.world`: one run.
* :mod:`~onefold.simulation.workers`, :mod:`~onefold.simulation.server`,
  :mod:`~onefold.simulation.network`, :mod:`~onefold.simulation.disk`: what takes part, and fails.
* :mod:`~onefold.simulation.tasks`: virtual time.
* :mod:`~onefold.simulation.trace`: what happened, in words.
* :mod:`~onefold.simulation.contents`: the numbers, and what they must come to.
* :mod:`~onefold.simulation.shrinking`: as few faults as still break a guarantee.
* :mod:`~onefold.simulation.campaign`: many seeds, on all processors.
* :mod:`~onefold.simulation.processes`: the processes that run them.
"""
