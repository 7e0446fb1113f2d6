"""Functions that other programs offer: tools of MCP servers, under an approval of their exact schemas."""
