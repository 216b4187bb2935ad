"""The process that runs code under test. Standard library only; imports nothing else of failuremap.

It gets sources and questions and never an expected value, so code that takes it over has nothing to
copy the right answer from. See ``main.py`` for the protocol and ``isolation.py`` for what confines
it.
"""
