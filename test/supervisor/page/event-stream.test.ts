/** The reader of server-sent events: any way of cutting the stream gives the same events. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventStreamReader } from '../../../supervisor/page/live/event-stream.js';

const ROWS: readonly (readonly [
  title: string,
  text: string,
  events: ReturnType<EventStreamReader['push']>,
])[] = [
  ['one event', 'data: a\n\n', [{ name: 'message', data: 'a' }]],
  ['a named event', 'event: end\ndata: {"a":1}\n\n', [{ name: 'end', data: '{"a":1}' }]],
  ['data of several lines', 'data: a\ndata:b\ndata\n\n', [{ name: 'message', data: 'a\nb\n' }]],
  [
    'lines that end with CR LF',
    'data: a\r\n\r\ndata: b\r\n\r\n',
    [
      { name: 'message', data: 'a' },
      { name: 'message', data: 'b' },
    ],
  ],
  [
    'lines that end with CR',
    'data: a\rdata: b\r\rdata: c\n\n',
    [
      { name: 'message', data: 'a\nb' },
      { name: 'message', data: 'c' },
    ],
  ],
  [
    'a byte order mark, comments and other fields',
    '\uFEFF: hello\nid: 1\nretry: 5\ndata: a\n\n',
    [{ name: 'message', data: 'a' }],
  ],
  ['a colon in the data', 'data: a: b\n\n', [{ name: 'message', data: 'a: b' }]],
  ['only the first space is taken away', 'data:  a\n\n', [{ name: 'message', data: ' a' }]],
  [
    'an event without data, whose name does not last',
    'event: x\n\ndata: a\n\n',
    [{ name: 'message', data: 'a' }],
  ],
  ['an event that is not complete', 'data: a\n', []],
];

for (const [title, text, events] of ROWS)
  test(`${title}: as a whole, and by single characters`, () => {
    assert.deepEqual(new EventStreamReader().push(text), events);
    const reader = new EventStreamReader();
    assert.deepEqual(
      [...text].flatMap((char) => reader.push(char)),
      events,
    );
  });

test('a line of 64 MB in small pieces is read in one pass', () => {
  const reader = new EventStreamReader();
  reader.push('data: ');
  for (let i = 0; i < 1000; i += 1) reader.push('x'.repeat(65_536));
  assert.equal(reader.push('\n\n')[0]?.data.length, 65_536_000);
});
