"""The controller of a ZooKeeper cluster: hosted by every broker process, acting in the one that is elected."""
