"""The driver for Apache Kafka: one JVM per node, observed from outside."""
