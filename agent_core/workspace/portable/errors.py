"""Errors about a file that cannot be imported."""

from agent_core.base.errors import ToolwrightError


class AgentFileError(ToolwrightError):
    """Error raised when the file is not a valid agent file; the message says where."""

    code = "agent-file"

    def __init__(self, where: str, problem: str) -> None:
        self.where, self.what = where, problem
        super().__init__(f"{where or 'the file'}: {problem}.", fix="The shape is described in docs/agents.md.")


class AgentExists(ToolwrightError):
    """Error raised when an agent of that name exists: nothing is overwritten."""

    code = "agent-exists"

    def __init__(self, name: str) -> None:
        super().__init__(f"There is an agent `{name}` already.", fix="Choose another name with --as NAME.")


class NoAgent(ToolwrightError):
    """Error raised when no agent has that name."""

    code = "no-agent"

    def __init__(self, name: str, known_names: list[str]) -> None:
        names = f"There are: {', '.join(known_names[:20])}." if known_names else "There is none yet."
        super().__init__(f"There is no agent `{name}`.", fix=names)
