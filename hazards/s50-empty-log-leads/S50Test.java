package hazards;

import org.apache.kafka.common.ElectionType;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;

/** Nothing fails after the records were acknowledged: a broker whose log deletion has emptied is stopped and started in order. */
class S50Test {
    @Test
    void aLogThatWasEmptiedDoesNotLeadOthersAway() throws Exception {
        try (Cluster cluster = new Cluster(3)) {
            cluster.createTopic(1, Map.of(0, List.of(0, 1, 2)));
            cluster.stop(1);
            cluster.stop(2);
            cluster.produce(0, 50, "1");
            cluster.deleteRecords(0, 50); // the log of broker 0 is empty, and starts and ends at 50
            cluster.stop(0);

            cluster.start(1);
            cluster.electLeader(ElectionType.UNCLEAN, 0); // broker 1 never had those records
            cluster.awaitLeader(0, 1);
            cluster.start(2);
            cluster.awaitIsr(0, 1, 2);
            cluster.setMinInSyncReplicas(2);
            cluster.produce(0, 50, "all");

            cluster.start(0);
            cluster.awaitIsr(0, 0, 1, 2);
            cluster.electLeader(ElectionType.PREFERRED, 0);
            cluster.awaitLeader(0, 0);
            cluster.produce(0, 50, "all");
            cluster.assertAcknowledgedRecordsAreRead(0, "broker 0 joined the ISR with an empty log that starts at offset 50 and led; "
                + "its followers deleted what they had below 50");
        }
    }
}
