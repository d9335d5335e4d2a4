"""Plant typical bugs in mechanisms, and count how many of them the audits of a file notice.

A *mutant* is a mechanism with one planted bug. An audit *kills* a mutant if it passes without the
bug and fails with it. A mutant that no audit kills is *missed* if the bug leaks more than the claim
allows, as a trace or a search shows; else it is *not shown to be a leak* (docs/guides/mutate.md).
"""
