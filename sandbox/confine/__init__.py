"""The layers that confine function code: namespaces, a small root, Landlock, seccomp, limits, identity.

Linux only. Each module is one layer; `zygote.py` applies them, in the order that the kernel requires. A layer
that cannot be applied raises OSError, and nothing runs.
"""
