"""``python -m onefold`` is the same as ``onefold``."""

from onefold.cli import main

if __name__ == "__main__":
    main()
