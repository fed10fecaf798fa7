"""The verdict: what was lost and how, what it says of each partition, and the files that it is written to."""
