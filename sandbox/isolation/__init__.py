"""The kernel wall: one file per mechanism, and `plan`, the ordered list of them."""
