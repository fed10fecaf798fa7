package hazards;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** Nothing fails: a follower does not fetch for a while, and its leader gets metadata late while min ISR is raised. */
class S38Test {
    @Test
    void anAnswerWaitsForTheMetadataThatItGoesBy() throws Exception {
        Cluster.assumeEligibleLeaderReplicas();
        try (Cluster cluster = new Cluster(2, Map.of("replica.lag.time.max.ms", "5000"))) {
            cluster.createTopic(1, Map.of(0, List.of(0, 1)));
            cluster.produce(0, 50, "all");
            cluster.awaitLogEnd(1, 0, 50);
            cluster.holdMetadata(0);
            cluster.setMinInSyncReplicas(2);
            cluster.freezeFetching(1);
            CompletableFuture<Void> acknowledged = cluster.send(0, 50, "all");
            cluster.awaitIsr(0, 0); // and broker 1 is in the ELR, as the controller wants two
            if (!Cluster.isAcknowledged(acknowledged)) {
                return; // As it should be: min ISR is 2, and one replica has the records.
            }
            cluster.stopBehindMetadata(0, 0, 1);
            cluster.start(0);
            cluster.awaitIsr(0, 0, 1);
            cluster.assertAcknowledgedRecordsAreRead(0, "broker 0 took the ISR from the controller's answer and min ISR from older "
                + "metadata, and acknowledged what it alone had; the controller elected broker 1 from the ELR");
        }
    }
}
