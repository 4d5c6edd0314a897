import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { printMark } from '../../../protocol/wire/print-mark.js';
import { OutputRelay, type PrintFormat } from '../../../supervisor/observe/output-relay.js';
import type { OutputWriter } from '../../../supervisor/observe/output-writer.js';

/** Collects all written bytes. */
class Written extends EventEmitter {
  text = '';
  lineOf: object | null = null;
  write(bytes: Uint8Array | string): boolean {
    this.text += Buffer.from(bytes as Uint8Array).toString();
    return true;
  }
}

/** A relay of some workers; `print` prints as worker 0 by default, `running` is the call that runs in each. */
function relayOf(format: PrintFormat, workers: number, label = '', mark = '') {
  const stdout = new Written();
  const writer = stdout as unknown as OutputWriter;
  const relay = new OutputRelay(format, () => workers, { stdout: writer, stderr: writer });
  const running: string[] = [];
  const streams = Array.from({ length: workers }, (_, worker) => {
    const stream = new PassThrough();
    relay.attach(stream, 'stdout', {
      label: () => label,
      worker,
      mark,
      pid: () => 7,
      runningRequestId: () => running[worker] ?? '',
      lastRequestId: () => '',
    });
    return stream;
  });
  const printBytes = (bytes: Buffer, worker = 0): unknown => streams[worker]?.emit('data', bytes);
  const print = (text: string, worker = 0): unknown => printBytes(Buffer.from(text), worker);
  const end = (worker: number): unknown => streams[worker]?.emit('close');
  return { stdout, running, print, printBytes, end };
}

test('potassium, one worker: lines of a call have its id, others no prefix', () => {
  const { stdout, running, print } = relayOf('potassium', 1);
  print('loading\n');
  running[0] = 'r1';
  print('a\nb\n');
  running[0] = '';
  print('idle\n');
  assert.equal(stdout.text, 'loading\n[requestID r1] a\n[requestID r1] b\nidle\n');
});

test('potassium, several workers: every line names its worker', () => {
  const { stdout, running, print } = relayOf('potassium', 2);
  print('loading\n', 1);
  running[1] = 'r1';
  print('a\n', 1);
  assert.equal(stdout.text, '[worker 1] loading\n[worker 1, requestID r1] a\n');
});

test('potassium, several models: every line names model and worker', () => {
  const { stdout, print } = relayOf('potassium', 2, 'digits');
  print('loading\n', 1);
  assert.equal(stdout.text, '[worker digits/1] loading\n');
});

test('json names the model of a print only if there are several', () => {
  for (const [label, model] of [
    ['', undefined],
    ['digits', 'digits'],
  ] as const) {
    const { stdout, print } = relayOf('json', 1, label);
    print('a\n');
    assert.equal((JSON.parse(stdout.text) as { model?: string }).model, model);
  }
});

test('potassium: steps of a progress bar and empty lines are lines, however they end', () => {
  const { stdout, running, print } = relayOf('potassium', 1);
  running[0] = 'r';
  print('10%\r20%\rdone\r\n\nend\n');
  const p = '[requestID r] ';
  assert.equal(stdout.text, `${p}10%\r${p}20%\r${p}done\r\n${p}\n${p}end\n`);
});

test('potassium: a line too long to wait for its end has one prefix', () => {
  const { stdout, running, print } = relayOf('potassium', 1);
  running[0] = 'r';
  print('x'.repeat(150_000));
  print('y\n');
  assert.equal(stdout.text.match(/\[requestID r\] /g)?.length, 1);
  assert.match(stdout.text, /x{150000}y\n$/);
});

test('text: a line is shown as it grows', () => {
  const { stdout, print } = relayOf('text', 2);
  print('Loading');
  assert.equal(stdout.text, 'Loading');
  print('... ');
  print('done\nnext');
  assert.equal(stdout.text, 'Loading... done\nnext');
});

test('text: a line that begins while another worker\u2019s is unfinished waits; whole lines end the unfinished one', () => {
  const { stdout, print } = relayOf('text', 3);
  print('a1 ', 0);
  print('b1 ', 1);
  print('c1 ', 2);
  assert.equal(stdout.text, 'a1 ', 'two wait');
  print('a2\n', 0);
  assert.equal(stdout.text, 'a1 a2\nb1 ', 'the line that waited longest is shown');
  print('c2\n', 2);
  assert.equal(stdout.text, 'a1 a2\nb1 \nc1 c2\n', 'a whole line does not wait');
  print('b2\n', 1);
  assert.equal(stdout.text, 'a1 a2\nb1 \nc1 c2\nb2\n');
});

test('text: an unfinished line of a worker that ended does not block other workers', () => {
  const { stdout, print, end } = relayOf('text', 2);
  print('half a li', 0);
  print('other', 1);
  end(0);
  assert.equal(stdout.text, 'half a li\nother');
});

test('text: an incomplete character is not shown before its rest arrives', () => {
  const { stdout, printBytes } = relayOf('text', 2);
  const banana = Buffer.from('x\u{1F34C}');
  printBytes(banana.subarray(0, 3));
  assert.equal(stdout.text, 'x');
  printBytes(banana.subarray(3));
  assert.equal(stdout.text, 'x\u{1F34C}');
});

test('potassium and json: an unfinished line waits for its end', () => {
  for (const format of ['potassium', 'json'] as const) {
    const { stdout, print } = relayOf(format, 2);
    print('begun');
    assert.equal(stdout.text, '');
  }
});

test('text: output is unchanged', () => {
  const { stdout, running, print } = relayOf('text', 2);
  running[0] = 'r1';
  print('a\nb\r\n');
  assert.equal(stdout.text, 'a\nb\r\n');
});

test('text: a line that was ended for another worker has no second end, as Python sends it on its own', () => {
  const { stdout, print } = relayOf('text', 2);
  print('armed', 0);
  print('armed', 1);
  print('\n', 1);
  print('\n', 0);
  print('\n', 0);
  assert.equal(stdout.text, 'armed\narmed\n\n');
});

/** The lines of JSON without the time, and what all have. */
function recordsOf({ text }: Written): object[] {
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => {
    const { time, stream, worker, pid, ...rest } = JSON.parse(line) as Record<string, unknown>;
    assert.ok(time !== undefined && stream === 'stdout' && worker === 0 && pid === 7, line);
    return rest;
  });
}

test('json: a record of a log is one line with its level and logger, however it arrives', () => {
  const { stdout, print } = relayOf('json', 1, '', 'm4rk');
  const record = `${printMark('m4rk', 'r1', 'error')}no\nanswer\n${printMark('m4rk', 'r1')}`;
  print(record.slice(0, 25));
  print(`${record.slice(25)}a print\n`);
  print(`${printMark('m4rk', '', 'warn').replace('warn\t', 'warn\tapp.db')}slow\n${printMark('m4rk', '')}`);
  assert.deepEqual(recordsOf(stdout), [
    { level: 'error', requestId: 'r1', msg: 'no\nanswer' },
    { requestId: 'r1', msg: 'a print' },
    { level: 'warn', requestId: '', logger: 'app.db', msg: 'slow' },
  ]);
});

test('json: a progress bar is one line, with its last state', () => {
  const { stdout, print } = relayOf('json', 1);
  print('\r 10%|#  ');
  print('\r 50%|## \r100%|###\n');
  print('Windows\r\n\r gone\r     \r\nnext\n');
  assert.deepEqual(
    recordsOf(stdout),
    ['100%|###', 'Windows', ' gone', 'next'].map((msg) => ({ requestId: '', msg })),
  );
});
