// Server and client of Node's own library, for the socket tests: node http.js http-server|http-client PORT.
const crypto = require("crypto");
const http = require("http");

const [what, port] = [process.argv[2], Number(process.argv[3])];
const sizes = [1, 1000, 65536, 300000, 3000000];

// The same bytes for the same number, on both sides.
function body(number, size) {
  const key = crypto.createHash("sha256").update(String(number)).digest();
  return crypto.createCipheriv("aes-256-ctr", key, Buffer.alloc(16)).update(Buffer.alloc(size));
}

function serve() {
  const server = http.createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const data = Buffer.concat(parts);
      response.writeHead(200, { "Content-Length": data.length });
      response.end(data);
    });
  });
  server.listen(port, "127.0.0.1");
  process.on("SIGINT", () => process.exit(0));
}

function ask(agent, number, size) {
  const data = body(number, size);
  return new Promise((resolve, reject) => {
    const options = { port, host: "127.0.0.1", method: "POST", agent, headers: { "Content-Length": size } };
    const request = http.request(options, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("end", () => (Buffer.concat(parts).equals(data) ? resolve() : reject(new Error(`answer ${number} is wrong`))));
    });
    request.on("error", reject);
    request.end(data);
  });
}

async function load() {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
  for (let round = 0; round < 100; round++) {
    await Promise.all(sizes.map((size, n) => ask(agent, round * 10 + n, size)));
  }
  agent.destroy();
  console.log("ok");
}

what === "http-server" ? serve() : load();
