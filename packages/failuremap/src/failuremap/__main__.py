"""``python -m failuremap`` is the same as ``failuremap``."""

from failuremap.cli import main

if __name__ == "__main__":
    main()
