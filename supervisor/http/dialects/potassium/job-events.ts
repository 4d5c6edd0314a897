/**
 * Server-sent events about one job: its page at first and at each change, the last one with its end. A client that reads
 * slowly gets the newest page, not every one.
 */
import { Readable } from 'node:stream';
import { hasEnded } from '../../../jobs/job-record.js';
import { deferred } from '../../../machine/deferred.js';
import { within } from '../../../machine/limit-timer.js';
import { SENT_SLICE_BYTES, inTurns } from '../../json/slices.js';
import type { RequestContext } from '../../request/request-context.js';
import { onceClosed } from '../../socket/request-facts.js';
import { describeJob } from './job-page.js';

/** Proxies and load balancers drop a connection on which nothing comes for a minute. */
const KEEP_ALIVE_MS = 20_000;
const KEEP_ALIVE = Buffer.from(':\n\n');

/** Watches the job from the first read on, until the client has gone or the stream has ended. */
export function jobEvents(context: RequestContext, id: string, showsWords: boolean): Readable {
  return Readable.from(eventsOf(context, id, showsWords), { objectMode: false });
}

async function* eventsOf(context: RequestContext, id: string, showsWords: boolean): AsyncGenerator<Buffer> {
  const { backend, request, response } = context;
  let news = deferred<true>();
  let isOver = false as boolean;
  const end = (): void => {
    isOver = true;
    news.resolve(true);
  };
  const unwatch = backend.jobs.watchers.add(id, (record) => {
    if (record !== null) news.resolve(true);
    else if (response.writableNeedDrain)
      response.destroy(); // the server's end does not wait for a client that does not read
    else end();
  });
  onceClosed(request, response, end);
  try {
    for (;;) {
      news = deferred(); // before the look, or a change in between would be missed
      const record = await backend.jobs.get(id);
      if (record === null) return;
      const { pieces, bytes } = await describeJob(context, record, showsWords);
      // A large one is made and sent in pieces as its client takes them: thousands may watch one job.
      if (bytes > SENT_SLICE_BYTES) {
        yield DATA;
        for await (const piece of inTurns(pieces)) yield onOneLine(piece);
        yield END;
      } else yield Buffer.concat([DATA, ...Array.from(pieces, onOneLine), END]);
      if (isOver || hasEnded(record)) return;
      while ((await within(KEEP_ALIVE_MS, news.promise)) === null) yield KEEP_ALIVE;
    }
  } finally {
    unwatch();
  }
}

const DATA = Buffer.from('data: ');
const END = Buffer.from('\n\n');
const [LINE_FEED, RETURN, SPACE] = [0x0a, 0x0d, 0x20];

/** A line break in JSON is white space, and would end the event. */
function onOneLine(json: Buffer): Buffer {
  if (!json.includes(LINE_FEED) && !json.includes(RETURN)) return json;
  return Buffer.from(json.map((byte) => (byte === LINE_FEED || byte === RETURN ? SPACE : byte)));
}
