/**
 * `banana-serve demo`: the same model inside a program, and as a function of one. Both go through the same script, each step on
 * the left and then on the right, so that they do not take each other's cores; a table at the end has what was measured.
 */
import { Command } from 'commander';
import { constants } from 'node:os';
import { runCommand } from '../command/own-command.js';
import { Program, HEAP_MB } from './demo-program.js';
import { setTimeout as delay } from 'node:timers/promises';

const WIDTH = 38;

const CODE: readonly (readonly [left: string, right: string])[] = [
  ['in the program', 'supervise()'],
  ['', ''],
  ['import { inference, init }', "import { supervise } from 'banana-serve';"],
  ["  from './model.mjs';", 'const inference ='],
  ['await init();', "  await supervise('./model.mjs');"],
];

const LEGEND = '/health is answered . at once  o within 100 ms  O later  x not at all';

/** `args`: arguments without the command's name. Resolves with the exit code. */
export function runDemo(name: string, args: readonly string[]): Promise<number> {
  const command = new Command(name).description(
    'Shows the same model inside a program and as its function, in under a minute: batches, too little memory, kill -9.',
  );
  return runCommand(command, args, async () => {
    const show = process.stdout.isTTY ? (text: string) => void process.stdout.write(text) : () => {};
    const programs: readonly Program[] = ['in-process.mjs', 'supervised.mjs'].map(
      (file) => new Program(file),
    );
    endWithThis(programs);
    show(`\n${CODE.map(([left, right]) => `  ${left.padEnd(WIDTH)}  ${right}\n`).join('')}\n${LEGEND}\n`);
    const columns: [Column, Column] = [{}, {}];
    for (const step of STEPS) {
      show(`\n${step.title}\n`);
      for (const [i, program] of programs.entries())
        columns[i] = { ...columns[i], ...(await runOn(program, step, show)) };
      show('\n');
    }
    for (const program of programs) program.end();
    process.stdout.write(tableOf(columns));
  });
}

/** However this process ends, by Ctrl-C too, the programs end, and their workers with them. */
function endWithThis(programs: readonly Program[]): void {
  process.on('exit', () => {
    for (const program of programs) program.end();
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
}

/** Shows what happens in a column. */
async function runOn(program: Program, step: Step, show: (text: string) => void): Promise<Column> {
  let used = 0;
  show('  ');
  const column = await step.run(program, (text) => {
    if (used + text.length > WIDTH) return;
    used += text.length;
    show(text);
  });
  show(' '.repeat(WIDTH - used));
  return column;
}

function tableOf([left, right]: readonly [Column, Column]): string {
  const [titles = ['', '']] = CODE;
  const titlesOfRows = Object.keys(left);
  const rows = titlesOfRows.map((row) => [row, left[row]?.text, right[row]?.text]);
  const line = ([title = '', ...texts]: readonly (string | undefined)[]): string =>
    `${title.padEnd(WIDTH)}${texts.map((text = '') => text.padStart(16)).join('')}\n`;
  const lost = titlesOfRows.filter((row) => (left[row]?.value ?? 0) < (right[row]?.value ?? 0));
  const losses = lost.map((row) => `  ${row}: ${right[row]?.text} instead of ${left[row]?.text}\n`);
  return `
${[['', ...titles], ...rows].map(line).join('')}
supervise() loses these rows, because a call goes to another process, which must be there:
${losses.join('')}`;
}

/** One measurement; less is better. */
interface Figure {
  readonly value: number;
  readonly text: string;
}

/** A column of the table: figures by the titles of their rows. */
type Column = Readonly<Record<string, Figure>>;

interface Step {
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

const STEPS: readonly Step[] = [
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
