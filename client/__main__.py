"""`python -m client` is `assay`."""

from client.cli import main

if __name__ == "__main__":
    main()
