package hazards;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** One disk of three controllers is replaced, while another controller lags; no broker loses anything. */
class Q03Test {
    @Test
    void aReplacedDiskElectsNobodyWhoLacksWhatWasCommitted() throws Exception {
        try (Cluster cluster = new Cluster(3, 3, Map.of("broker.session.timeout.ms", "6000"))) {
            cluster.createTopic(1, Map.of(0, List.of(0, 1, 2)));
            cluster.produce(0, 100, "all");
            int leads = cluster.activeController();
            int lags = leads == 2 ? 1 : 2;
            int replaced = IntStream.range(0, 3).filter(place -> place != leads && place != lags).findFirst().getAsInt();
            cluster.stopController(lags);
            cluster.vanish(2);
            cluster.awaitIsr(0, 0, 1); // committed by the two controllers that run
            cluster.produce(0, 100, "all");

            cluster.stop(1);
            cluster.stop(0);
            cluster.stopController(leads);
            cluster.stopController(replaced);
            cluster.replaceControllerDisk(replaced);
            cluster.startController(replaced);
            cluster.startController(lags);
            cluster.keepAliveUntilItLeads(2, 0); // it is there, and in the ISR, as far as the new controller knows

            cluster.start(2);
            cluster.start(0);
            cluster.start(1);
            cluster.awaitIsr(0, 0, 1, 2);
            cluster.assertAcknowledgedRecordsAreRead(0, "the empty disk of a controller voted for another one, which had not heard that "
                + "broker 2 had left the ISR");
        }
    }
}
