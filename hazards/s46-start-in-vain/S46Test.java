package hazards;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;

/** One disk is lost, where min ISR allows one; another broker is stopped in order twice, the second time while it starts. */
class S46Test {
    @Test
    void aBrokerThatWasStoppedWhileItStartedHasLostNothing() throws Exception {
        Cluster.assumeEligibleLeaderReplicas();
        try (Cluster cluster = new Cluster(3)) {
            cluster.createTopic(2, Map.of(0, List.of(2, 1, 0)));
            cluster.stop(0);
            cluster.awaitIsr(0, 2, 1);
            cluster.produce(0, 50, "all");
            cluster.stop(2);
            cluster.stop(1);
            cluster.loseDisk(1);
            cluster.start(1); // it is out of the ELR; the partition waits for broker 2, which has everything

            // Broker 2 starts and registers, with the proof of its clean shutdown, and is stopped before it opens its logs.
            // BrokerServer.shutdown does nothing then, so that the registration is all that is left of that start.
            cluster.register(2, cluster.brokerEpoch(2));

            cluster.start(2);
            cluster.start(0);
            cluster.awaitIsr(0, 0, 1, 2);
            cluster.assertAcknowledgedRecordsAreRead(0, "broker 2 stopped in order and lost nothing, but was taken out of the ELR, "
                + "because it had been stopped once more while it started; broker 1, whose disk was lost, leads");
        }
    }
}
