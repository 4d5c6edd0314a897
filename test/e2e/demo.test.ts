/** `banana-serve demo`: the same model in a program and as a function, measured live; nothing of it stays behind. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { describe, test, type TestContext } from 'node:test';
import { needs } from '../helpers/needs.js';
import { CLI, ROOT, eventually } from '../helpers/server.js';

const ROWS = [
  'batches: longest wait for /health',
  'memory eaten: other calls lost',
  'kill -9: longest wait for /health',
  'kill -9: until the model answers',
  ...(process.platform === 'linux' ? ['memory, working', 'memory, idle'] : []),
  'first call after idling',
  'one small call',
];

/** Runs a command whose processes, and theirs, all have a word in their environment. */
function startMarked(t: TestContext, command: readonly [file: string, ...args: string[]]) {
  const mark = randomUUID();
  const [file, ...args] = command;
  const env = { ...process.env, SHELL: '/bin/sh', DEMO_MARK: mark };
  const child = spawn(file, args, { cwd: ROOT, env, stdio: ['pipe', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  return { child, ended, text: () => text, left: () => processesWith(mark) };
}

/** The processes with a word in their environment; Linux only. */
function processesWith(word: string): number[] {
  if (process.platform !== 'linux') return [];
  const has = (pid: string): boolean => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(word);
    } catch {
      return false; // it has ended
    }
  };
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && has(name))
    .map(Number);
}

/** Runs the demo to its end. */
async function finished(t: TestContext): Promise<ReturnType<typeof startMarked>> {
  const demo = startMarked(t, [process.execPath, CLI, 'demo']);
  assert.equal(await demo.ended, 0, demo.text());
  return demo;
}

/** Whether a kill holds up the program more than that which has the model as a function. */
function isHeldUpMore({ text }: ReturnType<typeof startMarked>): boolean {
  const figures = /^kill -9: longest wait for \/health +(\S+) ms +(\S+) ms$/m.exec(text());
  assert.ok(figures !== null, text());
  return Number(figures[1]) > Number(figures[2]);
}

async function nothingLeft({ left }: ReturnType<typeof startMarked>): Promise<void> {
  await eventually(
    () => left().length === 0,
    60_000,
    () => `left behind: ${left().join(', ')}`,
  );
}

describe('the demo', { timeout: 480_000 }, () => {
  test('without a terminal, it prints the table alone, with the rows that a function loses', async (t) => {
    // Where the machine stands still while the function is measured, another run has to show it.
    let demo = await finished(t);
    while (!isHeldUpMore(demo)) demo = await finished(t);
    const [head = '', ...lines] = demo.text().trim().split('\n');
    assert.match(head, /^in the program +supervise\(\)$/);
    const rows = lines.slice(0, lines.indexOf('')).map((line) => line.split(/ {2,}/));
    assert.deepEqual(
      rows.map(([title]) => title),
      ROWS,
    );
    for (const row of rows) assert.match(row.slice(1).join(), /^\d[^,]*,\d[^,]*$/);
    assert.deepEqual(rows[1], ['memory eaten: other calls lost', '3 of 3', '0 of 3']);
    assert.match(
      demo.text(),
      /supervise\(\) loses these rows.*\n(?: .*\n)* {2}one small call: \d+ us instead of \d+ us\n/,
    );
    await nothingLeft(demo);
  });

  test('at a terminal, Ctrl-C leaves nothing behind', { skip: needs('script') }, async (t) => {
    const shell = `'${process.execPath}' '${CLI}' demo`;
    const demo = startMarked(t, ['script', '-qefc', shell, '/dev/null']);
    await eventually(
      () => demo.text().includes('kill '), // some of its models have ended, some run
      120_000,
      () => demo.text(),
    );
    demo.child.stdin.write('\x03');
    await demo.ended;
    assert.doesNotMatch(demo.text(), /one small call +\d/);
    await nothingLeft(demo);
  });
});
