"""Arguments and options that several verbs have."""
