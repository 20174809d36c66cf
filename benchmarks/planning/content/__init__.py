"""What is in the world before a request: files and pages as they are, mail and events as Python."""
