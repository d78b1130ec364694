"""`assay up`: all of Assay on one machine, under one supervisor.

The supervisor loads no Django: it prepares a home folder, starts processes by their command lines, starts
those again that die, and takes all of them down with it.
"""
