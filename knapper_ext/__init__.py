"""Extensions: packages beside the core, which imports none of them and finds them by listing this folder.

Each says in its `__init__.py` what it adds, as dictionaries from a name that a user types to what is called for it:
`STORES` for the addresses of stores, `LEVELS` for levels of the sandbox, `MODELS` for models that it runs itself, by
the prefix of their names, `MODES` for modes in which calls are sent to models that make none natively, `EMBEDDERS` for
embeddings, `COMMANDS` for commands of the shell (`agent_core/base/extensions.py`).
"""
