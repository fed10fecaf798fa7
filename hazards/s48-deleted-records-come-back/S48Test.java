package hazards;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;

/** One broker is killed after records were deleted. */
class S48Test {
    @Test
    void recordsThatComeBackHaveTheirEpoch() throws Exception {
        try (Cluster cluster = new Cluster(3, Map.of("log.flush.start.offset.checkpoint.interval.ms", "600000"))) {
            cluster.createTopic(1, Map.of(0, List.of(0, 1, 2)));
            cluster.stop(1);
            cluster.stop(2);
            cluster.produce(0, 50, "1");
            cluster.stop(0);
            cluster.start(0); // it leads in another epoch
            cluster.awaitLeader(0, 0);
            cluster.deleteRecords(0, 50); // of its epochs the last one is left, and written down; the log start is not
            cluster.awaitWrittenEpochs(0, 0, 1);
            cluster.kill(0);

            cluster.acknowledgeOthersWithoutBroker0();

            cluster.start(0);
            cluster.haveBroker0LeadAgain();
            cluster.assertAcknowledgedRecordsAreRead(0, "broker 0 has the records back that were deleted, without their leader "
                + "epoch; it joined the ISR with them, leads, and serves them instead");
        }
    }
}
