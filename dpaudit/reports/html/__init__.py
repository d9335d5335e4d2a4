"""Write audits as one HTML file with figures. The file loads no other file."""
