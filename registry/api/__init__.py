"""The registry app over HTTP."""
