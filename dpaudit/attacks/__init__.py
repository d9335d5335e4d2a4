"""One file per attack, and what chooses among them."""
