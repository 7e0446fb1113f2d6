"""What is said of a file that cannot be taken in."""

from ..errors import ToolwrightError


class AgentFileError(ToolwrightError):
    """The file is not what an agent's file must be; the message says where."""

    code = "agent-file"

    def __init__(self, where: str, what: str) -> None:
        self.where, self.what = where, what
        super().__init__(f"{where or 'the file'}: {what}.", mend="The shape is described in docs/agents.md.")


class AgentExists(ToolwrightError):
    """There is an agent of that name, and nothing is written over it."""

    code = "agent-exists"

    def __init__(self, name: str) -> None:
        super().__init__(f"There is an agent `{name}` already.", mend="Choose another name with --as NAME.")


class NoAgent(ToolwrightError):
    """There is no agent of that name."""

    code = "no-agent"

    def __init__(self, name: str, known: list[str]) -> None:
        names = f"There are: {', '.join(known[:20])}." if known else "There is none yet."
        super().__init__(f"There is no agent `{name}`.", mend=names)
