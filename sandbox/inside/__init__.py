"""The code that runs in a worker, after confinement and next to the function's own code.

Nothing here protects anything: the function's code can reach and change all of it. What holds is
the confinement around the process, and the host, which takes every reply as a claim.
"""
