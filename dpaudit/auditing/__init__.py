"""Run audits: turn an `AuditSpec`, or recorded outputs, into an `AuditResult`.

engine.py draws from a mechanism; recorded.py takes outputs that were recorded elsewhere;
exact_pmf.py computes with the probabilities that a mechanism states; canaries.py evaluates guesses
about the canaries of one training run. recheck.py recomputes a result from its recorded counts.
"""
