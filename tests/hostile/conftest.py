"""That this file lies here makes ``target``, ``mutations`` and the others importable from tests."""
