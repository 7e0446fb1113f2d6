"""Operations: what a person, a program or a model can ask for, each defined once for all faces.

The shell, the prompt, the server, MCP, the model's functions and the client read these definitions. A module is a noun.
It may touch the rooms below, and imports no face; what an operation needs is imported when it runs.
"""
