"""The checks of the data that can be made before a step (FACTS section 4), each a function of its own."""
