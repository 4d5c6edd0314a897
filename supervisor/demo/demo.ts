/**
 * `banana-serve demo`: the same model inside a program, and as a function of one. Both go through the same script, each step on
 * the left and then on the right, so that they do not take each other's cores; a table at the end has what was measured.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { runCommand } from '../command/own-command.js';
import { residentBytes } from '../machine/processes.js';

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

/** The limit of the JavaScript heap, for the program and for its workers. */
const HEAP_MB = 128;
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

const FOLDER = fileURLToPath(new URL('../../../examples/demo', import.meta.url));
/** Without files of dumped memory, which a full heap may leave. */
const NO_DUMPS = 'ulimit -c 0; exec "$0" "$@"';

/** One of the programs as a person runs it: started, asked over HTTP, started again at once when it has died, and killed. */
class Program {
  readonly #path: string;
  #child: ChildProcess;
  #url: Promise<string>;
  #isOver = false;

  /** `name`: a file in examples/demo. */
  constructor(name: string) {
    this.#path = join(FOLDER, name);
    [this.#child, this.#url] = this.#start();
  }

  #start(): [child: ChildProcess, url: Promise<string>] {
    const options = `${process.env['NODE_OPTIONS'] ?? ''} --max-old-space-size=${HEAP_MB}`;
    const child = spawn('/bin/sh', ['-c', NO_DUMPS, process.execPath, this.#path], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      env: { ...process.env, NODE_OPTIONS: options },
    });
    const url = urlOf(child, this.#path);
    url.then(
      () => child.once('exit', () => this.#isOver || ([this.#child, this.#url] = this.#start())),
      () => {}, // whoever asks is told
    );
    return [child, url];
  }

  /** The JSON of an answer; rejects without one, and with another status than 200. */
  async ask(path: string, input?: object): Promise<unknown> {
    const given = input === undefined ? {} : { method: 'POST', body: JSON.stringify(input) };
    const response = await fetch((await this.#url) + path, given);
    const answer: unknown = await response.json();
    if (response.ok) return answer;
    throw new Error(JSON.stringify(answer));
  }

  /** Itself, then its workers. */
  pids(): Promise<readonly number[]> {
    return this.ask('/pids') as Promise<number[]>;
  }

  /** The resident memory of all its processes in MB; 0 where the system does not tell. */
  async memoryMb(): Promise<number> {
    const bytes = (await this.pids()).map((pid) => residentBytes(pid) ?? 0);
    return bytes.reduce((sum, one) => sum + one, 0) / 2 ** 20;
  }

  /** Its workers end with it. */
  end(): void {
    this.#isOver = true;
    this.#child.kill('SIGKILL');
  }
}

/** Resolves with its address once it listens. */
async function urlOf(child: ChildProcess, path: string): Promise<string> {
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => (stderr = (stderr + chunk.toString()).slice(-4000)));
  const stop = new AbortController();
  const { signal } = stop;
  const ended = once(child, 'close', { signal }).then(() => {
    throw new Error(`${path} ended before it listened: ${stderr}`);
  });
  const said = once(child, 'message', { signal }) as Promise<[number]>;
  ended.catch(() => {}); // one of the two is given up
  said.catch(() => {});
  try {
    const [port] = await Promise.race([said, ended]);
    return `http://127.0.0.1:${port}`;
  } finally {
    stop.abort();
  }
}
