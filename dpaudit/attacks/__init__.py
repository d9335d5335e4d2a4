"""The attacks, which order outcomes by the evidence for one input, and the learner that chooses
between them. `scorers.py` lists the attacks, `learning.py` tells the learner from top to bottom.
"""
