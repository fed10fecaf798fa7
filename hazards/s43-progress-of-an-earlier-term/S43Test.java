package hazards;

import org.apache.kafka.common.ElectionType;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** Nothing fails: brokers get metadata late, and leaders are elected by hand. */
class S43Test {
    @Test
    void aLeaderForgetsWhatFollowersHadBeforeAnotherLeader() throws Exception {
        try (Cluster cluster = new Cluster(3, Map.of("replica.lag.time.max.ms", "240000", "broker.session.timeout.ms", "60000"))) {
            cluster.createTopic(2, Map.of(0, List.of(0, 1, 2)));
            cluster.produce(0, 50, "all");
            cluster.awaitLogEnd(1, 0, 50);
            cluster.freezeFetching(1);
            CompletableFuture<Void> acknowledged = cluster.send(0, 100, "all");
            cluster.awaitLogEnd(2, 0, 150); // broker 2 has the records, broker 1 has not

            cluster.holdMetadata(0);
            cluster.reassign(0, 1, 0, 2);
            cluster.electLeader(ElectionType.PREFERRED, 0);
            cluster.awaitLeader(0, 1);
            cluster.awaitLogEnd(2, 0, 50); // broker 2 has cut them off, as its leader, broker 1, lacks them
            cluster.holdMetadata(2);
            cluster.reassign(0, 0, 1, 2);
            cluster.electLeader(ElectionType.PREFERRED, 0);
            cluster.awaitLeader(0, 0);
            cluster.releaseMetadata(0); // broker 0 hears of both elections at once

            cluster.awaitSeenLogEnd(0, 0, 1, 150);
            if (!Cluster.isAcknowledged(acknowledged)) {
                return; // As it should be: broker 2 is in the ISR, and has not fetched the records.
            }
            cluster.reassign(0, 2, 0, 1);
            cluster.electLeader(ElectionType.PREFERRED, 0);
            cluster.awaitLeader(0, 2);
            cluster.releaseMetadata(2);
            cluster.awaitLogEnd(0, 0, 50);
            cluster.assertAcknowledgedRecordsAreRead(0, "broker 0 counted on what broker 2 had when it led before, and acknowledged "
                + "records that broker 2 had cut off since; broker 2, in the ISR, leads without them");
        }
    }
}
