import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asksFor } from '../../../worker/reply/encode-output.js';

for (const [accept, wanted] of [
  ['text/event-stream', true],
  ['Text/Event-Stream', true],
  ['text/event-stream;q=0.5', true],
  ['text/html, text/event-stream', true],
  ['text/event-stream, application/json', true],
  ['application/json;q=0.9, text/event-stream;q=0.9', true],
  ['application/json;q=0.8,text/event-stream ; charset=utf-8 ; q=0.9', true],
  ['application/json, text/event-stream;q=0.9', false],
  ['text/event-stream;q=0', false],
  ['text/event-stream;q=nonsense', false],
  ['', false],
  ['*/*', false],
  ['text/*', false],
  ['application/json', false],
  ['text/event-stream-not', false],
] as const) {
  test(`Accept ${JSON.stringify(accept)} ${wanted ? 'asks' : 'does not ask'} for an event stream`, () => {
    assert.equal(asksFor(accept, 'text/event-stream'), wanted);
  });
}
