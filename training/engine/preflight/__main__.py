"""`python -m training.engine.preflight`."""

from training.engine.preflight.program import main

if __name__ == "__main__":
    main()
