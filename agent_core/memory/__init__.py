"""Memory of an agent: blocks that are always in its context, and content that it can search.

The methods of a memory class edit the blocks. Recall contains the conversation, archival contains stored passages.
"""
