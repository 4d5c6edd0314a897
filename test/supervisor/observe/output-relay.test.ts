import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { OutputRelay, type PrintFormat } from '../../../supervisor/observe/output-relay.js';
import type { OutputWriter } from '../../../supervisor/observe/output-writer.js';

/** Takes whatever is written, and keeps it. */
class Written extends EventEmitter {
  text = '';
  write(bytes: Uint8Array | string): boolean {
    this.text += Buffer.from(bytes as Uint8Array).toString();
    return true;
  }
}

/** A relay of some workers; `print` as worker 0 unless told, `running` is the call that runs in each. */
function relayOf(format: PrintFormat, workers: number) {
  const stdout = new Written();
  const writer = stdout as unknown as OutputWriter;
  const relay = new OutputRelay(format, workers, { stdout: writer, stderr: writer });
  const running: string[] = [];
  const streams = Array.from({ length: workers }, (_, worker) => {
    const stream = new PassThrough();
    relay.attach(stream, 'stdout', { worker, mark: '', runningRequestId: () => running[worker] ?? '' });
    return stream;
  });
  const print = (text: string, worker = 0): unknown => streams[worker]?.emit('data', Buffer.from(text));
  return { stdout, running, print };
}

test('potassium, one worker: lines of a call carry its id, others nothing', () => {
  const { stdout, running, print } = relayOf('potassium', 1);
  print('loading\n');
  running[0] = 'r1';
  print('a\nb\n');
  running[0] = '';
  print('idle\n');
  assert.equal(stdout.text, 'loading\n[requestID r1] a\n[requestID r1] b\nidle\n');
});

test('potassium, several workers: every line says whose it is', () => {
  const { stdout, running, print } = relayOf('potassium', 2);
  print('loading\n', 1);
  running[1] = 'r1';
  print('a\n', 1);
  assert.equal(stdout.text, '[worker 1] loading\n[worker 1, requestID r1] a\n');
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

test('text: what was printed is what comes out', () => {
  const { stdout, running, print } = relayOf('text', 2);
  running[0] = 'r1';
  print('a\nb\r\n');
  assert.equal(stdout.text, 'a\nb\r\n');
});
