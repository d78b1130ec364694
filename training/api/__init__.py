"""The training app over HTTP."""
