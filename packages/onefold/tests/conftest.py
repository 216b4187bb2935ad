"""That this file lies here makes ``oracle`` and ``columns`` importable from every test below it."""
