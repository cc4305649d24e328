"""What the benchmarks share. Importing the package imports nothing: peers' interpreters use `protocol`."""
