import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { Channel } from '../../../protocol/wire/channel.js';
import { MAX_TEXT_CHARS } from '../../../protocol/wire/limits.js';
import type { Message } from '../../../protocol/wire/messages.js';
import { appLog } from '../../../worker/report/app-log.js';
import { Tap } from '../../protocol/streams.js';

type LogMessage = Message & { type: 'log' };

function logged(
  level: 'debug' | 'info' | 'warn' | 'error',
  message: unknown,
  fields?: unknown,
  traceparent: string | null = null,
): LogMessage {
  const tap = new Tap();
  const nothing = { onMessage: () => {}, onEnd: () => {}, onWriteError: () => {} };
  const log = appLog(new Channel(new PassThrough(), tap, nothing), 'req-1', traceparent);
  log[level](message as string, fields as Record<string, unknown>);
  const [received] = tap.received;
  return received?.message as LogMessage;
}

for (const level of ['debug', 'info', 'warn', 'error'] as const) {
  test(`ctx.log.${level} sends its line at once, with the request's id`, () => {
    assert.deepEqual(logged(level, 'text', { gb: 1.5 }), {
      type: 'log',
      level,
      message: 'text',
      fields: '{"gb":1.5}',
      requestId: 'req-1',
    });
  });
}

const cycle: Record<string, unknown> = {};
cycle['self'] = cycle;

for (const [what, fields, text] of [
  ['none', undefined, ''],
  ['a cycle', cycle, /^\{"unloggable":"Converting circular structure/],
  ['a BigInt', { n: 1n }, /^\{"unloggable":".*BigInt/],
  ['a number', 5, '{"unloggable":"fields are not an object"}'],
  ['a list', [1], '{"unloggable":"fields are not an object"}'],
  ['null', null, '{"unloggable":"fields are not an object"}'],
  ['a function', () => 1, '{"unloggable":"fields are not an object"}'],
  ['what toJSON makes undefined', { toJSON: () => undefined }, '{"unloggable":"fields are not an object"}'],
  [
    'what throws something odd',
    {
      toJSON: () => {
        throw undefined as unknown as Error;
      },
    },
    /^\{"unloggable":"thrown value: undefined"\}$/,
  ],
  [
    'a getter that throws',
    {
      get broken() {
        throw new Error('no');
      },
    },
    '{"unloggable":"no"}',
  ],
  ['too many', { text: 'x'.repeat(2_000_000) }, '{"unloggable":"fields of 2000011 characters"}'],
] as const) {
  test(`a log line with fields that are ${what} is sent, never thrown`, () => {
    const sent = logged('info', 'text', fields).fields;
    if (typeof text === 'string') assert.equal(sent, text);
    else assert.match(sent, text);
    assert.doesNotThrow(() => logged('info', 'text', fields, '00-a-b-01'));
  });
}

for (const [what, message, text] of [
  ['undefined', undefined, 'undefined'],
  ['an object without a prototype', Object.create(null), 'a message that cannot be shown'],
  ['an error', new Error('boom'), 'Error: boom'],
] as const) {
  test(`a log message that is ${what} is sent, never thrown`, () => {
    assert.equal(logged('info', message).message, text);
  });
}

test('a message longer than a frame head is cut and marked as cut, in any script', () => {
  for (const character of ['x', '😀']) {
    const { message } = logged('info', character.repeat(2_000_000));
    assert.ok(message.length < MAX_TEXT_CHARS + 100);
    assert.match(message, /… \((2|4)000000 characters\)$/);
  }
});

for (const [given, fields] of [
  [undefined, '{"traceparent":"00-a-b-01"}'],
  [{ a: 1 }, '{"traceparent":"00-a-b-01","a":1}'],
  [{ traceparent: 'mine' }, '{"traceparent":"mine"}'],
  [5, '{"unloggable":"fields are not an object"}'],
] as const) {
  test(`a log line of a traced call with fields ${JSON.stringify(given)} carries ${fields}`, () => {
    assert.equal(logged('info', 'text', given, '00-a-b-01').fields, fields);
  });
}
