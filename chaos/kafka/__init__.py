"""The driver for Apache Kafka: one JVM per node, looked at from outside."""
