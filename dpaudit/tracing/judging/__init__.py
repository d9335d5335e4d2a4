"""What coupled runs show, judged against a claim: causes, notes, and the table of sites."""
