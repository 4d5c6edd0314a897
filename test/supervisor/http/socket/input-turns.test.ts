/** Pipelined requests and chunked bodies are handled in bounded portions, in their order, with bounds for each connection and for all. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { ServerResponse, type IncomingMessage, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import {
  LateHandler,
  createHttpServer,
  type HttpHandler,
} from '../../../../supervisor/http/socket/http-server.js';
import { refuse } from '../../../../supervisor/http/socket/refuse.js';
import { InputTurns } from '../../../../supervisor/http/socket/input-turns.js';
import { eventually } from '../../../helpers/server.js';
import type { TlsPlan } from '../../../../supervisor/options/tls.js';

type Handle = HttpHandler['request'];

interface Options {
  readonly tls?: Pick<TlsPlan, 'cert' | 'key'>;
  readonly turns?: InputTurns;
  /** Called for each request that asks for another protocol, which is declined. */
  readonly onUpgrade?: () => void;
}

async function listening(t: TestContext, request: Handle, options: Options = {}): Promise<Server> {
  const late = new LateHandler();
  const upgrade = (): boolean => {
    options.onUpgrade?.();
    return false;
  };
  late.arrive({ request, upgrade, fail: (error) => assert.fail(error) });
  const turns = options.turns ?? new InputTurns();
  const server = createHttpServer(10_000, late, ServerResponse, turns, options.tls ?? null);
  server.listen(0, '127.0.0.1');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return server;
}

function open(t: TestContext, server: Server): Socket {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  t.after(() => socket.destroy());
  return socket.on('error', () => {});
}

/** Collects what the server sends until a piece ends with `last`; or until it ends the connection. */
async function receive(socket: Socket, last?: string): Promise<string> {
  const pieces: string[] = [];
  for await (const piece of socket.iterator({ destroyOnReturn: false })) {
    pieces.push((piece as Buffer).toString('latin1'));
    if (last !== undefined && pieces.slice(-2).join('').endsWith(`${last}\r\n`)) break;
  }
  return pieces.join('');
}

/** The bodies of the answers, which `answer` wrote; each is one line. */
function bodiesIn(text: string): string[] {
  return [...text.matchAll(/^(?:\/.*)$/gm)].map(([line]) => line.trimEnd());
}

function answer(response: ServerResponse, text: string): void {
  response.setHeader('Content-Length', text.length + 2);
  response.end(`${text}\r\n`);
}

/** Takes longer than a turn has time, so that the parser is stopped behind each request that is pipelined. */
function answerSlowly({ url = '' }: IncomingMessage, response: ServerResponse): void {
  work(1.1);
  answer(response, url);
}

function work(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end;);
}

function get(path: string | number): string {
  return `GET /${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
}

function numbered(count: number, of: (i: number) => string = String): string[] {
  return Array.from({ length: count }, (_, i) => `/${of(i)}`);
}

/** Counts the requests of each turn of the event loop. */
function countTurns(): { readonly note: () => void; readonly most: () => number } {
  const turns: number[] = [];
  let isNew = true;
  return {
    note: () => {
      if (isNew) {
        turns.push(0);
        setImmediate(() => (isNew = true));
      }
      isNew = false;
      turns[turns.length - 1]! += 1;
    },
    most: () => Math.max(...turns),
  };
}

/** Node hands more than 32 headers over before the end of a head; what was answered is then finished in between. */
for (const headers of [0, 40])
  test(`reads of 31 requests with ${headers} headers on each of 8 connections are answered in order, in portions, and another client in between`, async (t) => {
    const turns = countTurns();
    const handled: string[] = [];
    const server = await listening(t, ({ url = '' }, response) => {
      turns.note();
      handled.push(url);
      work(0.3);
      answer(response, url);
    });
    const other = open(t, server);
    await once(other, 'connect');
    const sockets = Array.from({ length: 8 }, () => open(t, server));
    const more = Array.from({ length: headers }, (_, i) => `x-${i}: 1\r\n`).join('');
    const asked = numbered(31).map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`);
    for (const socket of sockets) socket.write(asked.join(''));
    const received = sockets.map((socket) => receive(socket, '/30'));
    await Promise.all([...received, otherAsks()]);
    for (const text of received) assert.deepEqual(bodiesIn(await text), numbered(31));
    assert.ok(turns.most() <= 24, `${turns.most()} requests in one turn`);
    assert.ok(handled.indexOf('/other') < handled.indexOf('/30'), handled.join());
    sockets[0]?.write(get('kept'));
    assert.deepEqual(bodiesIn(await receive(sockets[0] as Socket, '/kept')), ['/kept']);

    async function otherAsks(): Promise<void> {
      await once(server, 'request');
      other.write(get('other'));
      await once(other, 'data');
    }
  });

test('requests with bodies of every kind keep their bodies where a portion ends', async (t) => {
  const server = await listening(t, (request, response) => {
    work(1.1);
    void bodyOf(request).then((body) => answer(response, `${request.url} ${body}`));
  });
  const kinds = [
    (i: number) => `GET /${i} HTTP/1.1\r\nHost: x\r\n\r\n`,
    (i: number) => `POST /${i} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`,
    (i: number) => `POST /${i} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n\r\n\r\n`,
    (i: number) =>
      `POST /${i} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n`,
    (i: number) => `POST /${i} HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n${'x'.repeat(9000)}`,
  ];
  const bodies = ['', '', '4', 'abc', '9000'];
  const wanted = numbered(30, (i) => `${i} ${bodies[i % 5]}`);
  const texts = Array.from({ length: 6 }, () => {
    const socket = open(t, server);
    for (const [i] of wanted.entries()) socket.write((kinds[i % 5] as (i: number) => string)(i));
    return receive(socket, '/29 9000');
  });
  for (const text of texts)
    assert.deepEqual(
      bodiesIn(await text),
      wanted.map((line) => line.trimEnd()),
    );
});

/** The body, or its length if it is not short text. */
async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const piece of request) body += String(piece);
  return /^\w{0,8}$/.test(body) ? body : String(body.length);
}

for (const count of [2, 3, 31]) {
  test(`the last of ${count} pipelined requests is complete, although nothing follows it`, async (t) => {
    const server = await listening(t, (request, response) => {
      work(1.1);
      void bodyOf(request).then(() => answer(response, request.url ?? ''));
    });
    const socket = open(t, server);
    const posts = numbered(count).map(
      (path) => `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`,
    );
    socket.write(posts.join(''));
    const text = await receive(socket, `/${count - 1}`);
    assert.deepEqual(bodiesIn(text), numbered(count));
  });
}

for (const headers of [0, 100])
  for (const spentMs of [0, 1.1])
    test(`of 1000 requests with ${headers} headers in one read, of ${spentMs} ms each, 32 are begun and answered, the last with Connection: close`, async (t) => {
      const begun: string[] = [];
      const server = await listening(t, (request, response) => {
        begun.push(request.url ?? '');
        work(spentMs);
        answer(response, request.url ?? '');
      });
      const more = Array.from({ length: headers }, (_, i) => `x-${i}: 1\r\n`).join('');
      const socket = open(t, server);
      socket.write(
        numbered(1000)
          .map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`)
          .join(''),
      );
      const text = await receive(socket);
      assert.deepEqual(bodiesIn(text), numbered(32));
      assert.deepEqual(begun, numbered(32));
      assert.match(text, /^(?:(?!Connection: close)[^])*\/30\r\n[^]*\r\nConnection: close\r\n[^]*\/31\r\n$/);
    });

test('the last of 32 requests keeps its body, and an upgrade behind it is not begun', async (t) => {
  const begun: ServerResponse[] = [];
  const server = await listening(
    t,
    (request, response) =>
      void bodyOf(request).then((body) => {
        if (begun.push(response) === 32) begun.forEach((each) => answer(each, `${each.req.url} ${body}`));
      }),
    { onUpgrade: () => assert.fail('the upgrade was begun') },
  );
  const socket = open(t, server);
  const body = 'x'.repeat(2000);
  for (const path of numbered(32))
    socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  socket.write('GET /32 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n');
  assert.deepEqual(
    bodiesIn(await receive(socket)),
    numbered(32, (i) => `${i} 2000`),
  );
});

test('a connection with more than 32 requests that wait for their answers ends after 32', async (t) => {
  const waiting: [string, ServerResponse][] = [];
  const server = await listening(t, ({ url = '' }, response) => {
    waiting.push([url, response]);
    if (waiting.length === 32) setTimeout(() => waiting.forEach(([path, each]) => answer(each, path)), 20);
  });
  const socket = open(t, server);
  for (let i = 0; i < 300; i += 10) {
    socket.write(
      numbered(10, (j) => String(i + j))
        .map((path) => get(path.slice(1)))
        .join(''),
    );
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual(bodiesIn(await receive(socket)), numbered(32));
  assert.equal(waiting.length, 32);
});

test('a client that pipelines thousands, but few at a time, keeps its connection', async (t) => {
  const server = await listening(t, ({ url = '' }, response) => answer(response, url));
  const socket = open(t, server);
  for (let i = 0; i < 30; i += 1) {
    socket.write(
      numbered(31)
        .map((path) => get(path.slice(1)))
        .join(''),
    );
    assert.equal(bodiesIn(await receive(socket, '/30')).length, 31);
  }
});

test('what is pipelined behind a refusal that ends its connection is not handed over', async (t) => {
  const handled: string[] = [];
  const server = await listening(t, (request, response) => {
    handled.push(request.url ?? '');
    const isRefused = request.url === '/1';
    if (isRefused) refuse(request, response, { status: 401, headers: {}, body: Buffer.from('no') }, {}, true);
    else answer(response, request.url ?? '');
  });
  const socket = open(t, server);
  socket.write(
    numbered(20)
      .map((path) => get(path.slice(1)))
      .join(''),
  );
  assert.match(await receive(socket), /^HTTP\/1.1 200 [^]*HTTP\/1.1 401 [^]*no$/);
  assert.deepEqual(handled, ['/0', '/1']);
});

test('large answers to pipelined requests wait for a client that reads late', async (t) => {
  const filler = 'x'.repeat(200_000);
  const server = await listening(t, ({ url = '' }, response) => answer(response, `${filler}\r\n${url}`));
  const socket = open(t, server).pause();
  socket.write(
    numbered(31)
      .map((path) => get(path.slice(1)))
      .join(''),
  );
  await once(server, 'request');
  assert.deepEqual(bodiesIn(await receive(socket, '/30')), numbered(31));
});

test('input that waits for its turn has a bound for all connections', async (t) => {
  const server = await listening(t, answerSlowly, {
    turns: new InputTurns(100),
  });
  const socket = open(t, server);
  socket.write(
    numbered(30)
      .map((path) => get(path.slice(1)))
      .join(''),
  );
  assert.ok(bodiesIn(await receive(socket)).length < 30);
});

test('the bound holds on a connection that had a chunked body, and for one whose request is answered', async (t) => {
  const server = await listening(t, answerSlowly, {
    turns: new InputTurns(100),
  });
  const socket = open(t, server);
  socket.write(`${CHUNKED}1\r\nx\r\n0\r\n\r\n`);
  assert.deepEqual(bodiesIn(await receive(socket, '/chunked')), ['/chunked']);
  socket.write(
    numbered(30)
      .map((path) => get(path.slice(1)))
      .join(''),
  );
  assert.ok(bodiesIn(await receive(socket)).length < 30);
  const refused = open(t, server);
  refused.write(CHUNKED + '1\r\nx\r\n'.repeat(9000));
  await once(refused.resume(), 'close');
});

for (const count of [2, 20, 32]) {
  test(`${count} pipelined requests are answered to a client that sends no more`, async (t) => {
    const server = await listening(t, answerSlowly);
    const socket = open(t, server);
    socket.end(
      numbered(count)
        .map((path) => get(path.slice(1)))
        .join(''),
    );
    assert.deepEqual(bodiesIn(await receive(socket)), numbered(count));
  });
}

test('a body in chunks of one byte that goes on behind its answer is cut off, whoever answered', async (t) => {
  const server = await listening(t, ({ url = '' }, response) => answer(response, url));
  const socket = open(t, server);
  socket.write(CHUNKED);
  assert.deepEqual(bodiesIn(await receive(socket, '/chunked')), ['/chunked']);
  socket.write(`${'1\r\nx\r\n'.repeat(200_000)}0\r\n\r\n${get('kept')}`);
  const text = await receive(socket, '/kept').catch(() => ''); // a reset, as a rule
  assert.deepEqual(bodiesIn(text), []);
});

test('the waiting part of a chunked body is thrown away once its client has left', async (t) => {
  const clients = 8;
  const chunks = 9000;
  let pieces = 0;
  let left = clients;
  const server = await listening(t, (request, response) => {
    request.on('data', () => (pieces += 1)).on('error', () => {});
    response.on('close', () => (left -= 1));
  });
  for (let i = 0; i < clients; i += 1) open(t, server).end(CHUNKED + '1\r\nx\r\n'.repeat(chunks));
  await eventually(
    () => left === 0,
    60_000,
    () => `${left} connections are open`,
  );
  assert.ok(pieces < (clients * chunks) / 2, `${pieces} of ${clients * chunks} pieces`);
});

test('a declined upgrade among pipelined requests is answered in its place', async (t) => {
  const server = await listening(t, ({ url = '' }, response) => answer(response, url));
  const socket = open(t, server);
  const requests = numbered(120).map((path, i) =>
    i % 7 === 0
      ? `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n`
      : get(path.slice(1)),
  );
  socket.write(requests.join(''));
  const text = await receive(socket, '/119');
  assert.deepEqual(bodiesIn(text), numbered(120));
});

test('a declined upgrade behind a portion of answered requests is answered, and what follows it', async (t) => {
  const server = await listening(t, answerSlowly);
  const socket = open(t, server);
  const upgrade = 'GET /20 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n';
  const paths = numbered(40);
  socket.write(paths.map((path, i) => (i === 20 ? upgrade : get(path.slice(1)))).join(''));
  assert.deepEqual(bodiesIn(await receive(socket, '/39')), paths);
});

test('declined upgrades are read on in portions, another client is answered in between', async (t) => {
  const turns = countTurns();
  const answered: string[] = [];
  const onUpgrade = (): void => {
    turns.note();
    work(0.3);
  };
  const server = await listening(
    t,
    ({ url = '' }, response) => {
      answered.push(url);
      answer(response, url);
    },
    { onUpgrade },
  );
  const other = open(t, server);
  await once(other, 'connect');
  const socket = open(t, server);
  const requested = once(server, 'upgrade');
  const upgrade = (path: string): string =>
    `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n`;
  socket.write(numbered(200).map(upgrade).join(''));
  await requested;
  other.write(get('other'));
  const [text] = await Promise.all([receive(socket, '/199'), once(other, 'data')]);
  assert.deepEqual(bodiesIn(text), numbered(200));
  assert.ok(turns.most() <= 8, `${turns.most()} upgrades in one turn`);
  assert.ok(answered.indexOf('/other') < answered.indexOf('/199'), answered.join());
});

test('a connection that goes on sending upgrades is cut before its input fills the memory', async (t) => {
  const server = await listening(t, ({ url = '' }, response) => answer(response, url));
  let mostBytes = 0;
  server.on('upgrade', (_request, { readableLength }: Socket, head: Buffer) => {
    mostBytes = Math.max(mostBytes, readableLength + head.length);
  });
  const socket = open(t, server);
  const block = 'GET /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'.repeat(20_000);
  let blocks = 0;
  const pump = (): void => {
    blocks += 1;
    if (mostBytes > 500_000) socket.destroy();
    else if (blocks > 5)
      socket.end(); // it was read as fast as it came
    else if (!socket.destroyed) socket.write(block, pump);
  };
  pump();
  socket.resume();
  await new Promise((resolve) => socket.once('close', resolve)); // a reset may come before
  assert.ok(mostBytes < 500_000, `${mostBytes} bytes waited`);
});

const CHUNKED = 'POST /chunked HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';

test('a body in chunks of one byte is received in portions, another client is answered in between', async (t) => {
  const pieces = countTurns();
  const answered: string[] = [];
  const server = await listening(t, (request, response) => {
    request.on('data', pieces.note);
    let bytes = 0;
    request.on('data', (piece: Buffer) => (bytes += piece.length));
    request.on('end', () => {
      answered.push(request.url ?? '');
      answer(response, `${request.url} ${bytes}`);
    });
  });
  const other = open(t, server);
  await once(other, 'connect');
  const socket = open(t, server);
  const requested = once(server, 'request');
  socket.write(CHUNKED + '1\r\nx\r\n'.repeat(100_000));
  socket.write('0\r\n\r\n' + get('after'));
  await requested;
  other.write(get('other'));
  const [text] = await Promise.all([receive(socket, '/after 0'), once(other, 'data')]);
  assert.deepEqual(bodiesIn(text), ['/chunked 100000', '/after 0']);
  assert.deepEqual(answered, ['/other', '/chunked', '/after']);
  assert.ok(pieces.most() <= 600, `${pieces.most()} pieces in one turn`);
});

test('a chunked body that comes later than its head, and in bits, is received', async (t) => {
  const server = await listening(t, (request, response) => {
    void bodyOf(request).then((body) => answer(response, `${request.url} ${body}`));
  });
  const socket = open(t, server);
  for (let i = 0; i < 3; i += 1) {
    for (const bit of [
      CHUNKED.slice(0, 20),
      CHUNKED.slice(20),
      '2',
      '\r\nab',
      '\r\n1\r\nc',
      '\r\n0\r\n',
      '\r\n',
    ]) {
      socket.write(bit);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    assert.deepEqual(bodiesIn(await receive(socket, 'abc')), ['/chunked abc']);
  }
});

test('a chunked body that is not taken stays with its client, and is whole once it is taken', async (t) => {
  const held: IncomingMessage[] = [];
  const server = await listening(t, (request, response) => {
    held.push(request);
    request.on('end', () => answer(response, '/end'));
  });
  const socket = open(t, server);
  const chunk = `400\r\n${'x'.repeat(1024)}\r\n`;
  socket.write(CHUNKED + chunk.repeat(20_000) + '0\r\n\r\n');
  await once(server, 'request');
  for (let i = 0; i < 100; i += 1) await new Promise((resolve) => setImmediate(resolve));
  const [request] = held as [IncomingMessage];
  assert.ok(request.readableLength < 300_000, `${request.readableLength} bytes are held`);
  let bytes = 0;
  request.on('data', (piece: Buffer) => (bytes += piece.length));
  assert.deepEqual(bodiesIn(await receive(socket, '/end')), ['/end']);
  assert.equal(bytes, 20_000 * 1024);
});
