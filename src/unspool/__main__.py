"""``python -m unspool`` is ``unspool``."""

from unspool.cli.main import main

if __name__ == "__main__":
    main()
