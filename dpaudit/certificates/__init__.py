"""From counts to the numbers of a certificate, and what holds them."""
