import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DeathNotes, type Exit, type WorkerDeath } from '../../../supervisor/processes/worker-death.js';

const HEAP_FULL = Buffer.from('FATAL ERROR: JavaScript heap out of memory\n');
const KILLED = { code: null, signal: 'SIGKILL' };
const FACTS = {
  pid: 7,
  during: 'idle' as const,
  call: null,
  uptimeMs: 5,
  finishedCalls: 1,
  wanted: false,
};

test('a worker that is killed for two causes reports the first, and no hint besides', () => {
  const notes = new DeathNotes();
  notes.noteKill('run timeout');
  notes.noteKill('stop');
  assert.equal(notes.how(KILLED), 'killed by the server: run timeout');
  const { how, hint } = notes.describe(KILLED, FACTS);
  assert.equal(how, 'killed by the server: run timeout');
  assert.equal(hint, '');
});

test('a worker that gives two reasons reports the first', () => {
  const notes = new DeathNotes();
  const fatal = {
    code: 'SERVE_INIT_FAILED',
    message: 'no weights',
    detail: '',
    permanent: false,
    transient: false,
  };
  notes.noteFatal(fatal);
  notes.noteFatal({ ...fatal, message: 'and no disk' });
  assert.equal(notes.describe(KILLED, FACTS).fatal?.message, 'no weights');
});

test('the last 20 lines of stderr are reported, and searched for a hint', () => {
  const notes = new DeathNotes();
  for (let i = 1; i <= 20; i += 1) notes.noteStderr(Buffer.from(`line ${i}\n`));
  notes.noteStderr(Buffer.from('FATAL ERROR: JavaScript heap out of memory\n'));
  const { stderrTail, hint } = notes.describe({ code: null, signal: 'SIGABRT' }, FACTS);
  assert.deepEqual(
    [stderrTail.length, stderrTail[0], stderrTail[19]],
    [20, 'line 2', 'FATAL ERROR: JavaScript heap out of memory'],
  );
  assert.match(hint, /^the JavaScript heap was full/);
});

test('the report of a death has the facts of the handle beside the notes', () => {
  const { at, ...death } = new DeathNotes().describe({ code: 3, signal: null }, FACTS);
  assert.ok(Math.abs(Date.now() - at.getTime()) < 10_000);
  const noted = {
    exit: { code: 3, signal: null },
    how: 'exit code 3',
    cause: 'exit',
    hint: '',
    fatal: null,
    stderrTail: [],
  };
  assert.deepEqual(death, { ...FACTS, ...noted });
});

const FATAL = { code: 'X', message: '', detail: '', permanent: false, transient: false };

for (const [cause, exit, during, prepare] of [
  ['run timeout', KILLED, 'call', (notes) => notes.noteKill('run timeout')],
  ['out of memory', { code: null, signal: 'SIGABRT' }, 'call', (notes) => notes.noteStderr(HEAP_FULL)],
  ['signal', { code: null, signal: 'SIGSEGV' }, 'call', () => {}],
  ['start failed', { code: 1, signal: null }, 'start', (notes) => notes.noteFatal(FATAL)],
  ['said that it is finished', { code: 1, signal: null }, 'idle', (notes) => notes.noteFatal(FATAL)],
  ['exit', { code: 1, signal: null }, 'start', () => {}],
] satisfies [string, Exit, WorkerDeath['during'], (notes: DeathNotes) => void][]) {
  test(`a death is counted as one for "${cause}"`, () => {
    const notes = new DeathNotes();
    prepare(notes);
    assert.equal(notes.describe(exit, { ...FACTS, during }).cause, cause);
  });
}
