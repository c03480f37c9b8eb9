// A cluster of Node's own library, for the socket tests: node cluster.js cluster-server|cluster-client PORT. Its first process
// accepts, and passes each connection to one of two workers, which serve it.
const cluster = require("cluster");
const http = require("http");

const [what, port] = [process.argv[2], Number(process.argv[3])];

function work() {
  const server = http.createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => response.end(Buffer.concat(parts)));
  });
  server.listen(port, "127.0.0.1");
  process.on("SIGINT", () => process.exit(0));
}

function serve() {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  for (let number = 0; number < 2; number++) cluster.fork();
  process.on("SIGINT", () => process.exit(0));
}

function ask(agent, data) {
  return new Promise((resolve, reject) => {
    const options = { port, host: "127.0.0.1", method: "POST", agent, headers: { "Content-Length": data.length } };
    const request = http.request(options, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("end", () => (Buffer.concat(parts).equals(data) ? resolve() : reject(new Error("an answer is wrong"))));
    });
    request.on("error", reject);
    request.end(data);
  });
}

// On each connection the first ten requests are small: only then both ends are known to each other.
async function connection(number) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  for (let turn = 0; turn < 500; turn++) {
    await ask(agent, Buffer.alloc(turn < 10 ? 10 : 1 + ((turn * 7919) % 30000), number));
  }
  agent.destroy();
}

async function load() {
  await Promise.all([1, 2, 3, 4].map(connection));
  console.log("ok");
}

what === "cluster-client" ? load() : cluster.isPrimary ? serve() : work();
