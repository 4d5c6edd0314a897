/** Webhooks to real receivers on free ports; the tests end the delays between attempts. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Webhook as Verifier } from 'standardwebhooks';
import { parseWebhookSecrets } from '../../../supervisor/options/secrets.js';
import {
  Webhooks,
  type Clock,
  type WebhooksOptions,
  newWebhookId,
  type Webhook,
  type WebhookEnd,
  type WebhookKeeper,
} from '../../../supervisor/webhooks/webhooks.js';
import { deadUrl } from '../../helpers/held-port.js';
import { startReceiver } from '../../helpers/receiver.js';
import { eventually } from '../../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

/** A clock whose time passes only in `skip`. */
class FakeClock implements Clock {
  #nowMs = Date.now();
  readonly waits: { atMs: number; callback: () => void }[] = [];

  now(): number {
    return this.#nowMs;
  }

  after(ms: number, callback: () => void): () => void {
    const wait = { atMs: this.#nowMs + ms, callback };
    this.waits.push(wait);
    return () => {
      const index = this.waits.indexOf(wait);
      if (index >= 0) this.waits.splice(index, 1);
    };
  }

  /** Waits for a timer, lets its time pass and returns that time. */
  async skipToNext(): Promise<number> {
    await eventually(
      () => this.waits.length > 0,
      60_000,
      () => 'no timer is set',
    );
    const next = this.waits.reduce((a, b) => (a.atMs <= b.atMs ? a : b));
    const ms = next.atMs - this.#nowMs;
    this.#nowMs = next.atMs;
    this.waits.splice(this.waits.indexOf(next), 1);
    next.callback();
    return ms;
  }
}

interface Line {
  readonly level: 'debug' | 'warn';
  readonly about: Record<string, unknown>;
  readonly text: string;
}

function setUp(
  t: TestContext,
  options: Partial<WebhooksOptions> = {},
): { webhooks: Webhooks; clock: FakeClock; warnings: () => Line[]; lines: Line[] } {
  const lines: Line[] = [];
  const at =
    (level: Line['level']) =>
    (about: unknown, text?: string): void =>
      void lines.push({ level, about: about as Record<string, unknown>, text: text ?? '' });
  const clock = new FakeClock();
  const log = { debug: at('debug'), warn: at('warn') } as unknown as WebhooksOptions['log'];
  const webhooks = new Webhooks({ log, signer: null, clock, random: () => 0, ...options });
  t.after(() => webhooks.close());
  return { webhooks, clock, lines, warnings: () => lines.filter(({ level }) => level === 'warn') };
}

function webhookTo(url: string, fields: Partial<Webhook> = {}): Webhook {
  return {
    id: newWebhookId(),
    url,
    body: Buffer.from('{"n":1}'),
    contentType: '',
    requestId: 'req-1',
    ...fields,
  };
}

/** Sends a webhook and resolves with its end. */
function sent(webhooks: Webhooks, webhook: Webhook): Promise<WebhookEnd> {
  return new Promise((resolve) => assert.ok(webhooks.send(webhook, { onEnd: resolve }), 'taken'));
}

test('a webhook is a POST of its body with its ids, and owed until it is delivered', LIMIT, async (t) => {
  const receiver = await startReceiver(t);
  const { webhooks, warnings, lines } = setUp(t);
  const body = Buffer.from('{"text":"ü"}');
  const end = sent(webhooks, webhookTo(`${receiver.url}/a/b?x=1`, { id: 'msg_1', body }));
  assert.equal(webhooks.owed, 1);
  body.fill(0); // the caller may reuse the memory
  assert.equal(await end, 'delivered');
  assert.equal(webhooks.owed, 0);
  const [arrival] = receiver.arrivals;
  assert.equal(arrival?.method, 'POST');
  assert.equal(arrival.path, '/a/b?x=1');
  assert.equal(arrival.body.toString(), '{"text":"ü"}');
  assert.equal(arrival.headers['content-type'], 'application/json');
  assert.equal(arrival.headers['webhook-id'], 'msg_1');
  assert.match(arrival.headers['webhook-timestamp'] as string, /^\d{10}$/);
  assert.equal(arrival.headers['webhook-signature'], undefined);
  assert.equal(arrival.headers['x-banana-request-id'], 'req-1');
  assert.equal(arrival.headers['x-request-id'], 'req-1');
  assert.match(arrival.headers['user-agent'] as string, /^banana-serve\/\d/);
  assert.deepEqual(warnings(), []);
  assert.deepEqual(
    lines.map(({ text }) => text),
    [`Webhook to ${receiver.url}/a/b was delivered`],
  );
});

test('an independent implementation verifies the signature of each secret', LIMIT, async (t) => {
  const receiver = await startReceiver(t);
  const second = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
  const { webhooks } = setUp(t, { signer: parseWebhookSecrets(`${SECRET} ${second}`) });
  assert.equal(await sent(webhooks, webhookTo(receiver.url)), 'delivered');
  const [arrival] = receiver.arrivals;
  for (const secret of [SECRET, second]) {
    const headers = arrival?.headers as Record<string, string>;
    assert.deepEqual(new Verifier(secret).verify(arrival?.body as Buffer, headers), { n: 1 });
  }
});

test(
  '500 twice, then 200: delivered, with one id, each attempt signed anew, no warning',
  LIMIT,
  async (t) => {
    const receiver = await startReceiver(t, (response, count) => {
      response.statusCode = count < 3 ? 500 : 200;
      response.end('a body that is not read');
    });
    const { webhooks, clock, warnings } = setUp(t, { signer: parseWebhookSecrets(SECRET) });
    const end = sent(webhooks, webhookTo(receiver.url));
    assert.equal(await clock.skipToNext(), 1000);
    assert.equal(await clock.skipToNext(), 4000);
    assert.equal(await end, 'delivered');
    const headers = receiver.arrivals.map((arrival) => arrival.headers);
    assert.equal(new Set(headers.map((each) => each['webhook-id'])).size, 1);
    assert.equal(new Set(headers.map((each) => each['webhook-timestamp'])).size, 3);
    assert.equal(new Set(headers.map((each) => each['webhook-signature'])).size, 3);
    assert.deepEqual(warnings(), []);
  },
);

test('Retry-After is obeyed', LIMIT, async (t) => {
  const receiver = await startReceiver(t, (response, count) => {
    if (count === 1) response.writeHead(429, { 'Retry-After': '33' });
    response.end();
  });
  const { webhooks, clock } = setUp(t);
  const end = sent(webhooks, webhookTo(receiver.url));
  assert.equal(await clock.skipToNext(), 33_000);
  assert.equal(await end, 'delivered');
});

test(
  'a dead port: tried 4 times, then one line with the URL cleaned of credentials and query',
  LIMIT,
  async (t) => {
    const url = await deadUrl();
    const { webhooks, clock, warnings } = setUp(t);
    const secretive = `${url.replace('//', '//user:hunter2@')}/hook?token=abc#f`;
    const end = sent(webhooks, webhookTo(secretive, { id: 'msg_dead' }));
    for (let i = 0; i < 3; i += 1) await clock.skipToNext();
    assert.equal(await end, 'failed');
    const [line, ...more] = warnings();
    assert.deepEqual(more, []);
    assert.match(
      line?.text as string,
      /^Webhook to \S+ failed with connection error: .*ECONNREFUSED.* \(4 attempts\)$/,
    );
    assert.deepEqual(line?.about, {
      webhookId: 'msg_dead',
      url: `${url}/hook`,
      requestId: 'req-1',
      attempts: 4,
    });
    assert.doesNotMatch(JSON.stringify(line), /hunter2|abc/);
  },
);

test('user and password of the URL become an Authorization header', LIMIT, async (t) => {
  const receiver = await startReceiver(t);
  const { webhooks } = setUp(t);
  await sent(webhooks, webhookTo(receiver.url.replace('//', '//user:p%40ss@')));
  const expected = `Basic ${Buffer.from('user:p@ss').toString('base64')}`;
  assert.equal(receiver.arrivals[0]?.headers.authorization, expected);
});

for (const status of [410, 404, 302]) {
  test(`status ${status} is final: one attempt, one line`, LIMIT, async (t) => {
    const elsewhere = await startReceiver(t);
    const receiver = await startReceiver(t, (response) =>
      response.writeHead(status, { Location: elsewhere.url, 'Retry-After': '1' }).end(),
    );
    const { webhooks, warnings } = setUp(t);
    assert.equal(await sent(webhooks, webhookTo(receiver.url)), 'failed');
    assert.equal(receiver.arrivals.length, 1);
    assert.equal(elsewhere.arrivals.length, 0, 'redirects are not followed');
    assert.equal(warnings().length, 1);
    assert.match(
      warnings()[0]?.text as string,
      new RegExp(`failed with status ${status}.* \\(1 attempt\\)$`),
    );
  });
}

test('a receiver that hangs delays only its own webhooks', LIMIT, async (t) => {
  const hanging = await startReceiver(t, () => {});
  const working = await startReceiver(t);
  const { webhooks } = setUp(t, { limits: { perReceiver: 2 } });
  const webhook = webhookTo(hanging.url, { retries: 0, timeoutMs: 60_000 });
  for (let i = 0; i < 3; i += 1) webhooks.send(webhook);
  await hanging.until(2);
  assert.equal(await sent(webhooks, webhookTo(working.url)), 'delivered');
  assert.equal(hanging.arrivals.length, 2, 'no more at a time than allowed');
});

test('webhooks to a receiver that hangs end in a timeout, one after another', LIMIT, async (t) => {
  const hanging = await startReceiver(t, () => {});
  const { webhooks, warnings } = setUp(t, { limits: { perReceiver: 2 } });
  const webhook = webhookTo(hanging.url, { retries: 0, timeoutMs: 200 });
  const ends = [1, 2, 3].map(() => sent(webhooks, webhook));
  assert.deepEqual(await Promise.all(ends), ['failed', 'failed', 'failed']);
  assert.equal(warnings().length, 3);
  assert.match(warnings()[0]?.text as string, /failed with timeout: no answer within 200 ms \(1 attempt\)$/);
  await eventually(
    () => hanging.connections() === 0,
    60_000,
    () => 'connections leak',
  );
});

test('if all places are in use, the place of a hanging receiver goes to another one', LIMIT, async (t) => {
  const hanging = await startReceiver(t, () => {});
  const working = await startReceiver(t);
  const { webhooks } = setUp(t, { limits: { atOnce: 1 } });
  const slow = sent(webhooks, webhookTo(hanging.url, { retries: 0, timeoutMs: 200 }));
  assert.equal(await sent(webhooks, webhookTo(working.url)), 'delivered');
  assert.equal(await slow, 'failed');
});

test('an answer without an end counts by its status, and its connection is cut', LIMIT, async (t) => {
  const chunk = Buffer.alloc(16 * 1024);
  const endless = await startReceiver(t, (response) => {
    const more = (): void => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on('drain', more);
    more();
  });
  const { webhooks } = setUp(t);
  assert.equal(await sent(webhooks, webhookTo(endless.url)), 'delivered');
  await eventually(
    () => endless.connections() === 0,
    60_000,
    () => 'the connection stays',
  );
});

test(
  'webhooks owed are bounded in number and bytes: more are dropped, with one line each',
  LIMIT,
  async (t) => {
    const hanging = await startReceiver(t, () => {});
    const { webhooks, warnings } = setUp(t, { limits: { maxOwed: 2, maxOwedBytes: 1000 } });
    const other = await startReceiver(t, () => {});
    assert.equal(webhooks.send(webhookTo(hanging.url, { body: Buffer.alloc(900) })), true);
    assert.equal(webhooks.send(webhookTo(other.url, { body: Buffer.alloc(101) })), false);
    assert.equal(webhooks.send(webhookTo(other.url)), true);
    assert.equal(webhooks.send(webhookTo(hanging.url)), false);
    assert.deepEqual(
      warnings().map(({ text }) => text.replace(/http:\/\/\S+/, 'URL')),
      [
        'Webhook to URL was not sent: with its 101 bytes, more than 1000 bytes would wait for delivery',
        'Webhook to URL was not sent: 2 others are not delivered yet',
      ],
    );
  },
);

test(
  'one receiver may have half of the limit, so one that is down leaves room for others',
  LIMIT,
  async (t) => {
    const hanging = await startReceiver(t, () => {});
    const other = await startReceiver(t);
    const { webhooks, warnings } = setUp(t, { limits: { maxOwed: 4, maxOwedBytes: 1000 } });
    const send = (url: string, bytes: number): boolean =>
      webhooks.send(webhookTo(url, { body: Buffer.alloc(bytes), timeoutMs: 200, retries: 0 }));
    assert.equal(send(hanging.url, 300), true);
    assert.equal(send(hanging.url, 201), false, 'in bytes');
    assert.equal(send(hanging.url, 200), true);
    assert.equal(send(hanging.url, 0), false, 'in number');
    assert.equal(await sent(webhooks, webhookTo(other.url)), 'delivered');
    assert.deepEqual(
      warnings().map(({ text }) => text.replace(/^.*sent: /, '')),
      [
        'with its 201 bytes, more than 500 bytes to this receiver would wait for delivery',
        '2 others to this receiver are not delivered yet',
      ],
    );
    await eventually(
      () => webhooks.owed === 0,
      60_000,
      () => 'still owed',
    );
    assert.equal(send(hanging.url, 900), true, 'a single one may be larger, and ended ones do not count');
  },
);

for (const url of ['/hook', 'ftp://example.com/', 'file:///etc/passwd', '']) {
  test(`a webhook to the URL ${JSON.stringify(url)} is dropped, with the reason in the log`, (t) => {
    const { webhooks, warnings } = setUp(t);
    assert.equal(webhooks.send(webhookTo(url)), false);
    assert.equal(webhooks.owed, 0);
    assert.match(warnings()[0]?.text as string, /was not sent: the URL of a webhook must/);
  });
}

test('values that are not valid in a header are left out', LIMIT, async (t) => {
  const receiver = await startReceiver(t);
  const { webhooks } = setUp(t);
  const odd = { requestId: 'a\r\nX-Evil: 1', contentType: 'text/ü' };
  assert.equal(await sent(webhooks, webhookTo(receiver.url, odd)), 'delivered');
  const headers = receiver.arrivals[0]?.headers;
  assert.equal(headers?.['x-request-id'], undefined);
  assert.equal(headers?.['x-evil'], undefined);
  assert.equal(headers?.['content-type'], 'application/json');
});

test('drain resolves as soon as nothing is owed', LIMIT, async (t) => {
  let answer: (() => void) | undefined;
  const receiver = await startReceiver(t, (response) => (answer = () => response.end()));
  const { webhooks, warnings, clock } = setUp(t);
  const end = sent(webhooks, webhookTo(receiver.url));
  await receiver.until(1);
  const drained = webhooks.drain(60_000);
  answer?.();
  await drained;
  assert.equal(await end, 'delivered');
  assert.deepEqual(warnings(), []);
  assert.deepEqual(clock.waits, []);
});

test('drain gives up unsent webhooks after its limit, and cuts their attempts', LIMIT, async (t) => {
  const hanging = await startReceiver(t, () => {});
  const { webhooks, warnings, clock } = setUp(t, { limits: { perReceiver: 1 } });
  const ends = ['msg_1', 'msg_2'].map((id) => sent(webhooks, webhookTo(hanging.url, { id })));
  await hanging.until(1);
  const drained = webhooks.drain(5000);
  assert.equal(await clock.skipToNext(), 5000);
  const url = `${hanging.url}/`;
  await drained;
  assert.deepEqual(await Promise.all(ends), ['unsent', 'unsent']);
  assert.deepEqual(
    warnings().map(({ about, text }) => [about, text.replace(url, 'URL')]),
    [
      [
        { webhookId: 'msg_1', url, requestId: 'req-1', attempts: 1 },
        'Webhook to URL was not sent: the server stopped after 1 attempt',
      ],
      [
        { webhookId: 'msg_2', url, requestId: 'req-1', attempts: 0 },
        'Webhook to URL was not sent: the server stopped',
      ],
    ],
  );
  await eventually(
    () => hanging.connections() === 0,
    60_000,
    () => 'connections leak',
  );
  assert.equal(webhooks.send(webhookTo(hanging.url)), false, 'the server has stopped');
});

test('drain does not wait for a retry that would come after its end', LIMIT, async (t) => {
  const receiver = await startReceiver(t, (response) =>
    response.writeHead(503, { 'Retry-After': '30' }).end(),
  );
  const { webhooks, clock, warnings } = setUp(t);
  const before = sent(webhooks, webhookTo(receiver.url, { id: 'msg_before' }));
  await eventually(
    () => clock.waits.length === 1,
    60_000,
    () => 'it does not wait',
  );
  const during = sent(webhooks, webhookTo(receiver.url, { id: 'msg_during' }));
  await webhooks.drain(20_000);
  assert.deepEqual(
    warnings().map(({ about }) => about['webhookId']),
    ['msg_before', 'msg_during'],
  );
  assert.deepEqual(await Promise.all([before, during]), ['unsent', 'unsent']);
  assert.match(
    warnings()[0]?.text as string,
    /the server stopped after 1 attempt, the last with status 503$/,
  );
});

/** A keeper whose storing the test decides. */
function newKeeper(): { keeper: WebhookKeeper; events: string[]; store: () => void; refuse: () => void } {
  const events: string[] = [];
  const keeper: WebhookKeeper = {
    owe: ({ id, url }) =>
      new Promise((resolve, reject) => {
        events.push(`owe ${id} ${new URL(url).username}`);
        kept.store = resolve;
        kept.refuse = () => reject(new Error('the disk is full'));
      }),
    forgetWebhook: (id) => Promise.resolve(void events.push(`forget ${id}`)),
  };
  const kept = { keeper, events, store: (): void => {}, refuse: (): void => {} };
  return kept;
}

test(
  'a webhook is stored, and forgotten once it is delivered, but not before it is stored',
  LIMIT,
  async (t) => {
    const receiver = await startReceiver(t);
    const kept = newKeeper();
    const { webhooks } = setUp(t, kept);
    const url = receiver.url.replace('//', '//user:secret@');
    const onKept = (): unknown => kept.events.push('kept');
    await new Promise((onEnd) => webhooks.send(webhookTo(url, { id: 'msg_1' }), { onKept, onEnd }));
    assert.deepEqual(kept.events, ['owe msg_1 user']);
    kept.store();
    await eventually(
      () => kept.events.length === 3,
      60_000,
      () => kept.events.join(),
    );
    assert.deepEqual(kept.events.slice(1), ['kept', 'forget msg_1']);
  },
);

test('a webhook that the store refuses is sent nevertheless, with a line in the log', LIMIT, async (t) => {
  const receiver = await startReceiver(t);
  const kept = newKeeper();
  const { webhooks, warnings } = setUp(t, kept);
  const end = sent(webhooks, webhookTo(receiver.url));
  kept.refuse();
  assert.equal(await end, 'delivered');
  assert.match(warnings()[0]?.text ?? '', /is sent, but not stored: the disk is full; it is lost if/);
  assert.deepEqual(
    kept.events.map((event) => event.split(' ')[0]),
    ['owe', 'forget'],
    'a store whose answer was lost has it',
  );
});

test('a webhook that a server leaves unsent stays in the store', LIMIT, async (t) => {
  const hanging = await startReceiver(t, () => {});
  const kept = newKeeper();
  const { webhooks, warnings } = setUp(t, kept);
  const ends = [webhookTo(hanging.url, { id: 'msg_own' }), webhookTo(hanging.url, { isKept: true })].map(
    (one) => sent(webhooks, one),
  );
  kept.store();
  webhooks.close();
  assert.deepEqual(await Promise.all(ends), ['unsent', 'unsent']);
  assert.match(warnings()[0]?.text ?? '', /waits in the store: the server stopped/);
  assert.deepEqual(kept.events, ['owe msg_own ']);
});
