"""`python -m training.engine.forensics`: the first bad step of a training whose checkpoints are at hand."""

from training.engine.forensics.program import main

if __name__ == "__main__":
    main()
