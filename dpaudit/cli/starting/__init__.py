"""What `dpaudit init` finds out about a mechanism, and the files that it writes."""
