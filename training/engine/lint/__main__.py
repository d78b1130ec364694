"""`python -m training.engine.lint`: a training configuration judged on files alone."""

from training.engine.lint.program import main

if __name__ == "__main__":
    main()
