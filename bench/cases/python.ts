/**
 * Apps in Python: small calls and large bodies beside FastAPI and Flask with the same app, kills, a model on torch that
 * must never wait for us, and the start. `npm run bench -- python`; the packages are named in `servers/python.ts`.
 */
import { answerOf, checkSameAnswers } from '../answers.js';
import type { Bench, BenchCase } from '../case.js';
import type { Goal, Row } from '../report.js';
import { measureInTurn, measureOnce, medianOf, medianRatio, type Round, type Side } from '../rounds.js';
import { source } from '../servers/child-server.js';
import {
  PYTHON_FLAGS,
  PYTHON_SERVER_NAMES,
  startPythonServer,
  type PythonServer,
} from '../servers/python.js';
import { cpuNote, cpuText, rateRow, serverCpuUs, sideOf } from '../sides.js';
import { median } from '../statistics.js';
import { killRows } from './crash.js';
import { BIG_BYTES, bigBytesRequest, jsonRequest, smallJsonRequest } from './requests.js';
import { STARTS, msToFirstAnswer } from './startup.js';

const SMALL_APP = 'bench/apps/python/small.py';
const RATE_GOAL: Goal = { must: 1.5, better: 'higher', unit: 'x' };
const BUSY_GOAL: Goal = { must: 98, better: 'higher', unit: '%' };
const START_GOAL: Goal = { must: 500, better: 'lower', unit: 'ms' };

export const python: BenchCase = {
  name: 'python',
  async run(bench) {
    delete process.env['PYTHONDONTWRITEBYTECODE']; // caches are to be warm: a start that compiles takes much longer
    return [
      ...(await smallCalls(bench)),
      ...(await largeBodies(bench)),
      ...(await killRows(bench, { app: 'bench/apps/python/heavy.py', fillMb: 0, flags: PYTHON_FLAGS })),
      await torchRow(bench),
      await startRow(),
    ];
  },
};

/** The first part of it alone: the others take minutes. */
export const pythonSmall: BenchCase = { name: 'python-small', run: smallCalls };

async function smallCalls(bench: Bench): Promise<Row[]> {
  const sides = await sidesOf(bench, SMALL_APP, ['fastapi-def', 'fastapi-async', 'flask']);
  const request = smallJsonRequest();
  await checkSameAnswers(sides, request);
  const many = await measureInTurn(bench.generator, sides, { request, connections: 32 }, bench.duration);
  bench.note(cpuNote('Python, 200 B JSON, c=32', sides, many));
  const alone = await measureInTurn(bench.generator, sides, { request, connections: 1 }, bench.duration);
  bench.note(cpuNote('Python, 200 B JSON, c=1', sides, alone));
  return [...manyRows(sides, many), ...aloneRows(sides, alone)];
}

async function sidesOf(bench: Bench, app: string, kinds: readonly PythonServer[]): Promise<Side[]> {
  const path = source(app);
  const sides = [await sideOf('ours', await bench.startBanana(path, { flags: PYTHON_FLAGS }))];
  for (const kind of kinds) {
    const { url, pid } = bench.keep(await startPythonServer(kind, path));
    sides.push({
      name: PYTHON_SERVER_NAMES[kind],
      url,
      processes: [{ role: 'front', pid, endsThreads: true }],
    });
  }
  return sides;
}

function manyRows(sides: readonly Side[], results: readonly Round[][]): Row[] {
  const [ours = [], def = [], asyncDef = [], flask = []] = results;
  const isDefFaster = rateOf(def) > rateOf(asyncDef);
  const [fastApi, slower] = isDefFaster ? [def, asyncDef] : [asyncDef, def];
  const name = `Python, 200 B JSON, c=32, vs ${sides[isDefFaster ? 1 : 2]?.name}`;
  return [
    rateRow(name, [ours, fastApi], RATE_GOAL),
    {
      name: `${name}: CPU per request, all processes`,
      ours: cpuText(ours),
      baseline: cpuText(fastApi),
      value: medianRatio(ours, fastApi, serverCpuUs),
      goal: null,
    },
    rateRow(`Python, 200 B JSON, c=32, vs ${sides[isDefFaster ? 2 : 1]?.name}`, [ours, slower], null),
    rateRow(`Python, 200 B JSON, c=32, vs ${sides[3]?.name}`, [ours, flask], null),
  ];
}

function rateOf(rounds: readonly Round[]): number {
  return medianOf(rounds, ({ perSecond }) => perSecond);
}

function aloneRows(sides: readonly Side[], results: readonly Round[][]): Row[] {
  const [ours = []] = results;
  return results.slice(1).map((theirs, i) => ({
    name: `Python, 200 B JSON, c=1, p50, vs ${sides[i + 1]?.name}`,
    ours: inUs(ours),
    baseline: inUs(theirs),
    value: medianRatio(ours, theirs, p50),
    goal: null,
  }));
}

function p50({ latencyMs }: Round): number {
  return latencyMs.p50;
}

function inUs(rounds: readonly Round[]): string {
  return `${(medianOf(rounds, p50) * 1000).toFixed(0)} us`;
}

async function largeBodies(bench: Bench): Promise<Row[]> {
  const load = { request: bigBytesRequest(), connections: 2 };
  const sides = await sidesOf(bench, 'bench/apps/python/echo.py', ['fastapi-bytes', 'flask-bytes']);
  await checkSameAnswers(sides, load.request);
  const results = await measureInTurn(bench.generator, sides, load, bench.duration);
  bench.note(cpuNote('Python, 10 MB echo, c=2', sides, results));
  const [ours = []] = results;
  return results.slice(1).map((theirs, i) => ({
    name: `Python, 10 MB of bytes in and out, c=2, vs ${sides[i + 1]?.name}`,
    ours: inGb(ours),
    baseline: inGb(theirs),
    value: medianRatio(ours, theirs, ({ perSecond }) => perSecond),
    goal: null,
  }));
}

function inGb(rounds: readonly Round[]): string {
  return `${((rateOf(rounds) * BIG_BYTES) / 1e9).toFixed(2)} GB/s`;
}

/** The model's notes of its calls since the last reading. */
interface Busy {
  readonly calls: number;
  readonly busyMs: number;
  /** From the begin of the first call to the end of the last. */
  readonly wallMs: number;
}

async function torchRow(bench: Bench): Promise<Row> {
  const app = source('bench/apps/python/torch_model.py');
  const server = await bench.startBanana(app, { flags: PYTHON_FLAGS });
  const side = await sideOf('ours', server);
  const ask = async (): Promise<Busy> =>
    (await answerOf({ ...jsonRequest({ tell: true }), url: server.url })) as Busy;
  const load = { request: jsonRequest({}), connections: 8 };
  const shares: number[] = [];
  const callMs: number[] = [];
  for (let round = -1; round < bench.duration.rounds; round += 1) {
    await ask();
    await measureOnce(bench.generator, side, load, bench.secondsAtLeast(4));
    const { calls, busyMs, wallMs } = await ask();
    if (round < 0) continue; // the first warms up
    shares.push((100 * busyMs) / wallMs);
    callMs.push(busyMs / calls);
  }
  return {
    name: 'Python, a model on torch, c=8: time in the model over wall time',
    ours: `${median(callMs).toFixed(1)} ms a call`,
    baseline: '',
    value: median(shares),
    goal: BUSY_GOAL,
  };
}

async function startRow(): Promise<Row> {
  const times: number[] = [];
  for (let i = 0; i < STARTS; i += 1) times.push(await msToFirstAnswer(source(SMALL_APP), PYTHON_FLAGS));
  const sorted = [...times].sort((a, b) => a - b);
  return {
    name: 'Python, trivial app: process start to first 200, interpreter given',
    ours: `${sorted[0]?.toFixed(0)} to ${sorted.at(-1)?.toFixed(0)} ms`,
    baseline: '',
    value: median(times),
    goal: START_GOAL,
  };
}
