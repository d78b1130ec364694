"""Recognising that memory ran out, on the machine or on an accelerator. No torch here."""

_MEMORY_TEXTS = ("can't allocate memory", "cannot allocate memory", "out of memory")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, MemoryError) or "OutOfMemoryError" in names:
        return True
    # torch's CPU allocator, and some CUDA libraries, raise a plain RuntimeError.
    return isinstance(error, RuntimeError) and any(text in str(error).lower() for text in _MEMORY_TEXTS)
