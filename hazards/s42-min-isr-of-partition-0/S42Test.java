package hazards;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;

/** One disk is lost, where min ISR allows one; another partition of the topic has one replica. */
class S42Test {
    @Test
    void minIsrCountsTheReplicasOfThePartition() throws Exception {
        Cluster.assumeEligibleLeaderReplicas();
        try (Cluster cluster = new Cluster(3)) {
            cluster.createTopic(2, Map.of(0, List.of(1, 2, 0), 1, List.of(0, 1, 2)));
            cluster.reassign(0, 1);
            cluster.awaitReplicas(0, 1);
            cluster.produce(1, 100, "all");
            cluster.stop(1);
            cluster.stop(2);
            cluster.awaitIsr(1, 0); // min ISR is 2: broker 2 has to be in the ELR
            cluster.stop(0);
            cluster.loseDisk(0);

            cluster.start(2); // it has every record
            cluster.start(0);
            cluster.start(1);
            cluster.awaitIsr(1, 0, 1, 2);
            cluster.assertAcknowledgedRecordsAreRead(1, "broker 0 had lost its disk and was elected as the last known leader, though "
                + "broker 2 was alive with every record; broker 2 was not in the ELR, because partition 0 has one replica");
        }
    }
}
