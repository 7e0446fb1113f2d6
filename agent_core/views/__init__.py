"""What people read: lines with roles, questions, errors, and the result of a command as a document and as lines."""
