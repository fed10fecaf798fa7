package hazards;

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

            cluster.acknowledgeOthersWithoutBroker0();

            cluster.start(0);
            cluster.haveBroker0LeadAgain();
            cluster.produce(0, 50, "all");
            cluster.assertAcknowledgedRecordsAreRead(0, "broker 0 joined the ISR with an empty log that starts at offset 50 and led; "
                + "its followers deleted what they had below 50");
        }
    }
}
