"""Suites: many scenarios under many eras, any number of times; ``README.md`` lists the modules."""
