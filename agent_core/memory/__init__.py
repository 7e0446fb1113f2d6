"""Memory of an agent: blocks that are always in its context, and what it can search.

Blocks are edited by the methods of a memory class; recall is what was said, archival what was put aside.
"""
