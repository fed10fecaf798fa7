package hazards;

import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.common.ElectionType;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;

/** One disk is lost, where min ISR allows one, and the ELR feature is downgraded. */
class S40Test {
    @Test
    void anElrThatADowngradeLeftElectsNobody() throws Exception {
        Cluster.assumeEligibleLeaderReplicas();
        try (Cluster cluster = new Cluster(3)) {
            cluster.createTopic(2, Map.of(0, List.of(0, 1, 2)));
            cluster.produce(0, 100, "all");
            cluster.stop(2);
            cluster.stop(1);
            cluster.stop(0); // the partition waits for brokers 0 and 1, its ELR
            cluster.loseDisk(1);
            cluster.updateFeature("eligible.leader.replicas.version", (short) 0, FeatureUpdate.UpgradeType.SAFE_DOWNGRADE);

            cluster.start(1);
            cluster.start(0);
            if (cluster.partition(0).leader < 0) {
                cluster.electLeader(ElectionType.UNCLEAN, 0); // broker 0 has every record, and is the first replica
            }
            cluster.start(2);
            cluster.awaitIsr(0, 0, 1, 2);
            cluster.assertAcknowledgedRecordsAreRead(0, "broker 1 had lost its disk, and was elected by an ELR that a downgrade "
                + "of eligible.leader.replicas.version had left");
        }
    }
}
