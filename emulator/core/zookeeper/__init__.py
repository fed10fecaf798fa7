"""ZooKeeper as Kafka uses it: operations and answers, an in-memory server, and the nodes that Kafka keeps there."""
