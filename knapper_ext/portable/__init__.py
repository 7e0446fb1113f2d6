"""Level `portable`: CPython as a WebAssembly component, run by wasmtime in child processes, on any system.

`component` builds and caches it, `runner` is the child process, and `level` is the host's side. `guest` and
`memory_files` run inside the component, with `sandbox.inside` and `sandbox.wire` unchanged.
"""
