"""Runs a hostile Python program in a supervised, locked-down process.

Takes a `Program`, host functions and `Limits`; gives back an `Outcome`. Has never heard of tools.
"""
