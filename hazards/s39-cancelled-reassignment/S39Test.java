package hazards;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;

/** Nothing fails: brokers are stopped in order and a reassignment is cancelled, where unclean election is enabled. */
class S39Test {
    @Test
    void aCancelledReassignmentKeepsAReplicaThatIsInSync() throws Exception {
        try (Cluster cluster = new Cluster(4)) {
            cluster.createTopic(Map.of(0, List.of(0, 1)),
                Map.of("min.insync.replicas", "1", "unclean.leader.election.enable", "true"));
            cluster.produce(0, 50, "all");
            cluster.stop(3);
            cluster.reassign(0, 2, 3);
            cluster.awaitIsr(0, 0, 1, 2);
            cluster.stop(1);
            cluster.stop(0);
            cluster.awaitIsr(0, 2);
            cluster.produce(0, 50, "all"); // broker 2 alone has these, and lives to the end

            try {
                cluster.cancelReassignment(0);
            } catch (java.util.concurrent.ExecutionException refused) {
                // As it should be: none of the brokers that remain has the records.
            }
            cluster.start(0);
            cluster.start(1);
            cluster.start(3);
            cluster.assertAcknowledgedRecordsAreRead(0, "cancelling the reassignment made broker 0 the whole ISR, though it was "
                + "down and lacked records that broker 2, alive and in sync, had");
        }
    }
}
