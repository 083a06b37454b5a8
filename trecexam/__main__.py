"""`python -m trecexam`."""

from trecexam.cli import main

if __name__ == "__main__":
    main()
