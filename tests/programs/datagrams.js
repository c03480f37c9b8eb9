// Server and client of Node's own library, for the socket tests: node datagrams.js server|client PORT.
const crypto = require("crypto");
const dgram = require("dgram");

const [what, port] = [process.argv[2], Number(process.argv[3])];
const sizes = [0, 1, 50, 500, 1400, 9000, 40000];

function serve() {
  const server = dgram.createSocket("udp4");
  server.on("message", (data, sender) => server.send(data, sender.port, sender.address));
  server.bind(port, "127.0.0.1");
  process.on("SIGINT", () => process.exit(0));
}

function ask() {
  const asker = dgram.createSocket("udp4");
  let turn = 0;
  let data;
  const next = () => {
    data = crypto.randomBytes(sizes[turn++ % sizes.length]);
    asker.send(data, port, "127.0.0.1");
  };
  asker.on("message", (answer, sender) => {
    if (!answer.equals(data) || sender.port !== port) throw new Error(`answer ${turn} is wrong`);
    if (turn < 1500) return next();
    console.log("ok");
    asker.close();
  });
  next();
}

what === "server" ? serve() : ask();
