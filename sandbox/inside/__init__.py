"""The code that runs in a worker after its confinement, in the same process as function code.

Nothing here is a protection: function code can access and change all of it. The protection is the confinement of the
process, and the host, which treats every reply as an unverified claim.
"""
