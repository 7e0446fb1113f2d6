"""Functions of other programs: tools of MCP servers, each approved with its exact schema."""
