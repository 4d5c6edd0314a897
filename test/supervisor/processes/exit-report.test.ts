import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  describeExit,
  exitHint,
  isMemoryHint,
  type Exit,
  type KillCause,
} from '../../../supervisor/processes/worker-death.js';

const KILLED: Exit = { code: null, signal: 'SIGKILL' };
const HEAP =
  '<--- Last few GCs --->\nFATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory';

interface Row {
  readonly exit: Exit;
  readonly cause?: KillCause;
  readonly stderr?: string;
  readonly oomKills?: number;
  readonly how: string;
  /** Empty: there is no hint. */
  readonly hint: RegExp;
}

const ROWS: Readonly<Record<string, Row>> = {
  'an exit code': { exit: { code: 7, signal: null }, how: 'exit code 7', hint: /^$/ },
  'an exit code of 0': { exit: { code: 0, signal: null }, how: 'exit code 0', hint: /^$/ },
  'a polite signal': { exit: { code: null, signal: 'SIGTERM' }, how: 'signal SIGTERM', hint: /^$/ },
  'native code that crashed': {
    exit: { code: null, signal: 'SIGSEGV' },
    how: 'signal SIGSEGV',
    hint: /native code crashed/,
  },
  'a full heap': {
    exit: { code: null, signal: 'SIGABRT' },
    stderr: HEAP,
    how: 'signal SIGABRT',
    hint: /--max-old-space-size/,
  },
  'a SIGKILL that the server did not send': {
    exit: KILLED,
    how: 'signal SIGKILL',
    hint: /likely the kernel's OOM killer.*or a person/,
  },
  "SIGKILL while the cgroup's OOM count rose": {
    exit: KILLED,
    oomKills: 1,
    how: 'signal SIGKILL',
    hint: /OOM killer ended.*more memory or fewer workers/,
  },
  'a kill of ours': {
    exit: KILLED,
    cause: 'run timeout',
    how: 'killed by the server: run timeout',
    hint: /^$/,
  },
  'a kill of ours because it had lost its connection': {
    exit: KILLED,
    cause: 'it closed its connection to the server',
    how: 'killed by the server: it closed its connection to the server',
    hint: /^the app closed or replaced file descriptor 3/,
  },
  'an exit of its own just before our kill': {
    exit: { code: 1, signal: null },
    cause: 'stop',
    how: 'exit code 1',
    hint: /^$/,
  },
  'a crash of its own just before our kill': {
    exit: { code: null, signal: 'SIGSEGV' },
    cause: 'it closed its connection to the server',
    how: 'signal SIGSEGV',
    hint: /native code/,
  },
  'an unknown exit': { exit: { code: null, signal: null }, how: 'unknown exit', hint: /^$/ },
};

/** The rows with too little memory. */
const OUT_OF_MEMORY: readonly string[] = ['a full heap', "SIGKILL while the cgroup's OOM count rose"];

for (const [what, { exit, cause = null, stderr = '', oomKills = 0, how, hint }] of Object.entries(ROWS)) {
  test(`the report of ${what}`, () => {
    assert.equal(describeExit(exit, cause), how);
    const found = exitHint(exit, cause, stderr, oomKills);
    assert.match(found, hint);
    assert.equal(isMemoryHint(found), OUT_OF_MEMORY.includes(what));
  });
}
