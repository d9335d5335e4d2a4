"""Turn results of audits into the text of reports. These modules print and write nothing."""
