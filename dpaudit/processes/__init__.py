"""Manage the processes that dpaudit starts: their number, start, end and replacement, and the data
exchanged with them.

child
    A program that makes draws for dpaudit in a process of its own.
Python child
    A child that runs child_script.py, and in it an isolated Python mechanism.
request
    A message to a Python child: the name of a method of `child_script.Service`, and its arguments.
reply
    Its answer: a line of JSON, followed by raw bytes if the line says so.
outcome
    The output of a draw, or the exception in its place.
slot
    The part of the shared memory for the outcome of one draw of a request.
clock
    A function that returns the seconds left until a time limit.
"""
