"""The Spark session, its JVM and its executors. Nothing in this package knows the content of a run."""
