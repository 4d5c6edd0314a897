/** Every kind of app, called by every path with every kind of body; docs/http.md has the answers, row by row. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { tableRows } from '../helpers/doc-page.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { shareHere } from '../helpers/shared-server.js';
import { call, type Answer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

type Row = Readonly<Record<string, string>>;

const SECTION = ['http.md', 'Who answers what'] as const;
/** A row for each path of an app; paths that are answered alike share one line. */
const ROWS: readonly Row[] = tableRows(...SECTION, 'app').flatMap(({ 'called by': paths = '', ...row }) =>
  paths.split(', ').map((path): Row => ({ ...row, 'called by': path })),
);
const CELLS = new Map(tableRows(...SECTION, 'cell').map((row) => [row['cell'], row]));

const APPS = [
  ['Banana app', 'describes-input', {}],
  ['Potassium app', 'describes-json', {}],
  ['Potassium app, its routes raw', 'describes-json', { RAW: '1' }],
  ['custom service', 'describes-item', {}],
] as const;

const GATEWAY = 'POST /start/v4/';
const PATHS = [
  'POST /',
  'POST /generate',
  GATEWAY,
  'POST /predictions/{model_name}',
  'POST /invocations',
] as const;

const VALUE = { a: [1, 'ü'] };
const BYTES = Buffer.from([0, 255, 10]);
const shown = (bytes: Uint8Array): object => ({
  kind: 'bytes',
  hex: Buffer.from(bytes).toString('hex'),
});

interface Body {
  readonly type: string;
  readonly bytes: Uint8Array;
}

/** Every kind of body, by its column. */
async function bodies(): Promise<Readonly<Record<string, Body>>> {
  const form = new FormData();
  form.append('text', 'plain');
  form.append('json', new Blob([JSON.stringify(VALUE)], { type: 'application/json' }), 'v.json');
  form.append('image', new Blob([BYTES], { type: 'image/png' }), 'i.png');
  const encoded = new Response(form);
  return {
    JSON: { type: 'application/json', bytes: Buffer.from(JSON.stringify(VALUE)) },
    multipart: {
      type: encoded.headers.get('content-type') ?? '',
      bytes: Buffer.from(await encoded.arrayBuffer()),
    },
    bytes: { type: 'image/png', bytes: BYTES },
  };
}

/** The inputs that the fixtures report, by the cell of the table. */
const GIVEN: Readonly<Record<string, unknown>> = {
  value: VALUE,
  fields: {
    text: 'plain',
    json: {
      filename: 'v.json',
      contentType: 'application/json',
      data: shown(Buffer.from(JSON.stringify(VALUE))),
    },
    image: { filename: 'i.png', contentType: 'image/png', data: shown(BYTES) },
  },
  bytes: shown(BYTES),
  'item of a value': { body: VALUE },
  'item of parts': { text: shown(Buffer.from('plain')), json: VALUE, image: shown(BYTES) },
  'item of bytes': { body: shown(BYTES) },
};

test('the table has a row for every app and path, and every cell is explained', () => {
  const wanted = APPS.flatMap(([app]) => PATHS.map((path) => `${app}, ${path}`));
  assert.deepEqual(ROWS.map(({ app, 'called by': path }) => `${app}, ${path}`).sort(), wanted.sort());
  const used = new Set(ROWS.flatMap(({ JSON: value, multipart, bytes }) => [value, multipart, bytes]));
  assert.deepEqual([...used].sort(), [...CELLS.keys()].sort());
});

withEachRuntime(({ app: fixture }) => {
  for (const [app, file, env] of APPS)
    describe(`a ${app}`, LIMIT, () => {
      const shared = shareHere(fixture(file), { args: ['--name', 'any'], env });
      let sent: Readonly<Record<string, Body>>;
      before(async () => {
        sent = await bodies();
      });

      for (const { 'called by': asked = '', ...row } of ROWS.filter((candidate) => candidate['app'] === app))
        for (const column of ['JSON', 'multipart', 'bytes'])
          test(`${asked} with ${column}: ${row[column]}`, async () => {
            const cell = row[column] as string;
            const answer = await ask(shared.server, asked, column, sent[column] as Body);
            const { reply = '' } = CELLS.get(cell) as Row;
            assert.equal(answer.status, Number.parseInt(reply), answer.text);
            const refusal = refusalOf(answer);
            if (cell in GIVEN) assert.deepEqual([refusal, givenIn(answer)], ['', GIVEN[cell]]);
            else assert.equal(refusal, nameIn(reply, asked), answer.text);
          });
    });
});

function ask(server: Server, asked: string, kind: string, { type, bytes }: Body): Promise<Answer> {
  const path = (asked.split(' ')[1] as string).replace('{model_name}', 'any');
  const isWrapped = asked === GATEWAY && kind === 'JSON';
  const body = isWrapped ? JSON.stringify({ modelKey: 'any', modelInputs: VALUE }) : bytes;
  return call(server.url + path, body, { 'content-type': type });
}

/** The name of an error in a cell such as 400 HOUSE_CODE, MmsType; without the second it has one name everywhere. */
function nameIn(reply: string, asked: string): string | undefined {
  const names = reply.split(/[ ,]+/).slice(1);
  return /predictions|invocations/.test(asked) ? names.at(-1) : names[0];
}

/** The name of the error, in the words of the dialect or app that refused; empty without a refusal. */
function refusalOf(answer: Answer): string {
  const { error, type, code } = answer.json<{ error?: { code: string }; type?: string; code?: string }>();
  return error?.code ?? type ?? code ?? '';
}

function givenIn(answer: Answer): unknown {
  const { modelOutputs, input } = answer.json<{ modelOutputs?: [{ input: unknown }]; input?: unknown }>();
  return modelOutputs === undefined ? input : modelOutputs[0].input;
}
