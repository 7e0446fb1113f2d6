"""Level `portable`: CPython as a WebAssembly component, run by wasmtime in child processes, on any system.

`component` builds and keeps it, `runner` is the child process, `children` the host's side of it, and `guest` with
`memory_files` what is inside, around `sandbox.inside` and `sandbox.wire` as they are.
"""
