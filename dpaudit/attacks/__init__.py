"""The attacks, one per file, and the learner that chooses between them."""
