"""The MCP servers that a workspace uses, as the extension knows them."""

from agent_core import Workspace
from knapper_ext.mcp.library import McpLibrary


def library_in(workspace: Workspace) -> McpLibrary:
    """Return the library of a workspace's MCP servers."""
    library = workspace.foreign.by_file["mcp.toml"].library
    assert isinstance(library, McpLibrary)
    return library
