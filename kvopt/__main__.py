"""``python -m kvopt`` is ``kvopt``."""

from kvopt.cli import main

if __name__ == "__main__":
    main()
