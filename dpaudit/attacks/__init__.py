"""The attacks (functions that order outcomes by the evidence for one input), one per file, and the
learner that chooses between them.
"""
