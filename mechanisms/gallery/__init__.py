"""What `configs/gallery` audits in other people's libraries, and the exact laws of their slips."""
