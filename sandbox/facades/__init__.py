"""What a program imports instead of real modules."""
