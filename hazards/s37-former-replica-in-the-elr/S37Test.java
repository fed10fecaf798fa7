package hazards;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;

/** Nothing fails: brokers are stopped in order, a replica is moved away and back, and it leads with an empty log. */
class S37Test {
    @Test
    void aFormerReplicaIsNotElected() throws Exception {
        Cluster.assumeEligibleLeaderReplicas();
        try (Cluster cluster = new Cluster(3)) {
            cluster.createTopic(3, Map.of(0, List.of(0, 1, 2), 1, List.of(0, 1, 2)));
            cluster.produce(1, 100, "all");

            cluster.stop(2);
            cluster.awaitIsr(1, 0, 1); // and broker 2 is in the ELR, for min ISR is 3
            cluster.reassign(1, 0, 1);
            cluster.awaitReplicas(1, 0, 1);
            cluster.start(2);
            cluster.awaitLog(2, 1, false);
            cluster.stop(2);
            cluster.reassign(1, 0, 1, 2);

            cluster.stop(1);
            cluster.stop(0);
            cluster.start(2); // it has no record of the partition, and is elected from the ELR
            cluster.start(0);
            cluster.start(1);
            cluster.awaitIsr(1, 0, 1, 2);
            cluster.assertAcknowledgedRecordsAreRead(1, "broker 2 stayed in the ELR while it was no replica and its log was "
                + "deleted; it was elected, as a clean leader, with an empty log");
        }
    }
}
