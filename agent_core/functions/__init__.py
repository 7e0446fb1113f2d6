"""Functions, from text to trust: read, judged, admitted, versioned, called and debugged."""
