"""The parts of the step ``normalise``: each is a function over text that changes one kind of thing."""
