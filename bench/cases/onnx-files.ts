/** Models without code: what does a call of a .onnx file cost its worker, beside an app written by hand and a bare loop? */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checkSameAnswers } from '../answers.js';
import type { Bench, BenchCase } from '../case.js';
import type { Row } from '../report.js';
import { measureInTurn, type Side } from '../rounds.js';
import { source } from '../servers/child-server.js';
import { cpuNote, sideOf, workerCpuRow } from '../sides.js';
import { digitImageRequest, tokensRequest } from './requests.js';

interface Measured {
  readonly name: string;
  readonly model: string;
  readonly request: ReturnType<typeof digitImageRequest>;
}

const MODELS: readonly Measured[] = [
  { name: 'digits', model: 'examples/digits/digits.onnx', request: digitImageRequest() },
  {
    name: 'bert-tiny',
    model: 'examples/fill-mask/models/bert-tiny/onnx/model.onnx',
    request: tokensRequest(),
  },
];

/** Without batches, and with those that so many callers make. */
const WAYS = [
  { batchSize: 1, connections: 1 },
  { batchSize: 8, connections: 32 },
];

export const onnxFiles: BenchCase = {
  name: 'onnx-files',
  async run(bench) {
    const rows: Row[] = [];
    for (const measured of MODELS) {
      bench.note(await loopNote(measured, bench.duration.secondsPerRound));
      for (const way of WAYS) rows.push(await compare(bench, measured, way));
    }
    return rows;
  },
};

async function compare(
  bench: Bench,
  { name, model, request }: Measured,
  { batchSize, connections }: (typeof WAYS)[number],
): Promise<Row> {
  const flags = ['--batch-size', String(batchSize)];
  const start = async (who: string, app: string): Promise<Side> =>
    sideOf(who, await bench.startBanana(source(app), { flags, env: { MODEL: source(model) } }));
  const sides = [await start('the file alone', model), await start('by hand', 'bench/apps/onnx-by-hand.mjs')];
  await checkSameAnswers(sides, request);
  const results = await measureInTurn(bench.generator, sides, { request, connections }, bench.duration);
  const title = `${name}.onnx without code, batches of up to ${batchSize}, c=${connections}`;
  bench.note(cpuNote(title, sides, results));
  const [ours = [], byHand = []] = results;
  return workerCpuRow(`${title}, vs an app by hand`, [ours, byHand], {
    must: 1.1,
    better: 'lower',
    unit: 'x',
  });
}

async function loopNote({ name, model, request }: Measured, seconds: number): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'banana-bench-'));
  try {
    const body = join(folder, 'body.json');
    await writeFile(body, request.body as Buffer);
    const args = [source('bench/apps/onnx-loop.mjs'), body, String(seconds)];
    const env = { ...process.env, MODEL: source(model) };
    const { stdout } = await promisify(execFile)(process.execPath, args, { env });
    return `${name}.onnx in a bare loop, JSON both ways: ${Number(stdout).toFixed(1)} us of CPU a call.`;
  } finally {
    await rm(folder, { recursive: true });
  }
}
