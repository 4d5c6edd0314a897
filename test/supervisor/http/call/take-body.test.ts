import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { ServeError } from '../../../../protocol/errors.js';
import { Arrivals } from '../../../../supervisor/dispatch/arrivals.js';
import type { Backend } from '../../../../supervisor/http/call/backend.js';
import { takeBody, type BodyOwner } from '../../../../supervisor/http/call/take-body.js';

interface Taken {
  readonly request: PassThrough;
  readonly response: EventEmitter;
  readonly arrivals: Arrivals;
  /** What the owner was told, in order. */
  readonly told: string[];
}

/** Takes a body for an owner that lets `overrides` decide. */
function take(overrides: (arrivals: Arrivals) => Partial<BodyOwner> = () => ({})): Taken {
  const request = new PassThrough();
  const response = Object.assign(new EventEmitter(), { socket: {} });
  const arrivals = new Arrivals();
  const told: string[] = [];
  const owner: BodyOwner = {
    admit: () => ({ place: arrivals.add(0, () => {}), announcedBytes: 0, maxBodyBytes: 10 }),
    onWhole: (pieces, bytes) => told.push(`whole: ${Buffer.concat(pieces).toString()} (${bytes})`),
    turnAway: ({ code }) => told.push(code),
    onClosed: () => told.push('closed'),
    ...overrides(arrivals),
  };
  const backend = {
    options: { bodyTimeout: 10_000 },
    inviteBody: () => told.push('invited'),
  } as unknown as Backend;
  takeBody(backend, request as unknown as IncomingMessage, response as unknown as ServerResponse, owner);
  return { request, response, arrivals, told };
}

function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test('a body is invited, holds its place while it comes, and is handed over with it', async () => {
  const { request, arrivals, told } = take();
  request.write('abc');
  await settle();
  assert.deepEqual([arrivals.count, arrivals.bytes], [1, 3]);
  request.end('de');
  await settle();
  assert.deepEqual(told, ['invited', 'whole: abcde (5)']);
  assert.equal(arrivals.count, 1, 'the place is the owner’s to use up');
});

test('what has no place is not invited', async () => {
  const refuse = (): never => {
    throw new ServeError('SERVE_QUEUE_FULL');
  };
  const { request, told } = take(() => ({ admit: refuse }));
  request.end('abc');
  await settle();
  assert.deepEqual(told, ['SERVE_QUEUE_FULL']);
});

test('a body that is too large gives its place back', async () => {
  const { request, arrivals, told } = take();
  request.write('x'.repeat(11));
  await settle();
  assert.deepEqual(told, ['invited', 'SERVE_BODY_TOO_LARGE']);
  assert.equal(arrivals.count, 0);
});

test('what the owner refuses when it is whole gives its place back', async () => {
  const refuse = (): never => {
    throw new ServeError('SERVE_BAD_BODY');
  };
  const { request, arrivals, told } = take(() => ({ onWhole: refuse }));
  request.end('abc');
  await settle();
  assert.deepEqual(told, ['invited', 'SERVE_BAD_BODY']);
  assert.equal(arrivals.count, 0);
});

test('a client that leaves gives its place back, and nobody is answered', async () => {
  const { request, response, arrivals, told } = take();
  request.write('abc');
  await settle();
  request.destroy();
  response.emit('close');
  await settle();
  assert.deepEqual(told, ['invited', 'closed']);
  assert.equal(arrivals.count, 0);
});
