// Server and client of the JDK's own library, for the socket tests: java Http.java http-server|http-client PORT.
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;

public class Http {
    static byte[] body(int seed, int size) {
        byte[] bytes = new byte[size];
        new Random(seed).nextBytes(bytes);
        return bytes;
    }

    static void serve(int port) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/", exchange -> {
            byte[] data = exchange.getRequestBody().readAllBytes();
            exchange.sendResponseHeaders(200, data.length);
            exchange.getResponseBody().write(data);
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.start();
    }

    static CompletableFuture<Void> ask(HttpClient client, int port, int seed, int size) {
        byte[] data = body(seed, size);
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/"))
            .version(HttpClient.Version.HTTP_1_1).POST(HttpRequest.BodyPublishers.ofByteArray(data)).build();
        return client.sendAsync(request, HttpResponse.BodyHandlers.ofByteArray()).thenAccept(answer -> {
            if (!Arrays.equals(answer.body(), data)) throw new IllegalStateException("answer " + seed + " is wrong");
        });
    }

    static void load(int port) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        int[] sizes = {1, 1000, 65536, 300000, 3000000};
        for (int round = 0; round < 100; round++) {
            ArrayList<CompletableFuture<Void>> answers = new ArrayList<>();
            for (int n = 0; n < sizes.length; n++) answers.add(ask(client, port, round * 10 + n, sizes[n]));
            for (CompletableFuture<Void> answer : answers) answer.get();
        }
        System.out.println("ok");
        System.exit(0);
    }

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[1]);
        if (arguments[0].equals("http-server")) serve(port); else load(port);
    }
}
