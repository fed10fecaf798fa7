package hazards;

import jdk.jfr.Recording;

import org.junit.jupiter.api.Test;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** One broker loses power, on a file system that may forget a truncation that was not synced. */
class S35Test {
    @Test
    void aTruncationThatWasUndoneIsNoticed() throws Exception {
        try (Cluster cluster = new Cluster(3)) {
            cluster.createTopic(1, Map.of(0, List.of(0, 1, 2)));
            cluster.stop(1);
            cluster.stop(2);
            cluster.produce(0, 50, "1");
            cluster.stop(0);
            Path synced = cluster.copySegments(0, 0);

            cluster.acknowledgeOthersWithoutBroker0();

            Recording syncs = Cluster.recordSyncs();
            cluster.start(0); // it cuts off its 50 records, and copies what the leader has
            cluster.awaitIsr(0, 0, 1, 2);
            boolean isTruncationSynced = cluster.hasSyncedSegments(syncs, 0, 0);
            cluster.kill(0);
            if (!isTruncationSynced) {
                cluster.restoreSegments(0, 0, synced); // the epochs' checkpoint was synced
            }
            cluster.start(0);
            cluster.haveBroker0LeadAgain();
            cluster.assertAcknowledgedRecordsAreRead(0, "a power loss undid a truncation of broker 0's log, but not the leader epoch "
                + "that was written after it; it joined the ISR with other records, leads, and serves those");
        }
    }
}
