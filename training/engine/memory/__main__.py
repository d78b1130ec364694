"""`python -m training.engine.memory`: the memory of a training, from files alone."""

from training.engine.memory.program import main

if __name__ == "__main__":
    main()
