"""What in a program is bound to fail, found before its first statement runs."""
