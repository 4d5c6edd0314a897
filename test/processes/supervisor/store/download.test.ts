/** Downloads from real servers of this machine: received files, refusals, and that failures leave nothing. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { getEventListeners, once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, LookupFunction } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { parseAllowedUrls } from '../../../../supervisor/options/allowed-urls.js';
import {
  DOWNLOAD_LIMITS,
  DownloadGate,
  checkedUrl,
  download,
  type DownloadRules,
} from '../../../../supervisor/store/download.js';
import { checkedLookup } from '../../../../supervisor/store/known-hosts.js';
import { makeCertificate } from '../../../helpers/certificates.js';
import { deadUrl } from '../../../helpers/held-port.js';
import { needs } from '../../../helpers/needs.js';
import { ROOT } from '../../../helpers/server.js';

const LONG = { timeout: 240_000 };

const MODEL = Buffer.from('PK: a model, as far as a download knows');
const SUM = createHash('sha256').update(MODEL).digest('hex');

interface Site {
  readonly port: number;
  /** Url with the address of this machine. */
  readonly url: string;
  /** Requested paths, in order. */
  readonly asked: readonly string[];
}

async function startSite(t: TestContext, answer: RequestListener, host = '127.0.0.1'): Promise<Site> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    answer(request, response);
  });
  return { ...(await open(t, server, host)), asked };
}

async function open(t: TestContext, server: Server, host: string): Promise<{ port: number; url: string }> {
  server.listen(0, host);
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://${host}:${port}` };
}

const whole: RequestListener = (_request, response) => response.end(MODEL);

/** Rules with a new folder, and an assertion that it is empty. */
function rulesFor(
  t: TestContext,
  allowed: string,
  others: Partial<DownloadRules> = {},
): { rules: DownloadRules; assertEmpty: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'banana-download-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return {
    rules: {
      allowed: parseAllowedUrls(allowed),
      folder,
      publicHosts: new Set(),
      gate: new DownloadGate(),
      ...others,
    },
    assertEmpty: () => assert.deepEqual(readdirSync(folder), [], 'nothing is left behind'),
  };
}

/** Asserts that a download fails with this message, and leaves nothing. */
async function assertFails(
  t: TestContext,
  url: string,
  allowed: string,
  message: string | RegExp,
  others: Partial<DownloadRules> = {},
): Promise<void> {
  const { rules, assertEmpty } = rulesFor(t, allowed, others);
  await assert.rejects(download(url, rules), { code: 'SERVE_DOWNLOAD_FAILED', message });
  assertEmpty();
}

/** A look-up with these answers, one after another. */
function namesThat(...answers: readonly (readonly string[])[]): { lookup: LookupFunction; asked: string[] } {
  const asked: string[] = [];
  const lookup: LookupFunction = (name, _options, callback) => {
    const found = answers[Math.min(asked.length, answers.length - 1)] ?? [];
    asked.push(name);
    callback(
      null,
      found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
  return { lookup, asked };
}

test('a file is complete, and readable by its user only', async (t) => {
  const site = await startSite(t, whole);
  const { rules, assertEmpty } = rulesFor(t, site.url);
  const { path, sha256 } = await download(`${site.url}/zoo/my%20cats.tar.gz?token=1`, rules);
  assert.deepEqual(readFileSync(path), MODEL);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(sha256, SUM);
  assert.match(path, /my_20cats\.tar\.gz$/);
  assert.deepEqual(site.asked, ['/zoo/my%20cats.tar.gz?token=1']);
  rmSync(path);
  assertEmpty();
});

test('an invalid address is refused before one that is not allowed, and no server gets a request', async (t) => {
  const site = await startSite(t, whole);
  const nothing = parseAllowedUrls('');
  const secret = site.url.replace('//', '//user:secret@');
  assert.throws(() => checkedUrl('http://user:secret@[bad?secret', nothing), {
    code: 'SERVE_MODEL_NOT_FOUND',
    message: 'Invalid model url: http://[bad',
  });
  await assertFails(
    t,
    `${site.url}/m.mar`,
    '',
    `Failed to download model from: ${site.url}/m.mar: not allowed (allowed_urls)`,
  );
  await assertFails(
    t,
    `${secret}/m.mar?key=secret`,
    site.url,
    `Failed to download model from: ${site.url}/m.mar: not allowed (allowed_urls)`,
  );
  assert.deepEqual(site.asked, []);
});

for (const fragment of ['#sha256=abc', '#md5=d41d8cd98f00b204e9800998ecf8427e', '#cats']) {
  test(`the fragment ${fragment} is refused and not ignored`, () => {
    assert.throws(() => checkedUrl(`https://a.test/m.mar${fragment}`, parseAllowedUrls('https://a.test')), {
      code: 'SERVE_MODEL_NOT_FOUND',
      message:
        'Invalid model url: https://a.test/m.mar: only #sha256= and the 64 digits of a checksum may follow its path',
    });
  });
}

test('a checksum is compared, in any case', async (t) => {
  const site = await startSite(t, whole);
  const { rules } = rulesFor(t, site.url);
  const { sha256 } = await download(`${site.url}/m.mar#sha256=${SUM.toUpperCase()}`, rules);
  assert.equal(sha256, SUM);
  assert.deepEqual(site.asked, ['/m.mar'], 'the request has no fragment');
});

test('a file with another checksum is refused', async (t) => {
  const site = await startSite(t, whole);
  const reason = `the file has the SHA-256 checksum ${SUM}, not the one that was asked for`;
  const message = `Failed to download model from: ${site.url}/m.mar: ${reason}`;
  await assertFails(t, `${site.url}/m.mar#sha256=${'0'.repeat(64)}`, site.url, message);
});

for (const status of [204, 206, 304, 401, 404, 500]) {
  test(`status ${status} is reported with Multi Model Server's message`, async (t) => {
    const site = await startSite(t, (_request, response) => response.writeHead(status).end());
    const message = `Failed to download model from: ${site.url}/m.mar, code: ${status}`;
    await assertFails(t, `${site.url}/m.mar?secret`, site.url, message);
  });
}

test('a refused connection is reported with the reason', async (t) => {
  const url = await deadUrl();
  await assertFails(
    t,
    `${url}/m.mar`,
    url,
    /^Failed to download model from: http:\/\/127\.0\.0\.1:\d+\/m\.mar: connect ECONNREFUSED/,
  );
});

test('a redirect to an allowed address is followed, with the checksum of the first address', async (t) => {
  const store = await startSite(t, whole);
  const site = await startSite(t, (_request, response) =>
    response.writeHead(302, { Location: `${store.url}/signed/m?token=secret` }).end('gone'),
  );
  const allowed = `${site.url},${store.url}/signed/`;
  const { rules } = rulesFor(t, allowed);
  const { path } = await download(`${site.url}/m.mar#sha256=${SUM}`, rules);
  assert.match(path, /m\.mar$/, 'it has the name of the requested path');
  assert.deepEqual(store.asked, ['/signed/m?token=secret']);
  await assertFails(
    t,
    `${site.url}/m.mar#sha256=${'0'.repeat(64)}`,
    allowed,
    /not the one that was asked for$/,
  );
});

test('a redirect to a private address without an entry is refused, and that server gets no request', async (t) => {
  const inside = await startSite(t, whole, '127.0.0.2');
  const site = await startSite(t, (_request, response) =>
    response.writeHead(301, { Location: `${inside.url}/latest/credentials?secret` }).end(),
  );
  const place = `${inside.url}/latest/credentials`;
  const message = `Failed to download model from: ${site.url}/m.mar: redirected to ${place}, which is not allowed (allowed_urls)`;
  await assertFails(t, `${site.url}/m.mar`, site.url, message);
  assert.deepEqual(inside.asked, []);
});

test('a redirect to another path of the same host is refused if no entry allows it', async (t) => {
  const site = await startSite(t, (_request, response) =>
    response.writeHead(307, { Location: '../secret.mar' }).end(),
  );
  await assertFails(t, `${site.url}/zoo/m.mar`, `${site.url}/zoo/`, /redirected to .*\/secret\.mar, which/);
  assert.deepEqual(site.asked, ['/zoo/m.mar']);
});

test('a redirect to an invalid address is refused', async (t) => {
  const site = await startSite(t, (_request, response) =>
    response.writeHead(302, { Location: 'http://[bad' }).end(),
  );
  await assertFails(t, `${site.url}/m.mar`, site.url, /redirected to something that is not a valid address$/);
});

test('redirects in a cycle are refused after five', async (t) => {
  const site = await startSite(t, (_request, response) =>
    response.writeHead(308, { Location: '/m.mar' }).end(),
  );
  await assertFails(t, `${site.url}/m.mar`, site.url, /it was redirected more than 5 times$/);
  assert.equal(site.asked.length, 6);
});

test('informational responses are limited, though each is progress', { timeout: 240_000 }, async (t) => {
  const site = await startSite(t, (_request, response) => {
    const inform = (): void => response.writeEarlyHints({ link: '</x>; rel=preload' }, inform);
    inform();
  });
  await assertFails(
    t,
    `${site.url}/m.mar`,
    site.url,
    /: the host sent more than 20 informational \(1xx\) responses$/,
  );
});

test('a name is looked up once, and the connection goes to the checked address', async (t) => {
  const site = await startSite(t, whole);
  const inside = createServer((_request, response) => response.end('a secret'));
  inside.listen(site.port, '127.0.0.2');
  await once(inside, 'listening');
  t.after(() => inside.close());
  const { lookup, asked } = namesThat(['127.0.0.1'], ['127.0.0.2']);
  const { rules } = rulesFor(t, 'http://models.test:', { lookup });
  const { sha256 } = await download(`http://models.test:${site.port}/m.mar`, rules);
  assert.equal(sha256, SUM);
  assert.deepEqual(asked, ['models.test']);
});

test('a name that changes from a public address to one of this machine is refused, and no server gets a request', async (t) => {
  const site = await startSite(t, whole);
  const { lookup } = namesThat(['203.0.113.7'], ['127.0.0.1']);
  const publicHosts = new Set<string>();
  await new Promise<void>((resolve) =>
    checkedLookup(lookup, publicHosts)('models.test', {}, () => resolve()),
  );
  const url = `http://models.test:${site.port}/m.mar`;
  const reason = 'models.test had a public address before and now has the private address 127.0.0.1';
  const message = `Failed to download model from: ${url}: ${reason}; if that is intended, restart the server`;
  await assertFails(t, url, 'http://models.test:', message, { lookup, publicHosts });
  assert.deepEqual(site.asked, []);
});

test('a name with a public and a private address is allowed again and again', async () => {
  const { lookup } = namesThat(['203.0.113.7', '10.0.0.5']);
  const checked = checkedLookup(lookup, new Set());
  for (let times = 0; times < 2; times += 1) {
    const error = await new Promise((resolve) => checked('models.test', { all: true }, resolve));
    assert.equal(error, null);
  }
});

for (const address of ['169.254.169.254', 'fe80::1', '0.0.0.0']) {
  test(`a name that resolves to ${address} is refused, even with other addresses`, async (t) => {
    const { lookup } = namesThat(['127.0.0.1', address]);
    const reason = `models.test resolves to ${address}, which a host name may not resolve to; if that is intended, put the address itself into allowed_urls`;
    const message = `Failed to download model from: http://models.test/m.mar: ${reason}`;
    await assertFails(t, 'http://models.test/m.mar', 'http://models.test', message, { lookup });
  });
}

test('an unknown name is reported', async (t) => {
  const lookup: LookupFunction = (name, _options, callback) =>
    callback(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' }), []);
  await assertFails(
    t,
    'http://models.test/m.mar',
    'http://models.test',
    /: getaddrinfo ENOTFOUND models\.test$/,
    {
      lookup,
    },
  );
});

test('a name of this machine is looked up by the system', async (t) => {
  const site = await startSite(t, whole);
  const { rules } = rulesFor(t, 'http://localhost:');
  const { sha256 } = await download(`http://localhost:${site.port}/m.mar`, rules);
  assert.equal(sha256, SUM);
});

/** `sends` writes the answer. */
const DRIPS: readonly (readonly [what: string, sends: RequestListener, message: RegExp])[] = [
  ['that never answers', () => {}, /: Headers Timeout Error$/],
  ['that stops', (_request, response) => response.write(MODEL), /: Body Timeout Error$/],
];
for (const [what, sends, message] of DRIPS) {
  test(`a download from a server ${what} is cancelled`, async (t) => {
    const site = await startSite(t, sends);
    await assertFails(t, `${site.url}/m.mar`, site.url, message, { limits: { idleMs: 1000 } });
  });
}

test('a download from a server that drips is cancelled after the total limit', async (t) => {
  const site = await startSite(t, (_request, response) => {
    const drip = setInterval(() => response.write('x'), 20);
    response.once('close', () => clearInterval(drip));
  });
  await assertFails(t, `${site.url}/m.mar`, site.url, /: it took longer than 300 ms$/, {
    limits: { totalMs: 300 },
  });
});

test('a file that is too large is refused, with or without Content-Length', async (t) => {
  const announced = await startSite(t, whole);
  const limits = { maxBytes: MODEL.length - 1 };
  const message = new RegExp(`: it is larger than ${limits.maxBytes} bytes$`);
  await assertFails(t, `${announced.url}/m.mar`, announced.url, message, { limits });
  const chunked = await startSite(t, (_request, response) => {
    response.write(MODEL.subarray(0, 5));
    response.end(MODEL.subarray(5));
  });
  await assertFails(t, `${chunked.url}/m.mar`, chunked.url, message, { limits });
});

test('a truncated file is refused', async (t) => {
  const site = await startSite(t, (_request, response) => {
    response.writeHead(200, { 'Content-Length': 1000 });
    response.write(MODEL, () => response.destroy());
  });
  await assertFails(t, `${site.url}/m.mar`, site.url, /^Failed to download model from: \S+: \w/);
});

test('a cancelled download ends at once, with its connection', async (t) => {
  const left = new AbortController();
  let closed: Promise<unknown> | undefined;
  const site = await startSite(t, (_request, response) => {
    closed = once(response, 'close');
    response.write(MODEL, () => left.abort());
  });
  const options = { signals: [left.signal] };
  await assertFails(t, `${site.url}/m.mar`, site.url, /: its request has ended$/, options);
  await closed;
  await assertFails(t, `${site.url}/m.mar`, site.url, /: its request has ended$/, options);
  assert.equal(site.asked.length, 1, 'a cancelled download does not begin');
});

test('1,000 downloads leave no listeners on signals that outlive them', LONG, async (t) => {
  const site = await startSite(t, whole);
  const signals = [new AbortController().signal, new AbortController().signal];
  const { rules, assertEmpty } = rulesFor(t, site.url, { signals });
  const fetchAgain = async (): Promise<void> => rmSync((await download(`${site.url}/m.mar`, rules)).path);
  for (let i = 0; i < 1000; i += 4) await Promise.all(Array.from({ length: 4 }, fetchAgain));
  assert.equal(site.asked.length, 1000);
  assert.deepEqual(
    signals.map((signal) => getEventListeners(signal, 'abort').length),
    [0, 0],
  );
  assertEmpty();
});

test('a waiting download can be cancelled, and the next one starts', async (t) => {
  const gate = new DownloadGate(1, 2);
  const leave = await gate.enter(new AbortController().signal);
  const site = await startSite(t, whole);
  const left = new AbortController();
  const { rules } = rulesFor(t, site.url, { gate });
  const url = `${site.url}/m.mar`;
  const given = download(url, { ...rules, signals: [left.signal] });
  const kept = download(url, rules);
  await assert.rejects(download(url, rules), {
    code: 'SERVE_OVERLOADED',
    message: `Failed to download model from: ${url}: 1 downloads are running and 2 waiting; try again later`,
    retryAfterS: 30,
  });
  left.abort();
  await assert.rejects(given, { code: 'SERVE_DOWNLOAD_FAILED', message: /: its request has ended$/ });
  assert.equal(site.asked.length, 0);
  leave();
  rmSync((await kept).path);
  rmSync((await download(url, rules)).path);
  assert.equal(site.asked.length, 2);
});

test('the wait at the gate counts for the total limit', async (t) => {
  const gate = new DownloadGate(1, 1);
  const leave = await gate.enter(new AbortController().signal);
  const options = { gate, limits: { totalMs: 20 } };
  const url = 'http://127.0.0.1:9/m.mar';
  await assertFails(
    t,
    url,
    'http://127.0.0.1:9',
    `Failed to download model from: ${url}: it took longer than 20 ms`,
    options,
  );
  leave();
});

test('a full disk is reported, and the partial file is removed', { skip: needs('unshare') }, async (t) => {
  const site = await startSite(t, (_request, response) => response.end(Buffer.alloc(1024 * 1024)));
  const { rules } = rulesFor(t, site.url);
  const module = new URL('../../../../supervisor/store/', import.meta.url).href;
  const program = `
    const { DownloadGate, download } = await import('${module}download.js');
    const rules = { ...JSON.parse(process.argv[1]), publicHosts: new Set(), gate: new DownloadGate() };
    const message = await download('${site.url}/m.mar', rules).catch((error) => error.message);
    console.log(JSON.stringify([message, (await import('node:fs')).readdirSync(rules.folder)]));`;
  const mount = 'mount -t tmpfs -o size=64k tmpfs "$0" && exec "$@"';
  const node = [process.execPath, '--input-type=module', '-e', program, JSON.stringify(rules)];
  const shell = ['--map-root-user', '--mount', 'sh', '-c', mount, rules.folder, ...node];
  const { stdout } = await promisify(execFile)('unshare', shell);
  const message = `${site.url}/m.mar: the server's temp folder has no space for it. Free some space, or set TMPDIR to another folder.`;
  assert.deepEqual(JSON.parse(stdout), [message, []]);
});

test('certificates are verified', { skip: needs('openssl') }, async (t) => {
  const { key, cert } = makeCertificate(t);
  const server = createTlsServer({ key, cert }, whole);
  const { port } = await open(t, server, '127.0.0.1');
  const url = `https://localhost:${port}/m.mar`;
  const { lookup } = namesThat(['127.0.0.1']);
  await assertFails(t, url, 'https://localhost:', /: self-signed certificate/, { lookup });
  const { rules } = rulesFor(t, 'https://localhost:', { lookup, ca: cert });
  assert.equal((await download(url, rules)).sha256, SUM);
  const other = rulesFor(t, 'https://other.test:', { lookup, ca: cert });
  await assert.rejects(download(`https://other.test:${port}/m.mar`, other.rules), /altnames/);
  other.assertEmpty();
});

test('docs/security.md has the limits', () => {
  const page = readFileSync(`${ROOT}docs/security.md`, 'utf8');
  const { running, waiting, maxBytes, totalMs, idleMs, maxRedirects } = DOWNLOAD_LIMITS;
  assert.deepEqual([running, waiting, totalMs, maxRedirects], [4, 32, 3_600_000, 5]);
  for (const limit of [
    'Four downloads run at once, 32 wait for their turn',
    `${maxBytes / 1024 ** 3} GB, an hour with the wait, and ${idleMs / 1000} s of silence`,
    'Redirects, five at most',
  ])
    assert.ok(page.includes(limit), limit);
});
