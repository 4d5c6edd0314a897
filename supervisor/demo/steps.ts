/** The script of the demo: what both programs go through, and the rows of the table that this gives. */
import { setTimeout as delay } from 'node:timers/promises';
import { HEAP_MB, type Program } from './demo-program.js';

/** One measurement; less is better. */
export interface Figure {
  readonly value: number;
  readonly text: string;
}

/** A column of the table: figures by the titles of their rows. */
export type Column = Readonly<Record<string, Figure>>;

export interface Step {
  readonly title: string;
  /** `mark` shows an event by a character or two. */
  run(program: Program, mark: (text: string) => void): Promise<Column>;
}

const BATCHES = 3;
const BATCH = { pictures: 20_000 };
const SMALL = { pictures: 1 };
const TOO_LARGE = { side: 100_000 };
const CALLS_BESIDE = 3;
const HEALTH_PAUSE_MS = 25;
const KILL_AFTER_MS = 100;
const IDLE_LIMIT_MS = 8000;

export const STEPS: readonly Step[] = [
  {
    title: `${BATCHES} batches of ${BATCH.pictures.toLocaleString('en')} pictures, while /health is asked`,
    async run(program, mark) {
      await program.ask('/', SMALL);
      const batches = async (): Promise<void> => {
        for (let i = 0; i < BATCHES; i += 1) await program.ask('/', BATCH);
      };
      return { 'batches: longest wait for /health': inMs(await healthDuring(program, batches(), mark)) };
    },
  },
  {
    title: `an input that eats all memory (limit: ${HEAP_MB} MB), and ${CALLS_BESIDE} calls behind it`,
    async run(program, mark) {
      await program.ask('/', SMALL);
      const eater = program.ask('/', TOO_LARGE).catch(() => {});
      await delay(20); // it is the first
      const beside = Array.from({ length: CALLS_BESIDE }, () => program.ask('/', SMALL));
      const [, ...ended] = await Promise.allSettled([
        healthDuring(
          program,
          eater.then(() => backMs(program)),
          mark,
        ),
        ...beside,
      ]);
      const lost = ended.filter(({ status }) => status === 'rejected').length;
      return { 'memory eaten: other calls lost': { value: lost, text: `${lost} of ${CALLS_BESIDE}` } };
    },
  },
  {
    title: 'kill -9 of the process that runs the model, in a batch',
    async run(program, mark) {
      await program.ask('/', SMALL);
      const pid = (await program.pids()).at(-1) as number;
      const doomed = program.ask('/', BATCH).catch(() => {});
      await delay(KILL_AFTER_MS);
      process.kill(pid, 'SIGKILL');
      mark('kill ');
      const back = doomed.then(() => backMs(program));
      const health = await healthDuring(program, back, mark);
      return {
        'kill -9: longest wait for /health': inMs(health),
        'kill -9: until the model answers': inMs(await back),
      };
    },
  },
  {
    title: 'idle',
    async run(program, mark) {
      await program.ask('/', SMALL);
      const workingMb = await program.memoryMb();
      for (let waitedMs = 0; waitedMs < IDLE_LIMIT_MS; waitedMs += 500) {
        if ((await program.pids()).length === 1 && waitedMs > 0) break;
        mark('z');
        await delay(500);
      }
      const idleMb = await program.memoryMb();
      const memory = { 'memory, working': inMb(workingMb), 'memory, idle': inMb(idleMb) };
      return { ...(workingMb > 0 && memory), 'first call after idling': inMs(await backMs(program)) };
    },
  },
  {
    title: 'small calls, one after the other',
    async run(program) {
      const us = (await program.ask('/cost')) as number;
      return { 'one small call': { value: us, text: `${us.toFixed(0)} us` } };
    },
  },
];

/** Time until a small call is answered. */
async function backMs(program: Program): Promise<number> {
  const startedAtMs = performance.now();
  for (;;) {
    try {
      await program.ask('/', SMALL);
      return performance.now() - startedAtMs;
    } catch {
      await delay(5);
    }
  }
}

/** Asks /health until `work` has settled. Resolves with the longest time in ms that somebody waited who asks until answered. */
async function healthDuring(
  program: Program,
  work: Promise<unknown>,
  mark: (text: string) => void,
): Promise<number> {
  let isOver = false;
  work.then(
    () => (isOver = true),
    () => (isOver = true),
  );
  let longestMs = 0;
  let askedAtMs = performance.now();
  for (;;) {
    try {
      await program.ask('/health');
      const waitedMs = performance.now() - askedAtMs;
      mark(waitedMs < 20 ? '.' : waitedMs < 100 ? 'o' : 'O');
      longestMs = Math.max(longestMs, waitedMs);
      await delay(HEALTH_PAUSE_MS);
      askedAtMs = performance.now();
      if (isOver) break;
    } catch {
      mark('x');
      await delay(HEALTH_PAUSE_MS);
    }
  }
  await work;
  return longestMs;
}

function inMs(ms: number): Figure {
  return { value: ms, text: `${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms` };
}

function inMb(mb: number): Figure {
  return { value: mb, text: `${mb.toFixed(0)} MB` };
}
