"""The entry point of `python -m knapper`."""

from agent_core.__main__ import main

if __name__ == "__main__":
    main()
