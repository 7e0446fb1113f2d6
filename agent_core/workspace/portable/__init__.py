"""Complete agents in files: an agent is one JSON document; files of MemGPT and Letta can be imported, too."""

from agent_core.base.late import late_names

__getattr__ = late_names(
    __name__,
    {
        "moves": "ImportOptions KnownNames Moves opened_moves reader_of_files",
        "report": "AgentExists AgentFileError AgentReport NoAgent waiting_of",
        "text": "read_file text_of write_file",
    },
)
