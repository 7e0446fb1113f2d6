"""What an agent keeps: blocks that are always before it, and what it can search.

Blocks are edited by the methods of a memory class; recall is what was said, archival what was put aside.
"""
