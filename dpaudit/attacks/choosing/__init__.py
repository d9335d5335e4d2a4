"""Which attack wins, where it is cut, and how it is bet on: decided on selection draws alone."""
