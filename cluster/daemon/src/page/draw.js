"use strict";
// Draws what the daemon says each second. Everything that is said is put in as text, never as markup.

const $ = (id) => document.getElementById(id);
const LONG_SECONDS = 10;
const MANY_HOSTS = 48;

function make(tag, kind, text, ...inner) {
  const node = document.createElement(tag);
  if (kind) node.className = kind;
  if (text !== undefined && text !== null) node.textContent = text;
  node.append(...inner);
  return node;
}

function shown(count, units, base) {
  let unit = 0;
  while (count >= base && unit + 1 < units.length) { count /= base; unit += 1; }
  return (count >= 100 || unit === 0 ? Math.round(count) : count.toPrecision(count >= 10 ? 3 : 2)) + units[unit];
}

const bytes = (count) => shown(count, [" B", " KiB", " MiB", " GiB", " TiB", " PiB"], 1024);

function time(seconds) {
  seconds = Math.max(0, Math.round(seconds));
  if (seconds < 60) return seconds + " s";
  if (seconds < 3600) return Math.floor(seconds / 60) + " min";
  if (seconds < 86400) return Math.floor(seconds / 3600) + " h " + Math.floor(seconds % 3600 / 60) + " min";
  return Math.floor(seconds / 86400) + " d " + Math.floor(seconds % 86400 / 3600) + " h";
}

function bar(share, kind) {
  const inner = make("i");
  inner.style.width = Math.min(100, Math.max(0, 100 * share)) + "%";
  return make("span", "bar " + (kind || "") + (share > 1.1 ? " over" : ""), null, inner);
}

function table(heads, rows) {
  const cell = (tag, value, at) => {
    const kind = heads[at][1] || "";
    return value instanceof Node ? make(tag, kind, null, value) : make(tag, kind, value);
  };
  const row = (values, tag) => make("tr", "", null, ...values.map((value, at) => cell(tag, value, at)));
  const body = make("tbody", "", null, ...rows.map((values) => row(values, "td")));
  return make("table", "", null, make("thead", "", null, row(heads.map((head) => head[0]), "th")), body);
}

const sum = (list, of) => list.reduce((total, each) => total + of(each), 0);

function totals(view) {
  const alive = view.members.filter((member) => member.standing === "alive");
  const slots = sum(view.members, (member) => member.slots);
  const used = sum(view.members, (member) => member.used);
  const cores = sum(alive, (member) => member.load ? member.load.cores : 0);
  const load = sum(alive, (member) => member.load ? member.load.load : 0);
  const total = (name, value, of, share, kind) =>
    make("div", "total", null, make("div", "", name), make("b", "", value), make("span", "", " " + of),
      ...(share === undefined ? [] : [bar(share, kind)]));
  $("totals").replaceChildren(
    total("Hosts", alive.length, "of " + view.members.length, alive.length / Math.max(1, view.members.length), "load"),
    total("Slots in use", used, "of " + slots, used / Math.max(1, slots)),
    total("Load", load.toFixed(load < 100 ? 1 : 0), "on " + cores + " cores", load / Math.max(1, cores), "load"),
    total("Jobs", view.jobs.length, sum(view.jobs, (job) => job.size) + " ranks"),
    total("Queue", view.queue.length, sum(view.queue, (job) => job.ranks) + " ranks"));
}

// What a host is, in one word; alive ones need none.
function word(member) {
  if (member.standing !== "alive") return member.standing;
  return member.slots === 0 ? "drained" : "";
}

function host(member) {
  const load = member.load;
  const name = make("header", "", null, make("b", "", member.name), make("em", "", word(member) ||
    member.used + "/" + member.slots));
  const share = member.used / Math.max(1, member.slots, member.used);
  const lines = [name, bar(share), bar(load ? load.load / Math.max(1, load.cores) : 0, "load")];
  if (member.trouble) {
    lines.push(make("p", "trouble", member.trouble));
  } else if (member.standing !== "alive") {
    lines.push(make("p", "", "for " + time(member.since)));
  } else if (load) {
    const free = bytes(load.free_bytes) + " free";
    lines.push(make("p", "", "load " + load.load.toFixed(1) + " of " + load.cores + ", " + free));
  }
  const tile = make("div", "host " + word(member), null, ...lines);
  const about = [member.name + ": " + (word(member) || "alive"), member.used + " of " + member.slots + " slots"];
  if (load) {
    about.push("load " + load.load.toFixed(1) + " on " + load.cores + " cores", bytes(load.free_bytes) + " free");
    if (load.pressure) about.push("somebody waits for a processor " + Math.round(load.pressure) + " % of the time");
  }
  if (member.trouble) about.push(member.trouble);
  tile.title = about.join(", ");
  return tile;
}

function hosts(view) {
  $("hosts").className = view.members.length > MANY_HOSTS ? "many" : "";
  $("hosts").replaceChildren(...view.members.map(host));
  const kinds = new Map();
  view.members.forEach((member) => kinds.set(word(member), (kinds.get(word(member)) || 0) + 1));
  kinds.delete("");
  $("hosts-note").textContent = [...kinds].map(([kind, count]) => count + " " + kind).join(", ");
}

function partitions(view) {
  const row = (part) => [part.name, part.members.length, bar(part.used / Math.max(1, part.slots)),
    part.used + "/" + part.slots];
  const kept = (one) => make("p", "quiet", "reservation " + one.name + " of " + one.partition + ": " +
    one.hosts.map(([name, slots]) => name + ":" + slots).join(" ") + " for " + (one.users.join(" ") || "nobody") +
    ", " + [one.from, one.until].map((seconds) => new Date(1000 * seconds).toLocaleString()).join(" to "));
  $("partitions").replaceChildren(table([["name", "word"], ["hosts", "n"], ["slots in use", "bars"], ["", "n"]],
    view.partitions.map(row)), ...view.reservations.map(kept));
}

function queue(view) {
  $("queue-note").textContent = view.queue.length ? "" : "nobody waits";
  const row = (job) => [job.job, job.user, job.partition, job.program, job.ranks, time(view.time - job.since),
    job.reason];
  $("queue").replaceChildren(...(view.queue.length ? [table([["job", "word"], ["user"], ["partition"], ["program"],
    ["ranks", "n"], ["waits", "n word"], ["because", "word"]], view.queue.map(row))] : []));
}

function processes(view) {
  const row = (one) => [one.name, one.user, one.kind, one.member, one.pid, one.program, time(view.time - one.since)];
  const heads = [["process", "word"], ["user"], ["kind"], ["host"], ["pid", "n"], ["program"], ["since", "n word"]];
  $("processes").replaceChildren(...(view.processes.length ? [table(heads, view.processes.map(row))] : []));
}

const state = (rank) => rank.blocked === null ? "busy" : rank.seconds > LONG_SECONDS ? "long" : "wait";
const opened = new Set();

function strip(ranks) {
  const cell = (rank) => {
    const square = make("i", "rank " + state(rank));
    square.title = "rank " + rank.rank + " on " + rank.host + ", process " + rank.pid + ": " +
      (rank.blocked === null ? "computes" : rank.blocked + " for " + rank.seconds.toFixed(1) + " s");
    return square;
  };
  return make("div", "strip", null, ...ranks.map(cell));
}

// Ranks that wait for the same are one row.
function blocked(ranks) {
  const groups = new Map();
  for (const rank of ranks) {
    const what = rank.blocked === null ? "computes" : rank.blocked;
    const group = groups.get(what) || { what, ranks: [], longest: 0 };
    group.ranks.push(rank.rank);
    group.longest = Math.max(group.longest, rank.seconds);
    groups.set(what, group);
  }
  const all = [...groups.values()].sort((one, other) => other.ranks.length - one.ranks.length).slice(0, 12);
  return table([["what", ""], ["ranks", "n"], ["longest", "n word"], ["which", ""]],
    all.map((group) => [group.what, group.ranks.length, group.longest.toFixed(1) + " s", ranges(group.ranks)]));
}

function ranges(numbers) {
  const parts = [];
  for (const number of [...numbers].sort((one, other) => one - other)) {
    const last = parts[parts.length - 1];
    if (last && last[1] + 1 === number) last[1] = number; else parts.push([number, number]);
  }
  const text = parts.slice(0, 16).map(([from, to]) => from === to ? from : from + "–" + to).join(", ");
  return parts.length > 16 ? text + ", …" : text;
}

function job(view, each) {
  const command = [each.program.split("/").pop(), ...each.arguments].join(" ");
  // A strip of many ranks shows some of them.
  const step = Math.ceil(each.ranks.length / 128);
  const count = each.hosts.length;
  const summary = make("summary", "", null, make("b", "", each.job), make("span", "", command),
    make("span", "", each.user), make("span", "quiet", each.partition || "no partition"),
    make("span", "quiet", count + (count === 1 ? " host" : " hosts")), make("span", "quiet", time(view.time - each.since)),
    count && step ? strip(each.ranks.filter((_, at) => at % step === 0)) : make("span", "quiet", each.size + " ranks"));
  const node = make("details", "job", null, summary);
  node.open = opened.has(each.job);
  const inside = () => {
    const places = each.hosts.map(([name, count]) => name + ":" + count).join(", ");
    const lines = [make("p", "quiet", each.size + " ranks, priority " + each.priority + ", on " + places + "; weft ps calls it " +
      (each.id || "nothing"))];
    if (each.ranks.length) lines.push(strip(each.ranks), make("div", "rows", null, blocked(each.ranks)));
    if (node.children.length === 1) node.append(make("div", "inner", null, ...lines));
  };
  if (node.open) inside();
  node.addEventListener("toggle", () => {
    if (node.open) { opened.add(each.job); inside(); } else opened.delete(each.job);
  });
  return node;
}

function jobs(view) {
  $("jobs-note").textContent = view.jobs.length ? "" : "none";
  $("jobs").replaceChildren(...view.jobs.map((each) => job(view, each)));
}

// The matrix of traffic: shades by powers of two, since flows differ by orders of magnitude.
let matrix = { names: [], flows: new Map(), most: 0, edge: 0, side: 1 };

function traffic(view) {
  const flows = [...view.traffic].filter((flow) => flow.bytes > 0).sort((one, other) => other.bytes - one.bytes);
  $("flows").replaceChildren(table([["from", "word"], ["to", "word"], ["", "bars"], ["bytes", "n word"]],
    flows.slice(0, 10).map((flow) => [flow.from, flow.to, bar(flow.bytes / flows[0].bytes), bytes(flow.bytes)])));
  const names = view.members.map((member) => member.name);
  matrix = { ...matrix, names, flows: new Map(flows.map((flow) => [flow.from + "\n" + flow.to, flow.bytes])),
    most: flows.length ? flows[0].bytes : 0 };
  $("most").textContent = flows.length ? bytes(matrix.most) : "nothing yet";
  paint();
}

function paint() {
  const canvas = $("matrix");
  const width = canvas.clientWidth;
  const scale = window.devicePixelRatio || 1;
  if (!width || !matrix.names.length) return;
  canvas.width = canvas.height = Math.round(width * scale);
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const style = getComputedStyle(document.documentElement);
  const few = matrix.names.length <= 32;
  pen.font = "11px " + getComputedStyle(document.body).fontFamily;
  const edge = few ? Math.min(90, 8 + Math.max(...matrix.names.map((name) => pen.measureText(name).width))) : 0;
  const side = (width - edge) / matrix.names.length;
  matrix.edge = edge;
  matrix.side = side;
  const gap = side > 6 ? 1 : 0;
  const heat = style.getPropertyValue("--heat");
  pen.fillStyle = style.getPropertyValue("--faint");
  if (!gap) pen.fillRect(edge, edge, width - edge, width - edge);
  matrix.names.forEach((from, row) => matrix.names.forEach((to, column) => {
    const count = matrix.flows.get(from + "\n" + to);
    if (!count && !gap) return;
    const share = count ? Math.max(0.06, 1 - Math.log2(matrix.most / count) / 14) : 0;
    pen.fillStyle = count ? "rgba(" + heat + "," + share.toFixed(3) + ")" : style.getPropertyValue("--faint");
    pen.fillRect(edge + column * side, edge + row * side, Math.max(side - gap, 0.5), Math.max(side - gap, 0.5));
  }));
  if (!few) return;
  pen.fillStyle = style.getPropertyValue("--quiet");
  pen.textBaseline = "middle";
  matrix.names.forEach((name, at) => {
    const middle = edge + (at + 0.5) * side;
    pen.fillText(name, 0, middle, edge - 6);
    pen.save();
    pen.translate(middle, edge - 6);
    pen.rotate(-Math.PI / 2);
    pen.fillText(name, 0, 0, edge - 6);
    pen.restore();
  });
}

function tip(event, text) {
  $("tip").hidden = !text;
  $("tip").textContent = text;
  $("tip").style.left = Math.min(event.clientX + 12, window.innerWidth - 220) + "px";
  $("tip").style.top = event.clientY + 14 + "px";
}

$("matrix").addEventListener("pointermove", (event) => {
  const column = Math.floor((event.offsetX - matrix.edge) / matrix.side);
  const row = Math.floor((event.offsetY - matrix.edge) / matrix.side);
  const [from, to] = [matrix.names[row], matrix.names[column]];
  tip(event, from && to ? from + " → " + to + ": " + bytes(matrix.flows.get(from + "\n" + to) || 0) : "");
});
$("matrix").addEventListener("pointerleave", (event) => tip(event, ""));
window.addEventListener("resize", paint);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);

// A chart of an hour: lines of samples that may lack where the daemon did not run.
const SPACE = "http://www.w3.org/2000/svg";
const HOUR = 3600;

function draw(tag, set) {
  const node = document.createElementNS(SPACE, tag);
  Object.entries(set).forEach(([key, value]) => node.setAttribute(key, value));
  return node;
}

function chart(id, title, unit, lines, samples, now) {
  const most = Math.max(...samples.flatMap((sample) => lines.map((line) => line.of(sample))), lines[0].least) * 1.08;
  const x = (sample) => 600 * (1 - (now - sample.time) / HOUR);
  const y = (value) => 100 - 100 * value / most;
  const picture = draw("svg",
    { viewBox: "0 0 600 100", preserveAspectRatio: "none", role: "img", "aria-label": title });
  [0, 50, 100].forEach((at) => picture.append(draw("line", { class: "grid", x1: 0, x2: 600, y1: at, y2: at })));
  for (const line of lines) {
    const points = samples.map((sample) => x(sample).toFixed(1) + " " + y(line.of(sample)).toFixed(1));
    if (!points.length) continue;
    if (line === lines[0]) {
      const [first, last] = [samples[0], samples.at(-1)].map((sample) => x(sample).toFixed(1));
      const area = "M" + first + " 100L" + points.join("L") + "L" + last + " 100Z";
      picture.append(draw("path", { d: area, style: "fill:var(" + line.color + ");opacity:.14" }));
    }
    picture.append(draw("path", { d: "M" + points.join("L"), "vector-effect": "non-scaling-stroke",
      style: "fill:none;stroke-width:2;stroke-linejoin:round;stroke:var(" + line.color + ")" }));
  }
  const legend = lines.map((line) => {
    const mark = make("i");
    mark.style.background = "var(" + line.color + ")";
    const last = samples.length ? unit(line.of(samples.at(-1))) : "–";
    return make("span", "", null, mark, line.name + " " + last);
  });
  const axis = make("div", "axis", null, make("span", "", "an hour ago"), make("span", "", "top: " + unit(most / 1.08)),
    make("span", "", "now"));
  $(id).replaceChildren(make("figcaption", "", null, make("b", "", title), ...legend), picture, axis);
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const wanted = now - HOUR * (1 - (event.clientX - box.left) / box.width);
    const near = samples.reduce((best, each) =>
      !best || Math.abs(each.time - wanted) < Math.abs(best.time - wanted) ? each : best, null);
    tip(event, near ? time(now - near.time) + " ago: " +
      lines.map((line) => line.name + " " + unit(line.of(near))).join(", ") : "");
  });
  picture.addEventListener("pointerleave", (event) => tip(event, ""));
}

function history({ time: now, samples }) {
  const plain = (count) => count >= 100 ? Math.round(count) : Math.round(10 * count) / 10;
  chart("chart-load", "Load", plain, [
    { name: "load", color: "--load", of: (sample) => sample.load, least: 1 },
    { name: "slots in use", color: "--used", of: (sample) => sample.used }], samples, now);
  chart("chart-jobs", "Jobs", plain, [
    { name: "run", color: "--used", of: (sample) => sample.jobs, least: 1 },
    { name: "wait", color: "--long", of: (sample) => sample.queued }], samples, now);
  chart("chart-traffic", "Traffic", (count) => bytes(count) + "/s", [
    { name: "between hosts", color: "--many", of: (sample) => sample.rate, least: 1024 }], samples, now);
}

function key() {
  const entry = (color, text) => {
    const mark = make("i");
    mark.style.background = "var(" + color + ")";
    return make("li", "", null, mark, text);
  };
  $("hosts-key").replaceChildren(entry("--used", "slots in use"), entry("--load", "load of cores"),
    entry("--long", "more load than cores"));
}

function all(view) {
  document.title = view.cluster + " – Weft";
  $("cluster").textContent = view.cluster;
  $("about").textContent = "version " + view.version + ", jobs are ordered by " + (view.server || "nobody now");
  [totals, hosts, partitions, queue, jobs, processes, traffic].forEach((part) => part(view));
}

async function fetched(name) {
  const answer = await fetch(name, { cache: "no-store", signal: AbortSignal.timeout(5000) });
  if (!answer.ok) throw new Error("the daemon answers " + answer.status);
  return answer.json();
}

function live(kind, text) {
  $("live").className = kind;
  $("live").lastElementChild.textContent = text;
}

async function turn() {
  try {
    const view = await fetched("view.json");
    all(view);
    live("on", new Date(view.time * 1000).toLocaleTimeString());
  } catch (error) {
    live("off", "no answer: " + error.message);
  }
  setTimeout(turn, document.hidden ? 5000 : 1000);
}

async function turnOfHistory() {
  try { history(await fetched("history.json")); } catch { /* the other turn says so */ }
  setTimeout(turnOfHistory, 15000);
}

key();
turn();
turnOfHistory();
