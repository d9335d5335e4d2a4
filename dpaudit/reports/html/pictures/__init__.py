"""The figures of an audit, a file for each: result in, drawing and words out."""
