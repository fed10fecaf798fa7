"""A judge of runs that shares nothing with the project: Python's standard library, and files by their documented forms.

It was written from the documents alone (``docs/checks.md``, ``docs/verdict.md``, ``docs/packed-files.md``, the
vocabularies of events and histories, Kafka's log format), so that a mistake which the two other oracles share has one
more place in which to show. ``docs/independent-oracle.md`` says what it leaves out.

    python -m tests.independent RUN...
"""
