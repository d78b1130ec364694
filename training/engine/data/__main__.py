"""`python -m training.engine.data`: the data commands on files alone."""

from training.engine.data.program.app import main

if __name__ == "__main__":
    main()
