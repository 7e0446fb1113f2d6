"""The layers that confine function code: namespaces, a small root, Landlock, seccomp, limits, identity.

Linux only. Each module is one layer; `zygote.py` and `worker.py` put them on, in the order that
the kernel demands. A layer that cannot be put on raises OSError and nothing runs.
"""
