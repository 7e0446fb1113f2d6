"""What examples say and lack: whether a result agrees, whether they suffice, what to offer, how to write one."""
