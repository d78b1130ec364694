"""The child process that does a job: frozen specification in, typed result out.

It knows no Django, no Celery and no database: everything it needs lies in its work folder.
"""
