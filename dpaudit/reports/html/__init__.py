"""Write audits as one HTML file with figures that loads no other file."""
