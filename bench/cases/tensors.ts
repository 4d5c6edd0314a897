/** An image of 3 x 224 x 224 numbers to one app: as bytes and as JSON of the Open Inference Protocol V2, and as plain JSON. */
import type { Bench, BenchCase } from '../case.js';
import type { Row } from '../report.js';
import { measureOnce, type Load, type Round, type Side } from '../rounds.js';
import { source } from '../servers/child-server.js';
import { cpuNote, rateRow, sideOf } from '../sides.js';
import { jsonRequest } from './requests.js';

const SIZE = 224;
const SHAPE = [1, 3, SIZE, SIZE];
const CONNECTIONS = 4;

interface Way extends Load {
  readonly name: string;
  readonly path: string;
}

export const tensors: BenchCase = {
  name: 'tensors',
  async run(bench) {
    const server = await bench.startBanana(source('bench/apps/image.mjs'));
    const side = await sideOf('', server);
    const ways = waysOf();
    const sides = ways.map(({ name, path }): Side => ({ ...side, name, url: side.url + path }));
    const results = await measureInTurn(bench, sides, ways);
    bench.note(cpuNote(`an image of 3 x ${SIZE} x ${SIZE} floats, c=${CONNECTIONS}`, sides, results));
    const [binary = [], v2Json = [], plainJson = []] = results;
    const title = `an image of 3 x ${SIZE} x ${SIZE} floats as bytes`;
    const goal = { must: 20, better: 'higher', unit: 'x' } as const;
    const rows: Row[] = [
      rateRow(`${title}, vs JSON of V2`, [binary, v2Json], goal),
      rateRow(`${title}, vs plain JSON`, [binary, plainJson], null),
    ];
    return rows;
  },
};

/** The first round of each warms up. */
async function measureInTurn(
  { generator, duration }: Bench,
  sides: readonly Side[],
  ways: readonly Way[],
): Promise<Round[][]> {
  const results: Round[][] = sides.map(() => []);
  for (let round = 0; round <= duration.rounds; round += 1)
    for (const [i, side] of sides.entries()) {
      const measured = await measureOnce(generator, side, ways[i] as Way, duration.secondsPerRound);
      if (round > 0) results[i]?.push(measured);
    }
  return results;
}

function waysOf(): readonly Way[] {
  const numbers = Float32Array.from({ length: 3 * SIZE * SIZE }, (_, i) => Math.sin(i));
  const input = { name: 'image', shape: SHAPE, datatype: 'FP32' };
  const infer = '/v2/models/image/infer';
  const connections = CONNECTIONS;
  const v2Json = jsonRequest({ inputs: [{ ...input, data: [...numbers] }] });
  return [
    { name: 'bytes of V2', path: infer, connections, request: binaryRequest(input, numbers) },
    { name: 'JSON of V2', path: infer, connections, request: v2Json },
    { name: 'plain JSON', path: '/', connections, request: jsonRequest({ image: [planesOf(numbers)] }) },
  ];
}

function binaryRequest(input: object, numbers: Float32Array): Load['request'] {
  const parameters = { binary_data_size: numbers.byteLength };
  const head = Buffer.from(JSON.stringify({ inputs: [{ ...input, parameters }] }));
  return {
    headers: {
      'Content-Type': 'application/octet-stream',
      'Inference-Header-Content-Length': String(head.length),
    },
    body: Buffer.concat([head, Buffer.from(numbers.buffer)]),
  };
}

function planesOf(numbers: Float32Array): number[][][] {
  return Array.from({ length: 3 }, (_, plane) =>
    Array.from({ length: SIZE }, (_, line) => {
      const at = (plane * SIZE + line) * SIZE;
      return [...numbers.subarray(at, at + SIZE)];
    }),
  );
}
