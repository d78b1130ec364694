"""The evaluation app over HTTP."""
