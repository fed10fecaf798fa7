"""The verdict: lost records and their stories, the results of each partition, and the files of a verdict."""
