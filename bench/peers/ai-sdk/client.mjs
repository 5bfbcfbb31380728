// Vercel AI SDK: generateText and streamText with stopWhen. It keeps no conversation: the caller holds the messages, or
// keeps them in SQLite as rows that we write.
//
//   node --expose-gc client.mjs SCENARIO SERVER [KEY=VALUE...]      env NODE_MODULES: where the packages are

import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';

globalThis.AI_SDK_LOG_WARNINGS = false;

/** The entry that an import in the folder of an application would find. */
function load(name) {
  const folder = path.join(process.env.NODE_MODULES, name);
  const manifest = JSON.parse(fs.readFileSync(path.join(folder, 'package.json')));
  const entry = manifest.exports?.['.'];
  const file = (entry && (entry.import?.default || entry.import || entry.default)) || manifest.module || manifest.main;
  return import(pathToFileURL(path.join(folder, typeof file === 'string' ? file : file.default)).href);
}

const { generateText, streamText, tool, stepCountIs } = await load('ai');
const { createOpenAICompatible } = await load('@ai-sdk/openai-compatible');
const { z } = await load('zod');

const SYSTEM = 'You are a helpful assistant.';
const USER = 'hello there';
const [scenario, server, ...words] = process.argv.slice(2);
const keys = Object.fromEntries(words.map((word) => word.split(/=(.*)/s)));
const turns = Number(keys.turns ?? 100);
const warmUp = Number(keys.warm_up ?? 5);
const atOnce = Number(keys.at_once ?? 1);
const budget = Number(keys.budget ?? Infinity);

const cpuUs = () => { const { user, system } = process.cpuUsage(); return user + system; };

function status(key) {
  const line = fs.readFileSync('/proc/self/status', 'utf8').split('\n').find((line) => line.startsWith(key));
  return Number(line.split(/\s+/)[1]) * 1024;
}

function serverCounts() {
  const { hostname, port } = new URL(server);
  return new Promise((resolve) => {
    let reply = '';
    const socket = net.connect(Number(port), hostname, () =>
      socket.write('GET /stats HTTP/1.1\r\nhost: mock\r\nconnection: close\r\n\r\n'));
    socket.on('data', (data) => { reply += data; });
    socket.on('end', () => resolve(JSON.parse(reply.split('\r\n\r\n')[1])));
  });
}

/** Begins a stretch of work that is measured; what is returned ends it. */
async function region() {
  const counts = await serverCounts();
  const [wall, cpu] = [performance.now(), cpuUs()];
  return async (done, more = {}) => {
    const [cpu_us, wall_us] = [cpuUs() - cpu, (performance.now() - wall) * 1e3];
    const now = await serverCounts();
    console.log(JSON.stringify({
      scenario, turns: done, calls: now.calls - counts.calls, request_bytes: now.bytes - counts.bytes,
      cpu_us, wall_us, peak_bytes: status('VmHWM:'), ...more,
    }));
  };
}

const add = tool({
  description: 'Adds two integers.',
  inputSchema: z.object({ a: z.number().int(), b: z.number().int() }),
  execute: async ({ a, b }) => a + b,
});
const provider = createOpenAICompatible({ name: 'mock', baseURL: `${server}/v1`, apiKey: 'x', includeUsage: true });
const options = (model) => ({ model: provider(model), system: SYSTEM, tools: { add }, stopWhen: stepCountIs(20) });

/** One turn over the messages of a conversation, which get longer by it. */
async function turn(model, messages, text) {
  messages.push({ role: 'user', content: text });
  const result = await generateText({ ...options(model), messages });
  if (!result.text.startsWith('word0')) throw new Error(`the answer was ${result.text}`);
  messages.push(...result.response.messages);
}

async function firstTurns(model, count) {
  for (let index = 0; index < count; index++) await turn(model, [], USER);
}

const said = (conversation, index) => `hello there ${conversation} ${index}`;

function plainBytes(conversation, count) {
  const answer = '{"role":"assistant","content":"word0 word1 word2 "}'.length;
  let bytes = 0;
  for (let index = 0; index < count; index++) {
    bytes += '{"role":"user","content":""}'.length + said(conversation, index).length + answer;
  }
  return bytes;
}

async function grow(one) {
  const [marks, start] = [[cpuUs()], performance.now()];
  for (let index = 0; index < turns; index++) {
    await one(said(0, index));
    marks.push(cpuUs());
    if ((performance.now() - start) / 1e3 > budget) break;
  }
  const count = marks.length - 1;
  const tenth = Math.max(Math.floor(count / 10), 1);
  return {
    count,
    first_us: (marks[tenth] - marks[0]) / tenth,
    last_us: (marks[count] - marks[count - tenth]) / tenth,
  };
}

async function fresh(model) {
  await firstTurns(model, warmUp);
  const end = await region();
  await firstTurns(model, turns);
  await end(turns);
}

/** Transactions in SQLite's write-ahead log now: each ends with a marked frame. */
function commits(db) {
  if (!fs.existsSync(`${db}-wal`)) return null;
  const log = fs.readFileSync(`${db}-wal`);
  if (log.length < 32) return 0;
  const size = log.readUInt32BE(8) + 24;
  let count = 0;
  for (let at = 32; at + size <= log.length; at += size) {
    if (log.compare(log, 16, 24, at + 8, at + 16) !== 0) break;
    count += log.readUInt32BE(at + 4) > 0 ? 1 : 0;
  }
  return count;
}

const scenarios = {
  turn10: () => fresh('loop-10'),
  par16: () => fresh('par-16'),
  async at_once() {
    const all = (count) => Promise.all(Array.from({ length: atOnce }, () => firstTurns('loop-10', count)));
    await all(1);
    const each = Math.ceil(turns / atOnce);
    const end = await region();
    await all(each);
    await end(each * atOnce);
  },
  async long() {
    await firstTurns('say-3', warmUp);
    const messages = [];
    const end = await region();
    const { count, ...growth } = await grow((text) => turn('say-3', messages, text));
    await end(count, growth);
  },
  async longdb() {
    const db = new DatabaseSync(keys.db);
    db.exec('pragma journal_mode = wal; pragma synchronous = full');
    db.exec('create table messages(conversation text not null, seq integer not null, body text not null, primary key(conversation, seq)) without rowid');
    const select = db.prepare('select body from messages where conversation = ? order by seq');
    const insert = db.prepare('insert into messages values(?, ?, ?)');
    const one = async (id, text) => {
      const messages = select.all(id).map((row) => JSON.parse(row.body));
      const had = messages.length;
      await turn('say-3', messages, text);
      db.exec('begin');
      messages.slice(had).forEach((message, index) => insert.run(id, had + index, JSON.stringify(message)));
      db.exec('commit');
    };
    await one('probe', USER);
    const before = commits(keys.db);
    for (let index = 0; index < 10; index++) await one('probe', USER);
    const each = (commits(keys.db) - before) / 10;
    const end = await region();
    const { count, ...growth } = await grow((text) => one('long', text));
    // What the probe said is in the file too.
    await end(count, { ...growth, commits: each, plain_bytes: plainBytes(0, count) + 11 * plainBytes(0, 1) });
  },
  async stream() {
    const one = async () => {
      let chunks = 0;
      const result = streamText({ ...options('say-2000'), prompt: USER });
      for await (const piece of result.textStream) chunks += piece ? 1 : 0;
      return chunks;
    };
    for (let index = 0; index < warmUp; index++) await one();
    const end = await region();
    let chunks = 0;
    for (let index = 0; index < turns; index++) chunks += await one();
    await end(turns, { chunks });
  },
  async idle() {
    await firstTurns('say-3', warmUp);
    const kept = [];
    const end = await region();
    global.gc();
    const before = status('VmRSS:');
    let plain = 0;
    for (let conversation = 0; conversation < turns; conversation++) {
      const messages = [];
      for (let index = 0; index < 10; index++) await turn('say-3', messages, said(conversation, index));
      kept.push(messages);
      plain += plainBytes(conversation, 10);
    }
    global.gc();
    const resident = (status('VmRSS:') - before) / turns;
    await end(turns * 10, { conversations: kept.length, resident_bytes: resident, plain_bytes: plain / turns });
  },
  async cold() {
    await firstTurns('say-3', 1);
    console.log(JSON.stringify({ scenario, turns: 1, calls: 1 }));
  },
};

if (!scenarios[scenario]) throw new Error(`no scenario is called ${scenario}`);
await scenarios[scenario]();
process.exit(0);
