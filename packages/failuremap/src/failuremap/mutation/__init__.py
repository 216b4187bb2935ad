"""Small mistakes made on purpose, to see whether fixtures notice them."""

from failuremap.mutation.mutants import Mutant, mutants

__all__ = ["Mutant", "mutants"]
