"""That this file lies here makes ``mutations``, ``target`` and the targets importable."""
