package org.apache.kafka.test;

import java.io.File;
import java.io.IOException;

/** The one method that the test kit of Kafka 4.4 needs of a class of this name, whose jar is not published. */
public final class TestUtils {
    private TestUtils() {
    }

    public static File tempFile(String prefix, String suffix) throws IOException {
        File file = File.createTempFile(prefix, suffix);
        file.deleteOnExit();
        return file;
    }
}
