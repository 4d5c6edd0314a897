/** The examples as a stranger runs them: each app behind the real server, against the answers that came with its model. */
import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { test } from 'node:test';
import { PNG } from 'pngjs';
import { run } from '../helpers/packed.js';
import { startHere } from '../helpers/here.js';
import { ROOT, type Server } from '../helpers/server.js';
import { startManaged } from '../helpers/managed-server.js';

const EXAMPLES = `${ROOT}examples/`;
/** Far beyond what any of these takes: a hang fails instead of hanging the whole run. */
const LIMIT = { timeout: 240_000 };

type Body = Exclude<RequestInit['body'], undefined>;

// greeting

// With one worker: the first point of test/e2e/conformance.test.ts.
test('greeting, 2 at work: five cold calls are answered, init runs once in each', LIMIT, async () => {
  const server = await startHere(`${EXAMPLES}greeting/app.ts`, {
    args: ['--workers', '2'],
    env: { GREETING_INIT_MS: '1000' },
  });
  try {
    const calls = Array.from({ length: 5 }, () => fetch(server.url, { method: 'POST' }));
    for (const reply of await Promise.all(calls)) {
      assert.equal(reply.status, 200);
      assert.deepEqual(await reply.json(), { greeting: 'hello world' });
    }
    // The first worker may have answered every call before the second has finished its init.
    await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
  } finally {
    await server.stop();
  }
  const printed = lines(server);
  assert.equal(printed[0], 'hello');
  const expected = ['hello', 'hello', ...Array<string>(5).fill('hello world')];
  assert.deepEqual(printed.sort(), expected);
});

// digits

interface DigitRow {
  readonly pixels: readonly number[];
  readonly label: number;
  readonly probabilities: readonly number[];
}

interface DigitAnswer {
  readonly label: number;
  readonly probabilities: readonly number[];
}

test('digits', LIMIT, async (t) => {
  const { accuracy, rows } = (await readJson('digits/test.json')) as { accuracy: number; rows: DigitRow[] };
  const server = await startHere(`${EXAMPLES}digits/app.ts`);
  try {
    await t.test('the held-out images get the answers the model was trained to give', async () => {
      const answers = await inTurns(rows, 8, ({ pixels }) => postJson(server, { pixels }));
      let right = 0;
      for (const [i, row] of rows.entries()) {
        const { label, probabilities } = answers[i] as DigitAnswer;
        if (label === row.label) right += 1;
        assertClose(probabilities, row.probabilities, 1e-4, `row ${i}`);
      }
      assert.equal(round(right / rows.length), accuracy);
    });

    await t.test('8 rows of 8 numbers are the same picture as 64 numbers', async () => {
      const { pixels } = rows[0]!;
      const nested = Array.from({ length: 8 }, (_, y) => pixels.slice(y * 8, y * 8 + 8));
      assert.deepEqual(await postJson(server, { pixels: nested }), await postJson(server, { pixels }));
    });

    await t.test('a PNG is read as its body or as an uploaded file', async () => {
      const names = await readdir(`${EXAMPLES}digits/png`);
      assert.equal(names.length, 20);
      for (const name of names) {
        const bytes = await readFile(`${EXAMPLES}digits/png/${name}`);
        const row = rows[Number(/row(\d+)/.exec(name)?.[1])]!;
        const fromBody = (await post(server, bytes, 'image/png')) as DigitAnswer;
        assert.equal(fromBody.label, likeliest(row), name);
        assertClose(fromBody.probabilities, row.probabilities, 0.01, name); // 255 shades for 16 steps of ink
        assert.deepEqual(await post(server, upload('image', bytes)), fromBody, name);
      }
    });

    await t.test('a PNG may have another size and colour type', async () => {
      for (const row of rows.slice(0, 10)) {
        for (const [size, colorType] of [
          [8, 0],
          [30, 2],
          [250, 6],
        ] as const) {
          const answer = (await post(
            server,
            drawPng(row.pixels, size, colorType),
            'image/png',
          )) as DigitAnswer;
          assert.equal(answer.label, row.label, `size ${size}, colour type ${colorType}`);
        }
      }
    });

    const png = drawPng(rows[0]!.pixels, 64, 0);
    const refused: readonly [what: string, body: Body, contentType: string | null, status: number][] = [
      ['no body', null, null, 422],
      ['malformed JSON', '{"pixels": [1, 2', 'application/json', 400],
      ['JSON of another shape', '[1, 2, 3]', 'application/json', 422],
      ['pixels of another kind', '{"pixels": "0123"}', 'application/json', 422],
      ['63 pixels', JSON.stringify({ pixels: Array(63).fill(1) }), 'application/json', 422],
      ['a pixel above 16', JSON.stringify({ pixels: Array(64).fill(17) }), 'application/json', 422],
      ['a picture that is no PNG', Buffer.from('GIF89a'), 'image/gif', 422],
      ['half a PNG', png.subarray(0, png.length / 2), 'image/png', 422],
      ['a PNG that claims 60000 pixels in a row', claimWidth(png, 60_000), 'image/png', 422],
      ['a form without the file', upload('photo', png), null, 422],
    ];
    for (const [what, body, contentType, status] of refused) {
      await t.test(`${what} is refused with ${status} and a reason`, async () => {
        const reply = await send(server, body, contentType);
        assert.equal(reply.status, status);
        const answer = (await reply.json()) as { message?: string; error?: { message: string } };
        assert.match(answer.message ?? answer.error?.message ?? '', /\w+ \w+/);
      });
    }

    await t.test('the same worker still answers after all that', async () => {
      const [row] = rows as [DigitRow];
      assert.equal(((await postJson(server, { pixels: row.pixels })) as DigitAnswer).label, row.label);
    });
  } finally {
    await server.stop(); // Fails if a worker was restarted.
  }
});

test(
  'digits in batches of eight: the same answers, and a bad picture among them is refused alone',
  LIMIT,
  async () => {
    const { rows: all } = (await readJson('digits/test.json')) as { rows: DigitRow[] };
    const rows = all.slice(0, 40); // every row runs alone, above
    // Only full batches run before their delay is over, which is longer than this test may take.
    const args = ['--workers', '1', '--batch-size', '8', '--max-batch-delay', '5m'];
    const server = await startHere(`${EXAMPLES}digits/app.ts`, { args });
    try {
      const answers = await inTurns(rows, 8, ({ pixels }) => postJson(server, { pixels }));
      for (const [i, row] of rows.entries()) {
        assertClose((answers[i] as DigitAnswer).probabilities, row.probabilities, 1e-4, `row ${i}`);
      }
      const bodies = rows
        .slice(0, 8)
        .map(({ pixels }, i) => JSON.stringify({ pixels: i === 3 ? [1] : pixels }));
      const replies = await Promise.all(bodies.map((body) => send(server, body, 'application/json')));
      assert.deepEqual(
        replies.map(({ status }) => status),
        [200, 200, 200, 422, 200, 200, 200, 200],
      );
    } finally {
      await server.stop();
    }
  },
);

// mms-service

const MMS_PATH = '/predictions/digits';

test(
  'mms-service: a custom service from a model store answers in batches of up to eight',
  LIMIT,
  async (t) => {
    const { rows: all } = (await readJson('digits/test.json')) as { rows: DigitRow[] };
    const rows = all.slice(0, 80); // every row runs alone, above
    const args = ['--model-store', EXAMPLES, '--models', 'digits=mms-service', '--log-level', 'debug'];
    const server = await startHere(null, { args: [...args, '--management-port', '0'], t });
    const ask = (body: Body, type: string): Promise<Response> =>
      fetch(server.url + MMS_PATH, { method: 'POST', body, headers: { 'content-type': type } });
    await t.test('images get the answers of the model', async () => {
      const replies = await inTurns(rows, 16, ({ pixels }) =>
        ask(JSON.stringify(pixels), 'application/json'),
      );
      const answers = await Promise.all(replies.map((reply) => reply.json() as Promise<DigitAnswer>));
      rows.forEach((row, i) => assertClose(answers[i]!.probabilities, row.probabilities, 1e-4, `row ${i}`));
    });
    await t.test('its metrics are in the log, with more than one request to a batch', async () => {
      await server.untilPrinted(
        /Pictures\.Count:[2-8]\|#ModelName:digits,Level:Model\|#hostname:[^,]+,requestID:[^,]+,[^,]+,.*timestamp:\d+/,
      );
    });
    await t.test(
      'a picture may come as a field of a form, and a field that is no picture fails alone',
      async () => {
        const [row] = rows as [DigitRow];
        const text = JSON.stringify(row.pixels);
        const replies = await Promise.all([
          ask(new URLSearchParams({ data: text }), 'application/x-www-form-urlencoded'),
          ask('[1, 2]', 'application/json'),
          ask(text, 'application/octet-stream'),
        ]);
        assert.deepEqual(
          replies.map(({ status }) => status),
          [200, 400, 200],
        );
        assert.deepEqual(await replies[0].json(), await replies[2].json());
        assert.match(
          await replies[1].text(),
          /"type": "InternalServerException",\n {2}"message": "send 64 numbers/,
        );
      },
    );
    await server.stop();
  },
);

test('mms-service: its function and its class are found by their names', LIMIT, async (t) => {
  const { rows } = (await readJson('digits/test.json')) as { rows: DigitRow[] };
  const server = await startManaged(t, { modelStore: EXAMPLES });
  for (const handler of ['service:handle', 'service.ts:DigitsService']) {
    const named = new URLSearchParams({
      url: 'mms-service',
      model_name: 'm',
      handler,
      initial_workers: '1',
    });
    assert.equal(await server.said(`POST /models?${named.toString()}`), '200 Workers scaled', handler);
    const { status, text } = await server.infer('m', rows[0]!.pixels);
    assert.equal(status, 200, `${handler}: ${text}`);
    assert.equal((JSON.parse(text) as DigitAnswer).label, rows[0]!.label, handler);
    assert.equal(await server.said('DELETE /models/m'), '200 Model "m" unregistered');
  }
});

/** A PNG of `size` x `size`: each pixel as bright as the cell of the 8 x 8 picture it lies in. */
function drawPng(pixels: readonly number[], size: number, colorType: 0 | 2 | 6): Buffer {
  const png = new PNG({ width: size, height: size });
  for (let y = 0; y < size; y += 1) {
    for (let x = 0; x < size; x += 1) {
      const cell = Math.floor((y * 8) / size) * 8 + Math.floor((x * 8) / size);
      const gray = Math.round((pixels[cell]! * 255) / 16);
      png.data.set([gray, gray, gray, 255], (y * size + x) * 4);
    }
  }
  return PNG.sync.write(png, { colorType });
}

function claimWidth(png: Buffer, width: number): Buffer {
  const copy = Buffer.from(png);
  copy.writeUInt32BE(width, 16);
  return copy;
}

function likeliest(row: DigitRow): number {
  return row.probabilities.indexOf(Math.max(...row.probabilities));
}

// fill-mask

interface Candidate {
  readonly token: number;
  readonly token_str: string;
  readonly score: number;
  readonly sequence: string;
}

test('fill-mask', LIMIT, async (t) => {
  const expected = (await readJson('fill-mask/models/bert-tiny/expected.json')) as Record<
    string,
    Candidate[]
  >;
  const server = await startHere(`${EXAMPLES}fill-mask/app.ts`);
  try {
    for (const [prompt, candidates] of Object.entries(expected)) {
      await t.test(prompt, async () => {
        const answer = (await postJson(server, { prompt })) as Candidate[];
        assert.deepEqual(answer.map(words), candidates.map(words));
        assertClose(answer.map(score), candidates.map(score), 1e-3, prompt);
      });
    }

    for (const body of [null, '{}', '{"prompt": ""}', '{"prompt": 5}']) {
      await t.test(`${body ?? 'no body'} has no prompt, which is an answer and no error`, async () => {
        assert.deepEqual(await post(server, body, 'application/json'), { message: 'No prompt provided' });
      });
    }

    for (const prompt of ['Hello', `${'dog '.repeat(5000)}[MASK]`]) {
      await t.test(`${prompt.slice(0, 8)}… has no gap to fill within the model's reach`, async () => {
        const message = 'The prompt has no [MASK] in its first 64 tokens';
        assert.deepEqual(await postJson(server, { prompt }), { message });
      });
    }
  } finally {
    await server.stop();
  }
});

// potassium

test('potassium', LIMIT, async (t) => {
  const expected = (await readJson('fill-mask/models/bert-tiny/expected.json')) as Record<
    string,
    Candidate[]
  >;
  const server = await startHere(`${EXAMPLES}potassium/app.ts`);
  try {
    for (const [prompt, candidates] of Object.entries(expected)) {
      await t.test(prompt, async () => {
        const { outputs } = (await postJson(server, { prompt })) as { outputs: Candidate[] };
        assert.deepEqual(outputs.map(words), candidates.map(words));
        assertClose(outputs.map(score), candidates.map(score), 1e-3, prompt);
      });
    }

    await t.test('no prompt is an answer and no error, no JSON is an error', async () => {
      assert.deepEqual(await postJson(server, {}), { message: 'No prompt provided' });
      assert.equal((await send(server, 'prompt', 'text/plain')).status, 400);
    });
  } finally {
    await server.stop();
  }
});

function words({ token, token_str, sequence }: Candidate): Omit<Candidate, 'score'> {
  return { token, token_str, sequence };
}

function score(candidate: Candidate): number {
  return candidate.score;
}

// shared

async function readJson(path: string): Promise<unknown> {
  return JSON.parse(await readFile(`${EXAMPLES}${path}`, 'utf8'));
}

function send(server: Server, body: Body, contentType: string | null = null): Promise<Response> {
  const headers: Record<string, string> = contentType === null ? {} : { 'content-type': contentType };
  return fetch(server.url, { method: 'POST', body, headers });
}

async function post(server: Server, body: Body, contentType: string | null = null): Promise<unknown> {
  const reply = await send(server, body, contentType);
  assert.equal(reply.status, 200, reply.ok ? '' : await reply.clone().text());
  return reply.json();
}

function postJson(server: Server, value: unknown): Promise<unknown> {
  return post(server, JSON.stringify(value), 'application/json');
}

function upload(field: string, bytes: Uint8Array): FormData {
  const form = new FormData();
  form.set(field, new Blob([bytes], { type: 'image/png' }), 'digit.png');
  return form;
}

/** Runs `work` on every item, at most `atOnce` at a time; results in the order of the items. */
async function inTurns<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const entries = items.entries();
  const lane = async (): Promise<void> => {
    for (const [i, item] of entries) results[i] = await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return results;
}

function lines(server: Server): string[] {
  return server.stdout().split('\n').slice(0, -1);
}

function assertClose(
  actual: readonly number[],
  wanted: readonly number[],
  tolerance: number,
  what: string,
): void {
  assert.equal(actual.length, wanted.length, what);
  for (const [i, value] of wanted.entries()) {
    const difference = Math.abs(actual[i]! - value);
    assert.ok(difference <= tolerance, `${what}[${i}]: ${actual[i]} is not ${value} within ${tolerance}`);
  }
}

function round(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}

test('embed: a program searches by a function, and ends', LIMIT, async () => {
  const { stdout } = await run(
    process.execPath,
    ['--import', 'tsx', `${EXAMPLES}embed/search.ts`, 'an animal'],
    {
      cwd: ROOT,
    },
  );
  assert.match(stdout, /^0\.\d\d a small dog ran after the cat\n(0\.\d\d .+\n){2}$/);
});
