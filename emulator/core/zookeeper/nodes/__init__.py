"""The nodes that Kafka keeps in ZooKeeper: where they are and how they are written (Kafka's ``ZkData.scala``)."""
