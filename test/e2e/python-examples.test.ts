/** The examples in Python as a stranger runs them, against the answers that came with their model. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { needs } from '../helpers/needs.js';
import { DEBIAN_PYTHON } from '../helpers/pythons.js';
import { startHere } from '../helpers/here.js';
import { ROOT, call } from '../helpers/server.js';

const EXAMPLES = `${ROOT}examples/python`;
const LIMIT = { timeout: 240_000 };
const NUMPY = { ...LIMIT, skip: needs('python3-numpy') };

interface Row {
  readonly pixels: readonly number[];
  readonly label: number;
  readonly probabilities: readonly number[];
}

const { accuracy, rows } = JSON.parse(readFileSync(`${ROOT}examples/digits/test.json`, 'utf8')) as {
  accuracy: number;
  rows: Row[];
};

type Answer = Pick<Row, 'label' | 'probabilities'>;

/** Held-out pictures have the answers that the model was trained to give. */
function assertLearned(answers: readonly Answer[]): void {
  for (const [i, { probabilities }] of answers.entries())
    for (const [digit, wanted] of (rows[i] as Row).probabilities.entries())
      assert.ok(Math.abs((probabilities[digit] as number) - wanted) < 1e-4, `row ${i}, digit ${digit}`);
  const right = answers.filter(({ label }, i) => label === rows[i]?.label).length;
  assert.equal(Math.round((right / rows.length) * 1e4) / 1e4, accuracy);
}

test(
  'greeting in Python prints and answers as it does in TypeScript',
  { ...LIMIT, skip: needs('python3') },
  async (t) => {
    const server = await startHere(`${EXAMPLES}/greeting/app.py`, { t, env: { GREETING_INIT_MS: '1' } });
    assert.deepEqual((await call(server.url, null)).json(), { greeting: 'hello world' });
    await server.untilPrinted('hello\nhello world\n');
    await server.stop();
  },
);

test(
  'digits in numpy: the answers of the model, in batches, and a bad picture is refused alone',
  NUMPY,
  async (t) => {
    const args = ['--python', DEBIAN_PYTHON, '--batch-size', '8'];
    const server = await startHere(`${EXAMPLES}/digits/app.py`, { t, args });
    const answers = await Promise.all(rows.map(({ pixels }) => call(server.url, JSON.stringify({ pixels }))));
    assertLearned(answers.map((answer) => answer.json<Answer>()));
    for (const body of ['{}', '{"pixels":[1]}', '[1]', JSON.stringify({ pixels: Array(64).fill(17) })])
      assert.equal((await call(server.url, body)).status, 422, body);
    await server.stop();
  },
);

test('digits in numpy, as a custom service of a model store', NUMPY, async (t) => {
  const args = [
    '--model-store',
    EXAMPLES,
    '--models',
    'digits=mms-service',
    '--management-port',
    '0',
    '--python',
    DEBIAN_PYTHON,
  ];
  const server = await startHere(null, { t, args });
  const ask = (body: unknown) => call(`${server.url}/predictions/digits`, JSON.stringify(body));
  const answers = await Promise.all(rows.map(({ pixels }) => ask(pixels)));
  assertLearned(answers.map((answer) => answer.json<Answer>()));
  assert.equal((await ask([1, 2])).status, 400);
  await server.stop();
});

interface Candidate {
  readonly token: number;
  readonly token_str: string;
  readonly score: number;
  readonly sequence: string;
}

const BERT_TINY = `${ROOT}examples/fill-mask/models/bert-tiny`;
const FILLED = Object.entries(
  JSON.parse(readFileSync(`${BERT_TINY}/expected.json`, 'utf8')) as Record<string, Candidate[]>,
);

/** The same words as the model gives in fp32 elsewhere. */
function assertFilled(answers: readonly Candidate[], wanted: readonly Candidate[]): void {
  const words = ({ token, token_str, sequence }: Candidate): object => ({ token, token_str, sequence });
  assert.deepEqual(answers.map(words), wanted.map(words));
  for (const [i, { score }] of answers.entries())
    assert.ok(Math.abs(score - (wanted[i] as Candidate).score) < 1e-3, `${score} of candidate ${i}`);
}

test('fill-mask in numpy fills the gap as it does in TypeScript', NUMPY, async (t) => {
  const server = await startHere(`${EXAMPLES}/fill-mask/app.py`, { t, args: ['--python', DEBIAN_PYTHON] });
  const ask = (value: unknown) => call(server.url, JSON.stringify(value));
  for (const [prompt, wanted] of FILLED) assertFilled((await ask({ prompt })).json(), wanted);
  for (const value of [null, {}, { prompt: '' }, { prompt: 5 }])
    assert.deepEqual((await ask(value)).json(), { message: 'No prompt provided' });
  for (const prompt of ['Hello', `${'dog '.repeat(5000)}[MASK]`]) {
    const message = 'The prompt has no [MASK] in its first 64 tokens';
    assert.deepEqual((await ask({ prompt })).json(), { message });
  }
  await server.stop();
});

test('potassium in numpy answers as it does in TypeScript', NUMPY, async (t) => {
  const server = await startHere(`${EXAMPLES}/potassium/app.py`, { t, args: ['--python', DEBIAN_PYTHON] });
  for (const [prompt, wanted] of FILLED) {
    const answer = await call(server.url, JSON.stringify({ prompt }));
    assertFilled(answer.json<{ outputs: Candidate[] }>().outputs, wanted);
  }
  assert.deepEqual((await call(server.url, '{}')).json(), { message: 'No prompt provided' });
  assert.equal((await call(server.url, 'prompt', { 'content-type': 'text/plain' })).status, 400);
  await server.stop();
});
