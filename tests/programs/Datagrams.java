// Servers and clients of the JDK's own library, for the socket tests: java Datagrams.java WHAT PORT.
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.DatagramChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.Arrays;
import java.util.Random;

public class Datagrams {
    static final int[] SIZES = {0, 1, 50, 500, 1400, 9000, 40000};

    static void serve(InetSocketAddress address) throws Exception {
        DatagramSocket socket = new DatagramSocket(address);
        byte[] bytes = new byte[65536];
        while (true) {
            DatagramPacket packet = new DatagramPacket(bytes, bytes.length);
            socket.receive(packet);
            socket.send(packet);
        }
    }

    static void serveByChannel(InetSocketAddress address) throws Exception {
        DatagramChannel channel = DatagramChannel.open().bind(address);
        channel.configureBlocking(false);
        Selector selector = Selector.open();
        channel.register(selector, SelectionKey.OP_READ);
        ByteBuffer bytes = ByteBuffer.allocateDirect(65536);
        while (true) {
            selector.select();
            selector.selectedKeys().clear();
            for (SocketAddress sender; (sender = channel.receive(bytes.clear())) != null;) channel.send(bytes.flip(), sender);
        }
    }

    static void check(boolean well, int turn) {
        if (!well) throw new IllegalStateException("answer " + turn + " is wrong");
    }

    static void ask(InetSocketAddress address) throws Exception {
        DatagramSocket socket = new DatagramSocket(0, InetAddress.getByName("127.0.0.1"));
        DatagramChannel channel = DatagramChannel.open().connect(address);
        byte[] bytes = new byte[65536];
        for (int turn = 0; turn < 1000; turn++) {
            byte[] data = new byte[SIZES[turn % SIZES.length]];
            new Random(turn).nextBytes(data);
            socket.send(new DatagramPacket(data, data.length, address));
            DatagramPacket packet = new DatagramPacket(bytes, bytes.length);
            socket.receive(packet);
            check(Arrays.equals(Arrays.copyOf(bytes, packet.getLength()), data), turn);
            check(packet.getSocketAddress().equals(address), turn);
            // It does not write an empty one.
            if (data.length == 0) continue;
            channel.write(ByteBuffer.wrap(data));
            ByteBuffer back = ByteBuffer.allocate(65536);
            channel.read(back);
            check(back.flip().equals(ByteBuffer.wrap(data)), turn);
        }
        System.out.println("ok");
    }

    public static void main(String[] arguments) throws Exception {
        InetSocketAddress address = new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[1]));
        switch (arguments[0]) {
            case "server" -> serve(address);
            case "channel-server" -> serveByChannel(address);
            default -> ask(address);
        }
    }
}
