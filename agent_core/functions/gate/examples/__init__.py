"""Examples: whether a result agrees, whether there are enough, what to suggest, how to write one."""
